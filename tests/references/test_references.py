"""Reference populations: who is in them, what their lines say, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from unchecked import unchecked

import gigrad as gig
from gigrad.graph import Column, Graph, Input, Tree, assemble
from gigrad.references import all_applicants, approved, cutoff_band, distill, nearest_approved, sample, typical
from gigrad.references.nearest import distances
from gigrad.references.typical import typical_values, weighted_medians

RNG = np.random.default_rng(3)


@pytest.fixture(scope="module")
def people() -> tuple[pd.DataFrame, np.ndarray]:
    """Mixed columns with missing values and ties, and a score that depends on them."""
    n = 800
    income = RNG.lognormal(10, 0.6, n)
    income[RNG.random(n) < 0.1] = np.nan
    frame = pd.DataFrame(
        {
            "income": income,
            "age": RNG.integers(18, 80, n),
            "home": pd.Categorical(RNG.choice(["rent", "own", "free"], n, p=[0.5, 0.4, 0.1])),
            "member": RNG.random(n) < 0.3,
        }
    )
    score = np.nan_to_num(np.log(income), nan=9.5) + 0.01 * frame["age"].to_numpy() + RNG.normal(0, 0.3, n)
    return frame, score


def tiny_model(columns: int) -> Graph:
    """Higher in every column is higher in score: one stump a column."""
    source = Input(columns)
    trees = [
        Tree(np.array([j, -1, -1]), np.array([0.5, 0, 0]), np.array([1, -1, -1]), np.array([2, -1, -1]),
             np.array([True, False, False]), np.array([0.0, 0.0, 1.0 + j]))
        for j in range(columns)
    ]  # fmt: skip
    score = assemble(source, trees, np.zeros(1))
    names = tuple(Column(f"x{j}") for j in range(columns))
    return Graph(names, source, score, score, ("points",))


@pytest.mark.parametrize("higher", [True, False])
def test_the_approved_are_exactly_those_at_or_beyond_the_cutoff(higher: bool) -> None:
    X, scores = np.arange(40.0)[:, None], np.repeat(np.arange(10.0), 4)
    r = approved(X, scores, 4, higher_is_better=higher)
    wanted = X[scores >= 4] if higher else X[scores <= 4]
    np.testing.assert_array_equal(r.rows, wanted)
    assert f"{len(wanted)} of 40 rows with score {'>=' if higher else '<='} 4" in r.provenance
    assert r.passes([3.0, 4.0, 5.0]).tolist() == ([False, True, True] if higher else [True, True, False])


@pytest.mark.parametrize(("higher", "band"), [(True, (4, 6)), (False, (2, 4))])
def test_the_band_lies_on_the_passing_side_and_holds_both_its_ends(higher: bool, band: tuple[int, int]) -> None:
    X, scores = np.arange(40.0)[:, None], np.repeat(np.arange(10.0), 4)
    r = cutoff_band(X, scores, 4, width=2, higher_is_better=higher)
    np.testing.assert_array_equal(r.rows, X[(scores >= band[0]) & (scores <= band[1])])


def test_weights_follow_their_rows() -> None:
    weights = np.arange(1.0, 41.0)
    r = approved(np.arange(40.0)[:, None], np.arange(40.0), 30, higher_is_better=True, weights=weights)
    np.testing.assert_allclose(r.weights, weights[30:] / weights[30:].sum(), rtol=1e-15)
    assert r.provenance.endswith("weighted")
    assert r.mean_score == pytest.approx(np.average(np.arange(30.0, 40.0), weights=weights[30:]))


X20, S20 = np.arange(20.0)[:, None], np.arange(20.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: approved(X20, S20, 99, higher_is_better=True), "Nobody passes.*between 0 and 19.*higher_is_better"),
        (lambda: approved(X20, S20, -1, higher_is_better=False), "Nobody passes"),
        (lambda: approved(X20, S20, 15, higher_is_better=True), "at least min_rows=10.*got 5"),
        (lambda: approved(X20, S20, 5, higher_is_better=unchecked(None)), "higher_is_better must be True"),
        (lambda: approved(X20, S20, 5, higher_is_better=unchecked("yes")), "higher_is_better must be True"),
        (lambda: approved(X20, S20[:9], 5, higher_is_better=True), "one number a row, 20; their shape is"),
        (lambda: approved(X20, np.c_[S20, S20], 5, higher_is_better=True), "Take the column of the class"),
        (lambda: approved(X20, np.where(S20 < 3, np.nan, S20), 5, higher_is_better=True), "scores must be finite"),
        (lambda: approved(X20, ["a"] * 20, 5, higher_is_better=True), "scores must be numbers"),
        (lambda: approved(X20, S20, float("nan"), higher_is_better=True), "cutoff must be a finite number"),
        (lambda: approved(X20[:0], S20[:0], 5, higher_is_better=True), "it is empty"),
        (lambda: approved(X20, S20, 5, higher_is_better=True, weights=-S20), "not negative"),
        (lambda: cutoff_band(X20, S20, 5, width=-2, higher_is_better=True), "width must be a positive number"),
        (lambda: cutoff_band(X20, S20, 5, width=2, higher_is_better=True), "Widen the band"),
        (lambda: all_applicants(X20[:0]), "at least one row"),
        (lambda: all_applicants("no table"), "must be a NumPy array or a pandas"),
        (lambda: nearest_approved(X20, S20, 15, 17, 2, higher_is_better=True), "passes the cutoff.*mixed up"),
        (
            lambda: nearest_approved(X20, S20, 15, 3, 9, higher_is_better=True),
            "number of approved.*5; got 9",
        ),
        (lambda: nearest_approved(X20, S20, 15, 99, 2, higher_is_better=True), "position in X, from 0 to 19"),
        (lambda: nearest_approved(X20, S20, 15, X20[:2], 2, higher_is_better=True), "one row or a position"),
        (lambda: nearest_approved(X20, S20, 15, 3, 0, higher_is_better=True), "k must be a positive whole number"),
        (lambda: sample(all_applicants(X20), 21), "at most the reference's 20 rows"),
        (lambda: sample(unchecked(X20), 3), "must be a Reference"),
        (lambda: distill(all_applicants(X20), 1), "at least 2"),
    ],
)
def test_what_cannot_be_a_reference_is_refused_in_one_sentence(call: Any, message: str) -> None:
    with pytest.raises(gig.InputError, match=message):
        call()


def test_nearness_is_the_definition_and_knows_no_units(people: tuple[pd.DataFrame, np.ndarray]) -> None:
    frame, score = people
    refused = int(np.flatnonzero((score < 10.5) & frame["income"].notna().to_numpy())[0])
    near = nearest_approved(frame, score, 10.5, refused, 25, higher_is_better=True)
    passed, one = frame[score >= 10.5], frame.iloc[[refused]]
    wanted = []
    for _, row in passed.iterrows():
        parts = []
        for name in ("income", "age"):
            a, b, column = row[name], one[name].iloc[0], passed[name].dropna()
            if np.isnan(a) or np.isnan(b):
                parts.append(float(np.isnan(a) != np.isnan(b)))
            else:
                rank = [(column < v).mean() + (column == v).mean() / 2 for v in (a, b)]
                parts.append(abs(rank[0] - rank[1]))
        parts += [float(row[name] != one[name].iloc[0]) for name in ("home", "member")]
        wanted.append(np.mean(parts))
    got = distances(passed, np.full(len(passed), 1 / len(passed)), one)
    np.testing.assert_allclose(got, wanted, atol=1e-12)
    assert set(near.rows.index) == set(passed.index[np.argsort(wanted, kind="stable")[:25]])
    bent = frame.assign(income=np.exp(frame["income"] / 1e5), age=frame["age"] ** 3)
    again = nearest_approved(bent, score, 10.5, refused, 25, higher_is_better=True)
    assert list(again.rows.index) == list(near.rows.index)


def test_a_sample_is_unbiased_and_repeats_with_its_seed() -> None:
    weights = RNG.random(30) + 0.1
    whole = all_applicants(np.arange(30.0)[:, None], weights)
    hits = np.zeros((600, 30))
    for seed in range(600):
        drawn = sample(whole, 7, seed)
        hits[seed, drawn.rows[:, 0].astype(int)] = drawn.weights
        assert drawn.weights.sum() == pytest.approx(1.0)
    standard_error = hits.std(axis=0) / np.sqrt(600)
    assert (np.abs(hits.mean(axis=0) - whole.weights) < 4.5 * standard_error).all()
    np.testing.assert_array_equal(sample(whole, 7, 5).rows, sample(whole, 7, 5).rows)
    assert "seed 5" in sample(whole, 7, 5).provenance


def test_distilled_rows_keep_the_mean_score_and_beat_random_ones(people: tuple[pd.DataFrame, np.ndarray]) -> None:
    frame, score = people
    whole = all_applicants(frame, RNG.random(len(frame)), scores=score)
    small = distill(whole, 40)
    assert len(small) == 40
    assert (small.weights > 0).all()
    assert small.weights.sum() == pytest.approx(1.0, abs=1e-14)
    assert small.mean_score == pytest.approx(whole.mean_score, abs=1e-12)
    drawn = [sample(whole, 40, seed).quality for seed in range(20)]
    for figure in ("mean_marginal_distance", "largest_marginal_distance"):
        assert small.quality[figure] < min(d[figure] for d in drawn)
        assert small.quality[figure] < 0.5 * np.mean([d[figure] for d in drawn])
    assert "40 weighted rows distilled from all applicants" in small.provenance
    # The reported quality is what it says it is: here for one number and one category.
    edges = np.unique(frame["age"])
    far = max(abs(small.weights @ (small.rows["age"] <= v) - whole.weights @ (frame["age"] <= v)) for v in edges)
    homes = 0.5 * sum(
        abs(small.weights @ (small.rows["home"] == h) - whole.weights @ (frame["home"] == h))
        for h in ("rent", "own", "free")
    )
    assert max(far, homes) <= small.quality["largest_marginal_distance"] + 1e-12


def test_distilling_without_scores_says_that_the_mean_score_is_not_held(
    people: tuple[pd.DataFrame, np.ndarray],
) -> None:
    assert "the mean score is not held" in distill(all_applicants(people[0]), 20).provenance


def test_references_are_the_same_in_every_table_library(people: tuple[pd.DataFrame, np.ndarray]) -> None:
    frame, score = people
    tables = [frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)]
    chosen = [approved(t, score, 10.5, higher_is_better=True) for t in tables]
    small = [distill(r, 30) for r in chosen]
    near = [nearest_approved(t, score, 10.5, int(score.argmin()), 9, higher_is_better=True) for t in tables]
    for kind in (chosen, small, near):
        ages = [np.asarray(kind[0].rows["age"]), kind[1].rows["age"].to_numpy(), kind[2].rows["age"].to_numpy()]
        np.testing.assert_array_equal(ages[0], ages[1])
        np.testing.assert_array_equal(ages[0], ages[2])
        np.testing.assert_allclose(kind[0].weights, kind[1].weights, rtol=1e-12)


def weighted_median(values: Any, weights: Any) -> float | None:
    return weighted_medians(np.asarray(values)[:, None], np.asarray(weights))[0]


def test_medians_of_many_columns_are_those_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = RNG.integers(0, 4, (9, 50)).astype(float)
    matrix[RNG.random(matrix.shape) < 0.3] = np.nan
    weights = RNG.integers(1, 5, 9) / 20.0
    weights /= weights.sum()
    monkeypatch.setattr(typical, "NUMBERS_AT_ONCE", 9 * 7)  # several parts
    for values, found in zip(matrix.T, weighted_medians(matrix, weights), strict=True):
        present = ~np.isnan(values)
        if weights[~present].sum() > 0.5:
            assert found is None
            continue
        half = weights[present].sum() / 2
        below = [weights[present & (values < v)].sum() for v in values[present]]
        upto = [weights[present & (values <= v)].sum() for v in values[present]]
        inside = zip(values[present], below, upto, strict=True)
        middle = [v for v, low, high in inside if low <= half + 1e-12 and high >= half - 1e-12]
        assert found == (min(middle) + max(middle)) / 2
    assert weighted_medians(np.full((3, 1), np.nan), np.full(3, 1 / 3)) == [None]


def test_typical_values_are_medians_and_modes() -> None:
    for size in (1, 2, 7, 10):
        values = RNG.integers(0, 5, size).astype(float)
        assert weighted_median(values, np.full(size, 1 / size)) == np.median(values)
    values, counts = np.array([3.0, 1.0, 2.0, 9.0]), np.array([2, 3, 1, 4])
    assert weighted_median(values, counts / 10) == np.median(np.repeat(values, counts))
    assert weighted_median(np.array([np.nan, 1.0, 5.0]), np.array([0.5, 0.2, 0.3])) == 5.0
    assert weighted_median(np.array([np.nan, 1.0, 5.0]), np.array([0.6, 0.2, 0.2])) is None
    columns = [Column("a", "category", ("x", "y")), Column("b", "category"), Column("c", "category", ("x", "y"))]
    matrix = np.array([[0, 3, np.nan], [1, 3, 0], [1, 7, np.nan]])
    assert typical_values(matrix, np.array([0.3, 0.3, 0.4]), columns) == ["y", 3, None]
    assert typical_values(matrix, np.array([0.6, 0.1, 0.3]), columns) == ["x", 3, None]
    assert typical_values(matrix[:, :1], np.array([0.5, 0.25, 0.25]), columns[:1]) == ["x"]


def test_an_explainer_takes_a_reference_and_every_output_carries_its_line(tmp_path: Any) -> None:
    X = RNG.random((60, 3))
    model = tiny_model(3)
    scores = model.predict(X)
    r = approved(X, scores, 3.0, higher_is_better=True, weights=RNG.random(60))
    e = gig.explain(model, X, r)
    plain = gig.explain(model, X, r.rows, weights=r.weights)
    np.testing.assert_array_equal(e.values, plain.values)
    assert e.provenance["reference"]["note"] == r.provenance
    assert e.provenance["reference"]["higher_is_better"] is True
    assert e.provenance["reference"]["cutoff_in_output_units"] is True
    assert e.provenance["reference"]["typical"]["x1"] == pytest.approx(weighted_median(r.rows[:, 1], r.weights))
    e.save(tmp_path / "e.parquet")
    assert gig.Explanation.load(tmp_path / "e.parquet").provenance["reference"]["note"] == r.provenance
    with pytest.raises(gig.InputError, match="has weights of its own"):
        gig.explain(model, X, r, weights=r.weights)


def test_scores_that_run_against_the_explained_output_are_refused() -> None:
    X = RNG.random((60, 3))
    model = tiny_model(3)
    points = model.predict(X)
    mixed_up = approved(X, -points, -4.0, higher_is_better=True)
    with pytest.raises(gig.InputError, match=r"run against it.*would be wrong"):
        gig.Explainer(model, mixed_up)
    gig.Explainer(model, all_applicants(X, higher_is_better=True))
    gig.Explainer(model, approved(X, points + RNG.normal(0, 1, 60), 3.0, higher_is_better=True))


@pytest.mark.parametrize("rows", [1, 2, 5, 6, 31])
def test_medians_of_all_columns_at_once_are_those_of_each(rows: int) -> None:
    rng = np.random.default_rng(rows)
    matrix = rng.integers(0, 5, (rows, 200)) / 3.0
    matrix[rng.random(matrix.shape) < rng.random(200)] = np.nan
    found = typical.weighted_medians(matrix, np.full(rows, 1.0 / rows))
    for column, middle in zip(matrix.T, found, strict=True):
        known = column[~np.isnan(column)]
        assert middle == (float(np.median(known)) if 2 * len(known) >= rows else None)
