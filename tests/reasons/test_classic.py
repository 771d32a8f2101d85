"""Points below maximum and points below average: by hand, on the record, and on the command line."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conformance import rows_scorecards
from office import called

import gigrad as gig
from gigrad.errors import InputError


@pytest.fixture(scope="module")
def card() -> Any:
    return gig.Scorecard.read(rows_scorecards.CARD)


@pytest.fixture(scope="module")
def everybody() -> Any:
    return rows_scorecards.applicants()


def test_both_methods_by_hand(card: Any, everybody: Any) -> None:
    points = card.points(everybody)
    names = [c.name for c in card.characteristics]
    best = {"age": 31, "debt": 40, "home": 15, "grade": 9}
    lacks = {
        "below maximum": points - [best[name] for name in names],
        "below average": points - points.mean(axis=0),
    }
    for method, want in lacks.items():
        population = everybody if method == "below average" else None
        found = gig.scorecard_reasons(card, everybody[:30], method, population, top=9, permitted=["age"])
        assert found.method == f"points {method}"
        for i, applicant in enumerate(found):
            said = {reason.feature: reason.credit for reason in applicant.reasons}
            mine = {name: want[i, j] for j, name in enumerate(names) if want[i, j] < -1e-9}
            assert said.keys() == mine.keys()
            assert all(abs(said[name] - mine[name]) < 1e-9 for name in mine)
            losses = [reason.credit for reason in applicant.reasons]
            assert losses == sorted(losses)


def test_where_few_points_are_better(card: Any, everybody: Any) -> None:
    found = gig.scorecard_reasons(card, everybody[:5], "below maximum", higher_is_better=False, permitted=["age"])
    assert found.method == "points above minimum"
    assert all(reason.credit > 0 for applicant in found for reason in applicant.reasons)
    average = gig.references.average_points(card, everybody, higher_is_better=False)
    assert average.method == "points above average"


def test_gig_is_the_default(card: Any, everybody: Any) -> None:
    reference = gig.references.approved(everybody, card.predict(everybody), 350, higher_is_better=True)
    new = gig.scorecard_reasons(card, everybody[:4], population=reference, permitted=["age"])
    want = gig.reasons(gig.explain(card, everybody[:4], reference), permitted=["age"], higher_is_better=True)
    assert new.method == want.method == "GIG"
    assert [a.reasons for a in new] == [a.reasons for a in want]


def test_the_method_is_on_the_record_and_verified(card: Any, everybody: Any, tmp_path: Path) -> None:
    found = gig.scorecard_reasons(card, everybody[:6], "below average", everybody, permitted=["age"])
    record = found.audit()[0]
    assert record["method"] == record["provenance"]["reference"]["method"] == "points below average"
    assert json.loads(found.to_json())["method"] == "points below average"
    assert "points below average" in str(found)
    average = gig.references.average_points(card, everybody)
    assert gig.verify_reasons(record, card, average).ok
    assert gig.replay_reasons(record).reasons == found[0].reasons
    plain = gig.references.all_applicants(everybody, higher_is_better=True)  # the same rows, not called a method
    assert gig.verify_reasons(record, card, plain).differences == (
        "the method is GIG, the record says points below average",
    )
    found.write_audit(tmp_path / "records.jsonl")
    assert gig.verify_ledger(tmp_path / "records.jsonl", card, average).ok
    assert not gig.verify_ledger(tmp_path / "records.jsonl", card, gig.references.best_points(card)).ok
    assert next(iter(gig.read_ledger(tmp_path / "records.jsonl")))["method"] == "points below average"


def test_a_record_from_before_methods_were_written_is_still_verified(card: Any, everybody: Any) -> None:
    from gigrad._reasons.audit import fingerprint

    reference = gig.references.approved(everybody, card.predict(everybody), 350, higher_is_better=True)
    record = gig.scorecard_reasons(card, everybody[:1], population=reference, permitted=["age"]).audit()[0]
    old = {key: value for key, value in record.items() if key not in ("method", "fingerprint")}
    assert gig.verify_reasons({**old, "fingerprint": fingerprint(old)}, card, reference).ok


def test_a_thinned_reference_is_no_method_any_more(card: Any, everybody: Any) -> None:
    average = gig.references.average_points(card, everybody)
    assert gig.references.sample(average, 20).method == ""


def test_a_saved_explainer_keeps_the_method(card: Any, everybody: Any, tmp_path: Path) -> None:
    gig.Explainer(card, gig.references.best_points(card)).save(tmp_path / "old.gig")
    e = gig.Explainer.load(tmp_path / "old.gig")(everybody[:3])
    assert gig.reasons(e, permitted=["age"]).method == "points below maximum"


MISTAKES = {
    "method must be one of": lambda card: gig.scorecard_reasons(card, [[1]], "average"),
    "leave out population": lambda card: gig.scorecard_reasons(card, [[1]], "below maximum", [[1]]),
    "needs a population": lambda card: gig.scorecard_reasons(card, [[1]], "below average"),
    "card must be a gigrad.Scorecard": lambda card: gig.references.average_points({}, [[1]]),
    "got a ndarray": lambda card: gig.scorecard_reasons(np.zeros(3), [[1]], "below maximum"),
}


@pytest.mark.parametrize("words", MISTAKES)
def test_mistakes_are_said(words: str, card: Any) -> None:
    with pytest.raises(InputError, match=words):
        MISTAKES[words](card)


# ---------------------------------------------------------------- the command line


@pytest.fixture
def office(tmp_path: Path, everybody: Any) -> Path:
    lines = ["variable,bin,points", "base,,300"]
    for variable, bins in rows_scorecards.CARD.items():
        if isinstance(bins, dict):
            lines += [f'{variable},"{name}",{points}' for name, points in bins.items()]
    (tmp_path / "card.csv").write_text("\n".join(lines) + "\n")
    everybody.to_parquet(tmp_path / "everybody.parquet", index=False)
    return tmp_path


@pytest.mark.parametrize("method", ["below-maximum", "below-average"])
def test_methods_on_the_command_line(
    method: str, office: Path, card: Any, everybody: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = f"--method {method}{' --reference everybody.parquet' if method == 'below-average' else ''}"
    asked = f"gigrad reasons card.csv everybody.parquet {words} --cutoff 350 --permitted age --ids allow"
    assert called(f"{asked} --audit old.jsonl -o old.csv", office, monkeypatch).exit_code == 0
    refused = everybody[card.predict(everybody) < 350]
    population = everybody if method == "below-average" else None
    want = gig.scorecard_reasons(card, refused, method.replace("-", " "), population, permitted=["age"])
    with (office / "old.csv").open() as file:
        lines = list(csv.DictReader(file))
    mine = [(reason.feature, reason.credit) for applicant in want for reason in applicant.reasons]
    assert [line["feature"] for line in lines] == [name for name, _ in mine]
    np.testing.assert_allclose([float(line["credit"]) for line in lines], [c for _, c in mine], atol=1e-9)
    verify = "gigrad verify old.jsonl --model card.csv"
    assert called(f"{verify} {words}", office, monkeypatch).exit_code == 0
    other = "--method below-maximum" if method == "below-average" else "--reference everybody.parquet"
    assert called(f"{verify} {other}", office, monkeypatch).exit_code != 0
    assert called(f"gigrad save card.csv {words} -o old.gig", office, monkeypatch).exit_code == 0
    assert gig.Explainer.load(office / "old.gig").provenance["reference"]["method"] == want.method


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("card.csv --method average", "below-maximum or below-average"),
        ("card.csv --method below-average", "--reference must be given"),
        ("card.csv --method below-maximum --reference everybody.parquet", "leave out --reference"),
        ("card.csv --method below-maximum --output margin", "leave out --output"),
        ("card.gig --method below-maximum", "must have a scorecard"),
    ],
)
def test_mistakes_on_the_command_line(
    words: str, said: str, office: Path, card: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    gig.import_model(card).save(office / "card.gig")
    model, rest = words.split(" ", 1)
    done = called(f"gigrad explain {model} everybody.parquet {rest} -o out.csv", office, monkeypatch)
    assert done.exit_code != 0
    assert said in " ".join(done.stderr.split())
