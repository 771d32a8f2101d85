"""Records of reasons that somebody wrote anew, with a fingerprint that fits: an examination finds them out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import gigrad as gig
from gigrad._reasons.audit import fingerprint
from gigrad._reasons.case import Case, Context, reasons_of

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(80, 3)), columns=["age", "income", "debt"])
MODEL = LogisticRegression().fit(X, (X["age"] + 0.5 * X["income"] > 0).astype(int))
RISK = MODEL.predict_proba(X)[:, 1]
APPROVED = gig.references.approved(X, RISK, 0.5, higher_is_better=False)
GROUPS = {"money": ["income", "debt"]}


def record(groups: Any = None) -> dict[str, Any]:
    e = gig.explain(MODEL, X[RISK > 0.5].head(1), APPROVED)
    return gig.reasons(e, groups=groups).audit()[0]


def forged(real: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """A record with other content, whose outcome and fingerprint fit that content."""
    made = {k: v for k, v in {**real, **changed}.items() if k != "fingerprint"}
    case = Case(row_id=made["row_id"], credits=made["credits"], values=made["applicant"], **made["score"])
    made["outcome"] = reasons_of(case, Context.from_record(made)).as_record()
    return {**made, "fingerprint": fingerprint(made)}


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_what_was_not_changed_is_found_right(groups: Any) -> None:
    examined = gig.verify_reasons(forged(record(groups)), MODEL, APPROVED)
    assert examined.ok
    assert examined.largest_credit_difference < 1e-12


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_ranked_credits_must_be_those_of_the_features(groups: Any) -> None:
    real = record(groups)
    turned = dict(zip(real["credits"], reversed(real["credits"].values()), strict=True))
    false = forged(real, credits=turned)
    assert gig.replay_reasons(false).reasons[0].feature != gig.replay_reasons(real).reasons[0].feature
    assert any("a credit differs by" in d for d in gig.verify_reasons(false, MODEL, APPROVED).differences)


def test_an_error_in_the_record_excuses_nothing() -> None:
    real = record()
    twice = {name: 2.0 * credit for name, credit in real["credits"].items()}
    false = forged(real, credits=twice, feature_credits=twice, score={**real["score"], "error": 1e9})
    assert any("a credit differs by" in d for d in gig.verify_reasons(false, MODEL, APPROVED).differences)


def test_typical_values_direction_and_groups_are_compared() -> None:
    real = record()
    cases = {
        "other typical values": {"typical": dict.fromkeys(real["typical"], 0.0)},
        "higher_is_better=False": {"rules": {**real["rules"], "higher_is_better": True}},
        "other variables": {"groups": {"age": ["income"]}},
    }
    for message, changed in cases.items():
        examined = gig.verify_reasons(forged(real, **changed), MODEL, APPROVED)
        assert any(message in d for d in examined.differences), message


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"credits": None}, "must have 'credits' as a dict"),
        ({"rules": "none"}, "must have 'rules' as a dict"),
        ({"rules": {}}, "must be one from Reasons.audit; it is not: KeyError"),
        ({"score": {"prediction": 1.0}}, "must be one from Reasons.audit; it is not"),
        ({"credits": {"age": "much"}}, "'credits' in the record of .* must hold numbers only"),
        ({"feature_credits": {"age": None}}, "'feature_credits' in the record of .* must hold numbers only"),
        ({"provenance": {"model": 3}}, "must have records of model, output, reference and settings"),
    ],
)
def test_records_that_are_none_are_refused(changed: dict[str, Any], message: str) -> None:
    made = {k: v for k, v in {**record(), **changed}.items() if k != "fingerprint"}
    with pytest.raises(gig.InputError, match=message):
        gig.verify_reasons({**made, "fingerprint": fingerprint(made)}, MODEL, APPROVED)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": "gigrad.reasons/1", "score": NaN}', "must hold values that JSON can represent"),
        ("[" * 100_000, "must be a JSON object"),
    ],
)
def test_texts_that_are_no_record(text: str, message: str) -> None:
    with pytest.raises(gig.InputError, match=message):
        gig.replay_reasons(text)
