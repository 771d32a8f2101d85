"""Reasons: the classic method on scorecards, the order and its ties, what is left out, and the texts."""

from __future__ import annotations

import csv
import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder

import gigrad as gig
from gigrad.adverse.ranking import order
from gigrad.adverse.statements import read_statements
from gigrad.graph import Column, Graph, Input, Tree, assemble


def made(values: Any, data: Any = None, names: Any = None, **more: Any) -> gig.Explanation:
    """An explanation with given credits, of a score where higher is better; base 0."""
    values = np.asarray(values, dtype=float)
    n, p = values.shape
    names = tuple(names or "abcdefgh"[:p])
    data = np.zeros((n, p)) if data is None else data
    zero = np.zeros(n)
    facts = {"reference": {"higher_is_better": True, "typical": dict.fromkeys(names, 0.5), "note": "made up"}}
    return gig.Explanation(values, zero, values.sum(axis=1), zero, zero, data, names, ("points",), facts, **more)


def listed(found: Any, i: int = 0) -> list[str]:
    return [r.feature for r in found[i].reasons]


# ---------------------------------------------------------------- the classic method


def chain(column: int, edges: np.ndarray, points: np.ndarray) -> Tree:
    """A binned variable as one tree: `points[b]` for edges[b - 1] < x <= edges[b]; missing takes the last bin."""
    k = len(edges)
    feature = np.full(2 * k + 1, -1)
    feature[:k] = column
    left, right = np.full(2 * k + 1, -1), np.full(2 * k + 1, -1)
    left[:k] = k + np.arange(k)
    right[: k - 1], right[k - 1] = np.arange(1, k), 2 * k
    values = np.concatenate([np.zeros(k), points])
    threshold = np.concatenate([edges, np.zeros(k + 1)])
    return Tree(feature, threshold, left, right, np.zeros(2 * k + 1, bool), values)


@pytest.fixture(scope="module")
def scorecard() -> tuple[Graph, list[np.ndarray], list[np.ndarray]]:
    rng = np.random.default_rng(0)
    edges = [np.sort(rng.normal(size=4)) for _ in range(6)]
    points = [np.round(rng.normal(0, 20, 5)) for _ in range(6)]
    source = Input(6)
    score = assemble(
        source, [chain(j, e, p) for j, (e, p) in enumerate(zip(edges, points, strict=True))], np.array([600.0])
    )
    columns = tuple(Column(f"v{j}") for j in range(6))
    return Graph(columns, source, score, score, ("points",)), edges, points


def test_on_a_scorecard_the_reasons_are_the_points_below_the_reference(scorecard: Any) -> None:
    card, edges, points = scorecard
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 6))
    X[rng.random(X.shape) < 0.05] = np.nan
    scores = card.predict(X)
    cutoff = float(np.median(scores))
    r = gig.references.approved(X, scores, cutoff, higher_is_better=True, weights=rng.random(500))
    refused = X[scores < cutoff]
    found = gig.reasons(gig.explain(card, refused, r), top=4)

    def own_points(rows: np.ndarray) -> np.ndarray:
        bins = [np.where(np.isnan(rows[:, j]), 4, np.searchsorted(edges[j], rows[:, j])) for j in range(6)]
        return np.stack([points[j][bins[j]] for j in range(6)], axis=1)

    below = r.weights @ own_points(r.rows) - own_points(refused)
    assert len(found) == len(refused) > 100
    for i, lost in enumerate(below):
        classic = [f"v{j}" for j in np.argsort(-lost, kind="stable") if lost[j] > 1e-9][:4]
        assert listed(found, i) == classic
        np.testing.assert_allclose(
            [-x.credit for x in found[i].reasons], [lost[int(f[1])] for f in classic], atol=1e-11
        )
        assert found[i].shortfall == pytest.approx(lost.sum())
        assert found[i].against == (lost > 1e-9).sum()
        np.testing.assert_allclose(
            [x.share * lost.sum() for x in found[i].reasons], -np.array([x.credit for x in found[i].reasons])
        )


