"""Bootstrap intervals of mean |credit|, over rows and over references, beside a plain bootstrap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forests import graph_of, random_forest
from made import made
from unchecked import unchecked

import gigrad as gig
from gigrad import InputError
from gigrad.graph import Column, Input


def small_model() -> Any:
    columns, source = tuple(Column(f"x{j}") for j in range(5)), Input(5)
    trees = random_forest(np.random.default_rng(3), columns, source, trees=20, depth=4)
    return graph_of(columns, source, trees)


def tables(rows: int, references: int) -> tuple[Any, Any]:
    random = np.random.default_rng(1)
    return random.normal(size=(rows, 5)), random.normal(size=(references, 5))


def against_each(model: Any, X: Any, reference: Any) -> Any:
    """The credits (m, n, p) of every row against every reference row, pair by pair."""
    starts = [np.repeat(r[None], len(X), axis=0) for r in reference]
    return np.array([gig.explain_pairs(model, start, X, discrete=()).values for start in starts])


def test_over_rows_it_is_the_plain_bootstrap() -> None:
    e = made(n=30, p=4)
    summary = e.summary(over="rows", bootstrap=300, level=0.9, seed=5)
    random = np.random.default_rng([5, 0])
    size = np.abs(e.values)
    samples = [size[random.integers(0, 30, 30)].mean(axis=0) for _ in range(300)]
    low, high = np.quantile(samples, [0.05, 0.95], axis=0)
    order = [e.feature_names.index(name) for name in summary["feature"]]
    np.testing.assert_allclose(summary["low"], low[order], rtol=1e-12)
    np.testing.assert_allclose(summary["high"], high[order], rtol=1e-12)
    assert (summary["low"] <= summary["mean_abs_credit"]).all()
    assert (summary["mean_abs_credit"] <= summary["high"]).all()


@pytest.mark.parametrize("over", ["references", "both"])
@pytest.mark.parametrize("weighted", [False, True])
def test_over_all_references_it_is_the_plain_bootstrap(over: Any, weighted: bool) -> None:
    X, reference = tables(12, 20)
    model, weights = small_model(), (np.arange(20.0) if weighted else np.ones(20))
    e = gig.explain(model, X, reference, weights=weights, discrete=(), reference_parts=50)
    summary = e.summary(over=over, bootstrap=100, seed=7)
    single = against_each(model, X, reference)
    rows, drawn = np.random.default_rng([7, 0]), np.random.default_rng([7, 1])
    counts = drawn.multinomial(20, np.full(20, 1 / 20), size=100)  # which references, drawn with replacement
    samples = []
    for count in counts:
        against = np.concatenate([np.repeat(single[r][None], count[r], axis=0) for r in range(20)])
        chosen = np.repeat(weights, count)
        credit = np.average(against, axis=0, weights=chosen)
        picked = rows.integers(0, 12, 12) if over == "both" else np.arange(12)
        samples.append(np.abs(credit[picked]).mean(axis=0))
    low, high = np.quantile(samples, [0.025, 0.975], axis=0)
    order = [e.feature_names.index(name) for name in summary["feature"]]
    np.testing.assert_allclose(summary["low"], low[order], rtol=1e-9)
    np.testing.assert_allclose(summary["high"], high[order], rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_parts_come_close_to_the_plain_bootstrap(weighted: bool) -> None:
    X, reference = tables(10, 603)
    weights = np.random.default_rng(2).uniform(0.2, 2.0, 603) if weighted else np.ones(603)
    weights[:3] = 0.0
    model = small_model()
    rows, parts = (
        gig.explain(model, X, reference, weights=weights, discrete=(), reference_parts=many) for many in (603, 60)
    )
    np.testing.assert_array_equal(rows.values, parts.values)
    for e, many in ((rows, 603), (parts, 60)):
        assert e.reference_parts is not None
        assert (len(e.reference_parts), e.reference_parts.of) == (many, 603)
        np.testing.assert_allclose(
            np.tensordot(e.reference_parts.weights, e.reference_parts.credit, axes=1), e.values, atol=1e-12
        )
    widths = []
    for e in (rows, parts):
        summary = e.summary(over="references", bootstrap=2000).sort_values("feature")
        widths.append((summary["high"] - summary["low"]).to_numpy())
    # 60 squares estimate a standard deviation to 1 / sqrt(120), 9 %: three of them for five features
    assert (np.abs(np.log(widths[1] / widths[0])) < 3 / np.sqrt(120)).all(), widths[1] / widths[0]


def test_the_interval_covers_the_credit_against_everybody() -> None:
    """The share of references, drawn anew, whose interval holds the mean |credit| against the whole population."""
    X, everybody = tables(8, 1500)
    model = small_model()
    truth = np.abs(gig.explain(model, X, everybody, discrete=()).values).mean(axis=0)
    random, inside = np.random.default_rng(4), []
    for _ in range(40):
        reference = everybody[random.choice(1500, 60, replace=False)]
        e = gig.explain(model, X, reference, discrete=(), reference_parts=60)
        summary = e.summary(over="references").set_index("feature").loc[list(e.feature_names)]
        inside.append((summary["low"].to_numpy() <= truth) & (truth <= summary["high"].to_numpy()))
    assert 0.85 < np.mean(inside) <= 1.0


def test_slices_and_groups_keep_what_intervals_need(tmp_path: Path) -> None:
    X, reference = tables(9, 15)
    e = gig.explain(small_model(), X, reference, discrete=(), reference_parts=15)
    assert e.reference_parts is not None
    grouped = e[2:7].group({"g": ["x0", "x3"]})
    assert grouped.reference_parts is not None
    own = e.reference_parts.credit
    np.testing.assert_allclose(grouped.reference_parts.credit[:, :, 0], own[:, 2:7, 0] + own[:, 2:7, 3])
    np.testing.assert_allclose(e.reference_parts.credit.mean(axis=0), e.values, atol=1e-12)
    assert set(grouped.summary()["feature"]) == {"g", "x1", "x2", "x4"}
    e.save(tmp_path / "e.parquet")
    again = gig.Explanation.load(tmp_path / "e.parquet")
    assert again.reference_parts is not None
    np.testing.assert_array_equal(again.reference_parts.credit, own)
    assert again.summary().equals(e.summary())


def test_several_outputs_have_an_interval_each(tmp_path: Path) -> None:
    from sklearn.ensemble import RandomForestClassifier

    X, reference = tables(9, 15)
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(reference, np.arange(15) % 3)
    e = gig.explain(model, X, reference, reference_parts=4)
    assert e.reference_parts is not None
    assert e.reference_parts.credit.shape == (4, 9, 5, 3)
    summary = e.summary()
    assert len(summary) == 15
    assert (summary["low"] <= summary["high"]).all()
    e.save(tmp_path / "e.parquet")
    again = gig.Explanation.load(tmp_path / "e.parquet")
    for one, other in ((again, e), (again[:, :, 1], e[:, :, 1])):
        assert one.reference_parts is not None
        assert other.reference_parts is not None
        np.testing.assert_array_equal(one.reference_parts.credit, other.reference_parts.credit)


def test_what_is_asked_for_must_be_known() -> None:
    e = made()
    with pytest.raises(InputError, match=r"explain\(..., reference_parts=50\) keeps them"):
        e.summary(over="references")
    with pytest.raises(InputError, match="over must be one of 'rows', 'references', 'both'; got 'columns'"):
        e.summary(over=unchecked("columns"))
    with pytest.raises(InputError, match="level must"):
        e.summary(level=1.5)
    assert e.summary(bootstrap=0)["low"].isna().all()
    assert e[:0].summary()["high"].isna().all()
    assert e.summary().equals(e.summary())  # the same seed, the same samples
