"""What is likely to be a mistake about reasons is said: swapped tables, reversed directions, texts, columns."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from unchecked import unchecked

import gigrad as gig
from gigrad._reasons.doubts import is_prohibited
from gigrad._reasons.statements import Statement
from gigrad.batch.reasons import reason_task
from gigrad.batch.run import Job, run_task
from gigrad.batch.sources import Source

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(300, 3)), columns=["debt", "income", "tenure"]).round(2)
BAD = (X["debt"] - X["income"] + RNG.normal(size=300) > 0).astype(int)
MODEL = LogisticRegression().fit(X, BAD)
RISK = MODEL.predict_proba(X)[:, 1]
REFUSED, APPROVED = X[RISK > 0.6], X[RISK < 0.4]


def said(category: type[Warning], *arguments: Any, **options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gig.reasons(*arguments, **options)
    return [str(w.message) for w in caught if w.category is category]


# ---------------------------------------------------------------- swapped tables, reversed directions


def test_refused_against_approved_is_what_reasons_are_for() -> None:
    assert not said(gig.ReasonsWarning, gig.explain(MODEL, REFUSED, APPROVED), higher_is_better=False)
    everybody = gig.explain(MODEL, X, X)  # some score better than the mean, some worse
    assert not said(gig.ReasonsWarning, everybody, higher_is_better=False)
    assert not said(gig.ReasonsWarning, everybody, higher_is_better=True)
    assert not said(gig.ReasonsWarning, everybody[:0], higher_is_better=True)


def test_swapped_tables_and_a_reversed_direction_are_said() -> None:
    for e, better in ((gig.explain(MODEL, APPROVED, REFUSED), False), (gig.explain(MODEL, REFUSED, APPROVED), True)):
        (message,) = said(gig.ReasonsWarning, e, higher_is_better=better)
        assert f"{len(e)} of the {len(e)} explained rows score better than the reference" in message
        assert message.endswith("Are the rows and the reference swapped, or is higher_is_better reversed?")


def test_rows_beyond_the_cutoff_are_said() -> None:
    reference = gig.references.approved(X, RISK, 0.4, higher_is_better=False)
    mostly = pd.concat([APPROVED.head(9), REFUSED.head(3)])
    e = gig.explain(MODEL, mostly, reference)
    (message,) = said(gig.ReasonsWarning, e)
    assert message.startswith("9 of the 12 explained rows pass the reference's cutoff, 0.4")
    assert not said(gig.ReasonsWarning, e, higher_is_better=False)  # who says it again means it
    assert not said(gig.ReasonsWarning, gig.explain(MODEL, REFUSED, reference))


def test_rows_beyond_a_reference_whose_cutoff_is_in_other_units_are_said() -> None:
    reference = gig.references.approved(X, RISK, 0.6, higher_is_better=False)
    e = gig.explain(MODEL, X[RISK < 0.1], reference, output="margin")
    (message,) = said(gig.ReasonsWarning, e)
    assert "score better than the reference" in message
    assert not said(gig.ReasonsWarning, e, higher_is_better=False)  # who says it again means it
    assert not said(gig.ReasonsWarning, gig.explain(MODEL, REFUSED, reference, output="margin"))


# ---------------------------------------------------------------- texts


def two_sided() -> gig.Explanation:
    """The farther from 32, the worse: obligations of 16 and of 48 are reasons, where 32 is typical."""
    graph = gig.function(
        lambda x: -((x[:, 0] - 32.0) ** 2), lambda x: np.column_stack([-2.0 * (x[:, 0] - 32.0), 0 * x[:, 1]]),
        ["obligations", "income"],
    )  # fmt: skip
    rows = pd.DataFrame({"obligations": [16.0, 48.0], "income": [1.0, 2.0]})
    return gig.explain(graph, rows, pd.DataFrame({"obligations": [32.0] * 3, "income": [1.0] * 3}))


def test_one_text_for_both_sides_of_the_typical_value_is_said() -> None:
    e = two_sided()
    text = {"obligations": "Obligations too high for income"}
    (message,) = said(gig.StatementWarning, e, statements=text, higher_is_better=True)
    assert "'Obligations too high for income' for 'obligations'" in message
    assert not said(gig.StatementWarning, e[:1], statements=text, higher_is_better=True)  # one side only
    for entry in (
        [{"statement": "Too high", "than_typical": "higher"}, {"statement": "Too low", "than_typical": "lower"}],
        {"statement": "Amount of obligations", "than_typical": "either"},
        [{"statement": "Low", "below": 20}, {"statement": "High", "at_least": 40}],
    ):
        assert not said(gig.StatementWarning, e, statements={"obligations": entry}, higher_is_better=True)
    grouped = {"burden": ["obligations", "income"]}
    member = {"burden": {"statement": "Burden too high", "column": "obligations"}}
    assert said(gig.StatementWarning, e, statements=member, groups=grouped, higher_is_better=True)
    whole = {"burden": "Burden too high"}  # of a group as a whole nothing is known
    assert not said(gig.StatementWarning, e, statements=whole, groups=grouped, higher_is_better=True)


def test_a_text_for_either_side_holds_for_every_value() -> None:
    either = Statement("a", "Length of employment", than_typical="either")
    assert all(either.holds(-1.0, value, 3.0) for value in (2.0, 3.0, 4.0, None))
    assert Statement("a", "x", than_typical="either", below=3.0).holds(-1.0, 2.0, 1.0)
    assert not Statement("a", "x", than_typical="either", below=3.0).holds(-1.0, 4.0, 1.0)
    assert Statement("a", "Not known", value="missing", than_typical="either").holds(-1.0, None, 1.0)
    with pytest.raises(gig.InputError, match="must have no condition on the size of the value"):
        Statement("a", "x", value="missing", than_typical="lower")


# ---------------------------------------------------------------- columns


@pytest.mark.parametrize(
    "name",
    ["age", "AGE", "applicantAge", "age_years", "Age (years)", "sex", "sex=female", "personal_status_sex", "SEX_2",
     "race", "Gender", "marital_status", "national-origin", "date_of_birth", "DOB", "religion", "is_pregnant",
     "foreign_worker", "public assistance income", "age_at_loan", "loan_applicant_age", "birth_year",
     "place of birth", "is_female", "sex=male", "maritalstatus", "dateofbirth"],
)  # fmt: skip
def test_names_like_a_prohibited_basis(name: str) -> None:
    assert is_prohibited(name)


@pytest.mark.parametrize(
    "name",
    ["mortgage", "percentage", "average_balance", "language", "usage", "package", "stage", "Essex", "trace",
     "racecourse", "account_age", "age_of_oldest_account", "vehicleAge", "credit_age_months", "colorado", "agent",
     "x1", "embrace", "vehicle_age_at_loan", "customer_account_age"],
)  # fmt: skip
def test_names_that_only_contain_one(name: str) -> None:
    assert not is_prohibited(name)


def with_age() -> tuple[Any, pd.DataFrame, pd.DataFrame]:
    table = X.rename(columns={"tenure": "age", "income": "mortgage"}).assign(sex=RNG.integers(0, 2, len(X)))
    model = LogisticRegression().fit(table.drop(columns="sex"), BAD)
    return model, table.drop(columns="sex"), table


def test_a_column_named_like_one_is_said_once_unless_it_is_meant() -> None:
    model, table, _ = with_age()
    e = gig.explain(model, table[RISK > 0.6], table[RISK < 0.4])
    (message,) = said(gig.ReasonsWarning, e, higher_is_better=False)
    assert "named like a prohibited basis: 'age'." in message
    assert "permitted=['age']" in message
    assert not said(gig.ReasonsWarning, e, higher_is_better=False, permitted=["age"])
    assert said(gig.ReasonsWarning, e, higher_is_better=False, groups={"person": ["age", "debt"]})
    for wrong, why in (("age", "a list of columns; got 'age'"), (["ages"], "'ages' is not one"), (3, "got 3")):
        with pytest.raises(gig.InputError, match=f"permitted must .*{why}"):
            gig.reasons(e, higher_is_better=False, permitted=unchecked(wrong))


def test_a_column_that_earns_nothing_is_not_used() -> None:
    graph = gig.function(lambda x: x[:, 0], lambda x: x * 0.0 + [1.0, 0.0], ["debt", "age"])
    e = gig.explain(graph, [[2.0, 30.0]], [[1.0, 50.0]])
    assert not said(gig.ReasonsWarning, e, higher_is_better=False)


def test_batches_say_it_once(tmp_path: Path) -> None:
    model, table, _ = with_age()
    reference = gig.references.approved(table, RISK, 0.4, higher_is_better=False)
    explainer = gig.Explainer(model, reference)
    table.to_parquet(tmp_path / "rows.parquet")

    source = Source.open(tmp_path / "rows.parquet")
    cases: list[tuple[dict[str, Any], int]] = [({}, 1), ({"permitted": ["age"]}, 0)]
    for options, times in cases:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            task = reason_task(explainer, source.schema(), **options)
            run_task(task, source, tmp_path / f"reasons{times}.parquet", Job(batch_rows=50))
        assert len([w for w in caught if w.category is gig.ReasonsWarning]) == times