def test_a_binned_logistic_regression_gives_its_own_scorecard(table: Any) -> None:
    data = table("german_credit")
    good = (data["credit_risk"] == "good").astype(int)
    numbers, labels = ["duration_months", "credit_amount", "age"], ["checking_account_status", "savings_account"]
    X = data[[*numbers, *labels]]
    bins = make_column_transformer(
        (KBinsDiscretizer(5, encode="onehot", quantile_method="averaged_inverted_cdf"), numbers),
        (OneHotEncoder(), labels),
    )
    model = make_pipeline(bins, LogisticRegression()).fit(X, good)
    odds = model.decision_function(X)
    r = gig.references.approved(X, odds, 0.5, higher_is_better=True)
    refused = X[odds < 0.5]
    found = gig.reasons(gig.explain(model, refused, r, output="margin"), top=5)

    names = np.array([n.split("__")[1] for n in bins.get_feature_names_out()])
    terms = bins.transform(X).toarray() * model[-1].coef_[0]
    points = np.stack([terms[:, [n.startswith(c) for n in names]].sum(axis=1) for c in X.columns], axis=1)
    below = points[odds >= 0.5].mean(axis=0) - points[odds < 0.5]
    assert len(found) > 100
    for i, lost in enumerate(below):
        classic = [X.columns[j] for j in np.argsort(-lost, kind="stable") if lost[j] > 1e-9]
        assert listed(found, i) == classic
        credits = [-x.credit for x in found[i].reasons]
        np.testing.assert_allclose(credits, [lost[list(X.columns).index(f)] for f in classic], atol=1e-11)


def test_order_does_not_depend_on_columns_rows_threads_or_batch(scorecard: Any) -> None:
    card, edges, points = scorecard
    X = np.random.default_rng(2).normal(size=(60, 6))
    r = gig.references.all_applicants(X, higher_is_better=True)
    whole = gig.reasons(gig.explain(card, X, r, n_threads=1))
    again = gig.reasons(gig.explain(card, X, r, n_threads=2))
    assert whole.audit() == again.audit()

    turn = np.random.default_rng(3).permutation(6)
    source = Input(6)
    turned_score = assemble(source, [chain(i, edges[j], points[j]) for i, j in enumerate(turn)], np.array([600.0]))
    turned = Graph(tuple(Column(f"v{j}") for j in turn), source, turned_score, turned_score, ("points",))
    shuffled = np.random.default_rng(4).permutation(60)
    other = gig.reasons(
        gig.explain(turned, X[shuffled][:, turn], gig.references.all_applicants(X[:, turn], higher_is_better=True))
    )
    for i, j in enumerate(shuffled):
        assert listed(other, i) == listed(whole, j)
        np.testing.assert_allclose(
            [x.credit for x in other[i].reasons], [x.credit for x in whole[j].reasons], atol=1e-11
        )

    twice = gig.reasons(gig.explain(card, np.concatenate([X[:5], X[:5]]), r))
    for i in range(5):
        assert replace(twice[i], row_id=0) == replace(twice[i + 5], row_id=0)
        assert listed(twice, i) == listed(whole, i)


# ---------------------------------------------------------------- which, and in which order


def test_only_what_counts_against_the_applicant_is_a_reason_and_groups_come_first() -> None:
    e = made([[-3.0, 2.0, -4.0, -1.0, 0.0]])
    assert listed(gig.reasons(e)) == ["c", "a", "d"]
    assert listed(gig.reasons(e, top=1)) == ["c"]
    grouped = gig.reasons(e, groups={"g": ["a", "b"], "h": ["c", "d"]})
    assert listed(grouped) == ["h", "g"]
    assert [r.credit for r in grouped[0].reasons] == [-5.0, -1.0]
    assert grouped[0].reasons[0].value == {"c": 0.0, "d": 0.0}
    worse = replace(e, provenance={"reference": {}})
    assert listed(gig.reasons(worse, higher_is_better=False)) == ["b"]


def test_shares_are_of_the_shortfall_and_min_share_cuts_by_them() -> None:
    e = made([[-6.0, 2.0, -5.0, -1.0], [-1.0, 3.0, -1.5, 0.0]])
    found = gig.reasons(e)
    assert [r.share for r in found[0].reasons] == [0.6, 0.5, 0.1]
    assert [r.share for r in found[1].reasons] == [None, None]
    assert found[1].shortfall == -0.5
    cut = gig.reasons(e, min_share=0.3)
    assert listed(cut, 0) == ["a", "c"]
    assert listed(cut, 1) == ["c", "a"]


