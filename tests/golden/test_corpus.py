"""What an earlier release wrote, read by this one: explainers, credits, ledgers. docs/promises.md says what must hold.

A failure here means that users' files or numbers change. If that is meant, the release needs a new format version with
a migration, or a line in the changelog with the reason and the size of the change, and a new folder of the corpus.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from node_cases import KINDS, kinds_in

import gigrad as gig
from gigrad import portable
from gigrad.portable import archive

HERE = Path(__file__).parent
CASES = sorted(path.with_suffix("") for path in HERE.glob("format-*/*.gig"))
NAMES = [f"{path.parent.name}/{path.name}" for path in CASES]
CLOSED_FORM, INTEGRATED = 1e-12, 1e-9  # of the largest score: what may differ between machines and versions of NumPy


def told(case: Path) -> tuple[dict[str, Any], np.ndarray]:
    numbers = json.loads(case.with_suffix(".json").read_text())
    return numbers, np.array(numbers["rows"], dtype=float)


def without_new_fields(now: Any, before: Any) -> Any:
    """What is written now, without the fields of objects that were not written then."""
    if isinstance(now, dict) and isinstance(before, dict):
        return {key: without_new_fields(value, before[key]) for key, value in now.items() if key in before}
    if isinstance(now, list) and isinstance(before, list) and len(now) == len(before):
        return [without_new_fields(a, b) for a, b in zip(now, before, strict=True)]
    return now


def test_the_corpus_is_there() -> None:
    assert {"margin", "probability", "rank", "mixed", "catboost"} <= {path.name for path in CASES}


def test_every_node_function_and_kernel_is_in_a_file() -> None:
    """Else a file with it could become unreadable, or give other credits, without a test that fails."""
    held = {kind for path in CASES for kind in kinds_in(archive.read(path.with_suffix(".gig"))[0]["nodes"])}
    assert KINDS - held == set(), "add it as tests/golden/README.md says"


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_credits_are_those_of_the_release(case: Path) -> None:
    numbers, rows = told(case)
    e = portable.load(case.with_suffix(".gig"), n_threads=1)(rows)
    assert list(e.feature_names) == numbers["feature_names"]
    scale = max(1.0, float(np.abs(numbers["predictions"]).max()))
    allowed = (INTEGRATED if np.any(numbers["error"]) else CLOSED_FORM) * scale
    for name in ("values", "base_values", "predictions"):
        np.testing.assert_allclose(getattr(e, name), numbers[name], rtol=0, atol=allowed, err_msg=name)
    assert (e.error <= 2 * np.asarray(numbers["error"]) + allowed).all()  # no less certain than then


@pytest.mark.parametrize("case", [c for c in CASES if c.with_suffix(".jsonl").exists()], ids=lambda c: c.name)
def test_ledgers_are_read_replayed_and_verified(case: Path) -> None:
    path, explainer = case.with_suffix(".jsonl"), portable.load(case.with_suffix(".gig"), n_threads=1)
    records = list(gig.read_ledger(path))
    assert [r["row_id"] for r in records] == [f"A-{i}" for i in range(6)]
    for record in records:
        again = gig.replay_reasons(record).reasons
        assert [r.feature for r in again] == [r["feature"] for r in record["outcome"]["reasons"]]
    verified = gig.verify_ledger(path, explainer, n_threads=1)
    assert verified.ok, verified


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_a_file_is_written_as_the_release_wrote_it(case: Path) -> None:
    """What was written stays; a field may be added. Any other change needs a new format version."""
    document, arrays = archive.read(case.with_suffix(".gig"))
    if f"format-{archive.VERSION}" != case.parent.name:
        pytest.skip("a file of an earlier format is written in the present one")
    again, others = archive.read(portable.to_bytes(portable.load(case.with_suffix(".gig"))))
    for one in (document, again):
        del one["provenance"]  # says which versions are installed
    assert without_new_fields(again, document) == document
    assert all(a.dtype == b.dtype and np.array_equal(a, b, equal_nan=True) for a, b in zip(arrays, others, strict=True))


def test_files_of_an_earlier_format_are_migrated_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the next two formats might do it: one renames a field, the other gives it its old name back."""

    def rename(old: str, new: str) -> Any:
        return lambda document: {(new if key == old else key): value for key, value in document.items()}

    path = HERE / "format-2" / "margin.gig"
    before = archive.read(path)[0]
    monkeypatch.setattr(archive, "VERSION", 4)
    monkeypatch.setitem(archive.MIGRATIONS, 2, rename("weights", "shares"))
    monkeypatch.setitem(archive.MIGRATIONS, 3, rename("shares", "weights"))
    assert archive.read(path)[0] == before
    monkeypatch.setitem(archive.MIGRATIONS, 3, dict)
    assert "shares" in archive.read(path)[0]


def test_every_format_since_the_second_has_a_way_to_this_one() -> None:
    assert set(archive.MIGRATIONS) == set(range(2, archive.VERSION))
