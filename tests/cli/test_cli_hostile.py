"""Tables, names and leftovers that somebody made to break a run: one sentence each, and nothing is a fault of ours."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from office import called, furnish

import gigrad as gig
from gigrad import batch
from gigrad.batch.reasons import reason_task


@pytest.fixture(scope="module")
def office(tmp_path_factory: Any) -> Path:
    return furnish(tmp_path_factory.mktemp("office"))


@pytest.fixture(scope="module")
def ready(office: Path) -> gig.Explainer:
    return gig.Explainer.load(office / "ready.gig", n_threads=1)


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("explain model.json new.csv --reference past.csv --weights number", 3, "The weights in past.csv must be num"),
        ("explain model.json new.csv --reference past.csv --output rank --scores x.json", 3, "no such file"),
        ("explain model.json new.csv --reference past.csv --output rank --scores words.csv", 3, "must be numbers"),
        ("explain model.json new.csv --reference past.csv --output rank --scores deep.json", 4, "SmoothedECDF.save"),
        ("explain ready.gig new.csv --threads 0", 3, "n_threads must be a positive whole number; got 0"),
        ("reasons ready.gig new.csv --cutoff nan --lower-is-better", 3, "cutoff must be a finite number; got nan"),
    ],
)
def test_files_that_do_not_hold_what_they_should(
    line: str, code: int, message: str, office: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (office / "words.csv").write_text("score\nlow\nhigh\n")
    (office / "deep.json").write_text("[" * 100_000)
    done = called(f"gigrad {line} -q -o x.parquet", office, monkeypatch)
    assert (done.exit_code, done.stderr.count("\n")) == (code, 1), done.stderr
    assert message in done.stderr
    assert not (office / "x.parquet").exists()


@pytest.mark.skipif(os.name == "nt", reason="names on Windows are always text")
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_names_that_are_not_utf_8_are_said_to_be_none(suffix: str, ready: gig.Explainer, tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/x\xff" + suffix.encode()))
    plain = tmp_path / "x.parquet"
    pq.write_table(pa.table({name: [1.0] for name in ready.reference.names}), plain)
    with pytest.raises(gig.OutputError, match="its name is not UTF-8; choose another"):
        batch.run(ready, plain, odd)
    odd.write_bytes(plain.read_bytes())
    with pytest.raises(gig.InputError, match="its name is not UTF-8; rename it"):
        batch.run(ready, odd, tmp_path / "out.parquet")
    with pytest.raises(gig.OutputError, match="its name is not UTF-8"):
        ready([[1.0] * 4]).save(odd.with_suffix(".parquet"))
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["x.parquet", odd.name])


@pytest.mark.parametrize(
    "head",
    ['{"kind": 3, "ids": [1]}', '{"provenance": 3}', '{"provenance": {"model": 3}}', "[" * 100_000, "{", '{"ids": 3}'],
)
def test_a_result_that_lies_about_itself(head: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"a": [1]}).replace_schema_metadata({"gigrad": head}), tmp_path / "x.parquet")
    done = called("gigrad info x.parquet", tmp_path, monkeypatch)
    assert done.exit_code == 3, done.stderr
    assert "The gigrad metadata of x.parquet is damaged" in done.stderr


@pytest.mark.parametrize("manifest", [b"x\n", b"\xff}\n", b'{"part": 3}\n', b'{"part": {}}\n'])
def test_a_damaged_manifest_is_said_to_be_one(
    manifest: bytes, ready: gig.Explainer, office: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out.parquet.unfinished"
    folder.mkdir()
    (folder / "_gigrad-workspace").touch()
    (folder / "_manifest.jsonl").write_bytes(manifest)
    done = called("gigrad info out.parquet.unfinished", tmp_path, monkeypatch)
    assert done.exit_code == 3
    assert "is damaged" in done.stderr
    (folder / "_manifest.jsonl").write_bytes(json.dumps({"version": 1, "identity": {}}).encode() + b"\n" + manifest)
    with pytest.raises(gig.UnfinishedRunError, match=r"begun with another|is damaged"):
        batch.run(ready, office / "new.csv", tmp_path / "out.parquet")
    assert batch.run(ready, office / "new.csv", tmp_path / "out.parquet", restart=True).rows == 250
    assert not folder.exists()


def test_a_list_given_as_one_text_is_refused(ready: gig.Explainer, office: Path) -> None:
    rows = pq.read_table(office / "new.parquet").to_batches()[0]
    with pytest.raises(gig.InputError, match="id_cols must be a list of columns; got the text 'number'"):
        batch.explain_batch(ready, rows, id_cols="number")
    with pytest.raises(gig.InputError, match="columns must be a list of columns; got the text 'age'"):
        batch.explain_batch(ready, rows, columns="age")
    options: dict[str, Any] = {"everybody": True, "higher_is_better": False}
    for wrong, message in (
        ({"exclude": "age"}, "exclude must be a list of features or groups; got 'age'"),
        ({"higher_is_better": "no"}, "higher_is_better must be True .*; got 'no'"),
        ({"groups": ["age"]}, "groups must be a dict"),
        ({"cutoff": "half"}, "cutoff must be a finite number; got 'half'"),
    ):
        with pytest.raises(gig.InputError, match=message):
            reason_task(ready, rows.schema, **{**options, **wrong})