def test_ties_go_to_the_larger_range_then_to_the_earlier_column() -> None:
    tie = -0.1 - 0.2  # not -0.3, to the bit
    values = [[-0.3, tie, -0.3, -0.3], [0.0, 0.0, 0.5, 0.0], [-0.05, 0.0, 0.0, -0.05]]
    assert listed(gig.reasons(made(values))) == ["c", "a", "b", "d"]
    ranges = {"a": 1, "b": 2, "c": 1, "d": 3}
    assert listed(gig.reasons(made(values), ranges=ranges)) == ["d", "b", "a", "c"]
    rules = gig.reasons(made(values)).audit()[0]["rules"]
    assert "larger range" in rules["tie_rule"]
    assert rules["ranges"]["c"] == pytest.approx(0.8)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=8), st.lists(st.integers(0, 2), min_size=8, max_size=8))
def test_the_order_is_the_tie_rule(losses: list[int], ranges: list[int]) -> None:
    noisy = np.array(losses, dtype=float) + 1e-14 * np.arange(len(losses))
    wanted = sorted((j for j in range(len(losses)) if losses[j] > 0), key=lambda j: (-losses[j], -ranges[j], j))
    assert order(noisy, ranges[: len(losses)], 1e-12) == wanted


def test_what_is_excluded_is_on_the_record_with_its_rank() -> None:
    e = made([[-3.0, 2.0, -4.0, -1.0]])
    found = gig.reasons(e, top=2, exclude=["c", "b"])
    assert listed(found) == ["a", "d"]
    c, b = found[0].excluded
    assert (c.feature, c.would_rank, c.principal, c.credit) == ("c", 1, True, -4.0)
    assert (b.would_rank, b.principal) == (None, False)
    assert "excluded: c (would rank 1)" in str(found)
    assert found.audit()[0]["outcome"]["excluded"][0]["would_rank"] == 1


def test_reasons_within_the_estimated_error_are_marked() -> None:
    e = made([[-3.0, -2.0, -1.0]])
    assert gig.reasons(e)[0].settled
    assert gig.reasons(replace(e, error=np.array([0.4])))[0].settled
    assert not gig.reasons(replace(e, error=np.array([0.6])))[0].settled
    assert gig.reasons(replace(made([[-3.0, -1.0]]), error=np.array([0.6])), top=1)[0].settled


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        ({"provenance": {}}, {}, "higher_is_better must be given"),
        ({}, {"higher_is_better": False}, "False here and True in the reference"),
        ({}, {"higher_is_better": "no"}, "must be True or False"),
        ({}, {"top": 0}, "top must be a positive whole number"),
        ({}, {"min_share": 1.5}, "min_share must lie between 0 and 1"),
        ({}, {"exclude": ["z"]}, "'z' is none of them"),
        ({}, {"exclude": ["a"], "groups": {"g": ["a", "b"]}}, "exclude the group"),
        ({}, {"exclude": "a"}, "must be a list"),
        ({}, {"groups": {"g": ["a", "z"]}}, "'z' is not one"),
        ({}, {"groups": {"g": ["a"], "h": ["a"]}}, "may be in one group"),
        ({}, {"ranges": {"a": 1.0}}, "'b' is missing"),
        ({}, {"row_ids": [1]}, "one id a row, 2"),
        ({"values": np.array([[np.nan, 1.0], [1.0, 1.0]])}, {}, "finite credits"),
        ({"rest": np.array([0.1, 0.0])}, {}, "no principal reason may be left out"),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(change: Any, arguments: Any, message: str) -> None:
    with pytest.raises(gig.InputError, match=message):
        gig.reasons(replace(made([[-1.0, 2.0], [1.0, 1.0]]), **change), **arguments)


def test_several_outputs_and_other_things_are_refused() -> None:
    values = np.zeros((2, 3, 2))
    flat = np.zeros((2, 2))
    e = gig.Explanation(values, flat, flat, flat, flat, np.zeros((2, 3)), ("a", "b", "c"), ("good", "bad"))
    with pytest.raises(gig.InputError, match=r"one score.*'good', 'bad'"):
        gig.reasons(e, higher_is_better=True)
    with pytest.raises(gig.InputError, match="needs an Explanation"):
        gig.reasons(values, higher_is_better=True)


def test_explaining_only_approved_applicants_asks_for_the_direction(scorecard: Any) -> None:
    card = scorecard[0]
    X = np.random.default_rng(5).normal(size=(300, 6))
    scores = card.predict(X)
    r = gig.references.approved(X, scores, 600, higher_is_better=True)
    e = gig.explain(card, X[scores > 600], r)
    with pytest.raises(gig.InputError, match=r"Every explained row passes.*mixed up"):
        gig.reasons(e)
    assert len(gig.reasons(e, higher_is_better=True)) == (scores > 600).sum()


# ---------------------------------------------------------------- texts

BOOK = {
    "years": [
        {"code": "B1", "statement": "No bank relationship", "value": "missing"},
        {"code": "B2", "statement": "Bank relationship too short", "below": 2},
        {"code": "B3", "statement": "Young bank relationship", "at_least": 2, "below": 5},
        {"code": "B4", "statement": "Bank relationship"},
    ],
    "home": [
        {"statement": "Does not own a home", "equals": ["rent", "free"]},
        {"code": "H2", "statement": "Home | ownership", "sign": "-", "value": "present"},
    ],
    "debt": [
        {"statement": "Too much debt", "than_typical": "higher", "code": "D"},
        {"statement": "Too little borrowing history", "than_typical": "lower"},
    ],
}


def spoken(years: Any, home: str, debt: float, book: Any = BOOK) -> list[tuple[str | None, str | None]]:
    data = pd.DataFrame({"years": [years], "home": [home], "debt": [debt]})
    e = made([[-3.0, -2.0, -1.0]], data, ("years", "home", "debt"))
    return [(r.code, r.statement) for r in gig.reasons(e, statements=book)[0].reasons]


def test_the_first_statement_whose_conditions_hold_is_given() -> None:
    assert spoken(np.nan, "rent", 1.0) == [
        ("B1", "No bank relationship"),
        (None, "Does not own a home"),
        ("D", "Too much debt"),
    ]
    assert spoken(1.99, "own", 0.1)[:2] == [("B2", "Bank relationship too short"), ("H2", "Home | ownership")]
    assert spoken(2.0, "own", 0.1)[0][0] == "B3"
    assert spoken(5.0, "own", 0.1)[2] == (None, "Too little borrowing history")
    assert spoken(5.0, "own", 0.1)[0][0] == "B4"


def test_csv_and_toml_files_say_the_same_as_a_dict(tmp_path: Path) -> None:
    toml = tmp_path / "book.toml"
    lines = []
    for feature, entries in BOOK.items():
        for entry in entries:
            lines.append(f"[[{feature}]]")
            lines += [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
    toml.write_text("\n".join(lines))
    table = tmp_path / "book.csv"
    head = ["feature", "code", "statement", "sign", "value", "at_least", "below", "equals", "than_typical"]
    with table.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, head)
        writer.writeheader()
        for feature, entries in BOOK.items():
            for entry in entries:
                flat = {k: "|".join(v) if isinstance(v, list) else v for k, v in entry.items()}
                writer.writerow({"feature": feature, **flat})
    assert read_statements(toml) == read_statements(BOOK) == read_statements(str(table))
    assert spoken(1.0, "rent", 2.0, toml) == spoken(1.0, "rent", 2.0)


def test_groups_name_the_member_that_a_condition_reads() -> None:
    data = pd.DataFrame({"late": [3], "missed": [0]})
    e = made([[-1.0, -1.0]], data, ("late", "missed"))
    book = {"payments": [{"statement": "Serious delay", "column": "late", "at_least": 2}, "Payment history"]}
    found = gig.reasons(e, statements=book, groups={"payments": ["late", "missed"]})
    assert found[0].reasons[0].statement == "Serious delay"
    assert found[0].reasons[0].value == {"late": 3, "missed": 0}
    with pytest.raises(gig.InputError, match="must say which member is meant: column = one of 'late', 'missed'"):
        gig.reasons(e, statements={"payments": {"statement": "x", "below": 2}}, groups={"payments": ["late", "missed"]})


def test_features_without_a_text_are_reported_not_skipped() -> None:
    e = made([[-3.0, -2.0, -1.0], [-1.0, -2.0, 3.0]])
    book = {"a": "A text", "typo": "never used", "c": {"statement": "C", "sign": "+"}}
    with pytest.warns(gig.StatementWarning, match=r"'b' \(2\), 'c' \(1\)"):
        found = gig.reasons(e, statements=book)
    assert listed(found) == ["a", "b", "c"]
    assert found.reasons_without_statement == {"b": 2, "c": 1}
    assert found.features_without_statement == ("b",)
    assert found.unused_statements == ("typo",)
    assert json.loads(found.to_json())["reasons_without_statement"] == {"b": 2, "c": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gig.reasons(e)


def test_letters_that_would_repeat_themselves_are_reported() -> None:
    found = gig.reasons(made([[-3.0, -2.0, -1.0]]), statements={"a": "Same", "b": "Same", "c": "Other"})
    assert found.repeated_statements == {0: ("a", "b")}


@pytest.mark.parametrize(
    ("book", "message"),
    [
        ({"a": 3}, "must be a text, or a dict"),
        ({"a": ""}, "must be a text"),
        ({"a": {"code": "x"}}, "needs a 'feature' and a 'statement'"),
        ({"a": {"statement": "x", "bellow": 3}}, "'bellow' came"),
        ({"a": {"statement": "x", "below": "low"}}, "must be a number; 'low' came"),
        ({"a": {"statement": "x", "below": 1, "at_least": 1}}, "at_least < below"),
        ({"a": {"statement": "x", "value": "gone"}}, "'missing' or 'present'"),
        ({"a": {"statement": "x", "value": "missing", "below": 1}}, "missing value and for its size"),
        ({"a": {"statement": "x", "sign": "up"}}, "'\\+' or '-'"),
        ({"a": {"statement": "x", "column": "b"}}, "column is for groups"),
        ("book.xlsx", "must be a .csv or .toml file"),
        ("absent.csv", "cannot be read"),
        (7, "must be a dict or the path"),
    ],
)
def test_bad_statements_are_refused(book: Any, message: str) -> None:
    with pytest.raises(gig.InputError, match=message):
        gig.reasons(made([[-1.0, -2.0]]), statements=book)


def test_broken_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("[[a\n")
    (tmp_path / "b.csv").write_text("name,text\na,b\n")
    (tmp_path / "c.csv").write_bytes(b"feature,statement\n\xff\xfe\x00,x\n")
    (tmp_path / "d.csv").write_text("feature,statement\na,b,c,d\n")
    for name, message in (("a.toml", "not a TOML file"), ("b.csv", "'feature' is missing"), ("c.csv", "cannot be read"),
                          ("d.csv", "more cells than columns")):  # fmt: skip
        with pytest.raises(gig.InputError, match=message):
            gig.reasons(made([[-1.0]]), statements=tmp_path / name)


# ---------------------------------------------------------------- outputs

HOSTILE = [
    '=HYPERLINK("http://x")',
    "@SUM(A1)",
    "-2+3",
    "\t=1",
    'a,b\n"c"',
    "\x00\x1b[31m",
    "{value.__class__}",
    "名前 ✓",
    "'",
]


def test_the_table_is_the_same_in_every_form(tmp_path: Path) -> None:
    data = pd.DataFrame({"a": [1.0, np.nan], "b": ["x", "y"]}, index=["p", "q"])
    found = gig.reasons(
        made([[-1.0, -2.0], [-1.0, 0.5]], data, ("a", "b")),
        statements={"a": {"code": "A", "statement": "Aa"}, "b": "Bb"},
    )
    frame = found.to_frame()
    assert frame["row_id"].tolist() == ["p", "p", "q"]
    assert frame["feature"].tolist() == ["b", "a", "a"]
    assert frame["value"].tolist()[:2] == ["x", "1"]
    assert pd.isna(frame["value"].iloc[2])
    found.to_parquet(tmp_path / "r.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "r.parquet"), frame, check_dtype=False)
    found.to_csv(tmp_path / "r.csv")
    again = pd.read_csv(tmp_path / "r.csv")
    assert again["credit"].tolist() == frame["credit"].tolist()
    other = found.to_frame(library="polars")
    assert other["statement"].to_list() == frame["statement"].tolist()
    letter = json.loads(found.to_json(tmp_path / "r.json"))
    assert letter == json.loads((tmp_path / "r.json").read_text())
    assert letter["reference"] == "made up"
    assert letter["applicants"][1]["reasons"][0]["value"] is None
    assert found.of("q").reasons[0].feature == "a"
    with pytest.raises(gig.InputError, match="0 have 'z'"):
        found.of("z")
    assert "Applicant p: score -3, reference 0" in str(found)


def test_hostile_texts_neither_crash_nor_run_in_a_spreadsheet(tmp_path: Path) -> None:
    names = tuple(HOSTILE)
    n = len(names)
    data = pd.DataFrame([HOSTILE], columns=list(names))
    found = gig.reasons(
        made(-np.ones((1, n)), data, names), top=n, statements={h: h for h in HOSTILE}, row_ids=["=1+1"]
    )
    json.loads(found.to_json())
    record = json.loads(json.dumps(found.audit()[0]))
    assert gig.replay_reasons(record) == found[0]
    str(found)
    found.to_parquet(tmp_path / "r.parquet")
    found.to_csv(tmp_path / "r.csv")
    with (tmp_path / "r.csv").open(encoding="utf-8", newline="") as file:
        cells = [cell for line in csv.reader(file) for cell in line]
    risky = [c for c in cells if c.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert all(float(c) < 0 for c in risky)


def test_no_rows_give_no_reasons(tmp_path: Path) -> None:
    found = gig.reasons(made(np.zeros((0, 3))))
    assert len(found) == 0
    found.to_parquet(tmp_path / "r.parquet")
    assert len(pd.read_parquet(tmp_path / "r.parquet")) == 0
    assert found.audit() == []


# ---------------------------------------------------------------- the record


def test_the_record_alone_gives_the_same_reasons(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    data = pd.DataFrame({"a": rng.normal(size=30), "b": rng.choice(["x", "y"], 30), "c": rng.integers(0, 4, 30),
                         "d": pd.date_range("2020-01-01", periods=30)})  # fmt: skip
    data.loc[3, "a"] = np.nan
    e = made(rng.normal(size=(30, 4)).round(1), data, ("a", "b", "c", "d"))
    book = {"a": [{"statement": "gone", "value": "missing"}, "A"], "g": "G", "d": "D"}
    found = gig.reasons(e, top=2, statements=book, groups={"g": ["b", "c"]}, exclude=["d"], min_share=0.01)
    found.write_audit(tmp_path / "audit.jsonl")
    lines = (tmp_path / "audit.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 30
    for line, applicant, record in zip(lines, found, found.audit(), strict=True):
        assert json.loads(line) == record
        assert gig.replay_reasons(line) == applicant
        assert sum(record["feature_credits"][m] for m in record["groups"]["g"]) == pytest.approx(record["credits"]["g"])
        assert record["provenance"] == e.provenance


def test_a_changed_record_is_refused() -> None:
    from gigrad.adverse.audit import fingerprint

    record = gig.reasons(made([[-1.0, -2.0]])).audit()[0]
    for path in (("credits", "a"), ("score", "base"), ("outcome", "shortfall")):
        changed = json.loads(json.dumps(record))
        changed[path[0]][path[1]] = 9.0
        with pytest.raises(gig.InputError, match="was changed"):
            gig.replay_reasons(changed)
    forged = json.loads(json.dumps(record))
    forged["credits"]["a"] = -3.0
    del forged["fingerprint"]
    forged["fingerprint"] = fingerprint(forged)
    with pytest.raises(gig.InputError, match="do not follow"):
        gig.replay_reasons(forged)
    with pytest.raises(gig.InputError, match="format"):
        gig.replay_reasons({})
    with pytest.raises(gig.InputError, match="JSON object"):
        gig.replay_reasons("{")
