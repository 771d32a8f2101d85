"""All walks give the same answer: vectors of lanes, whatever the instruction set, against the portable one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plain_forest import TIMES, Plain, every_simd, random_forest, random_rows, single_tree

from gigrad import kernels

SHAPES: dict[str, dict[str, Any]] = {
    "shallow": {"n_columns": 8, "n_trees": 30, "max_depth": 5},
    "many outputs": {"n_columns": 6, "n_trees": 20, "max_depth": 5, "outputs": 3},
    "deeper than codes reach": {"n_columns": 8, "n_trees": 4, "max_depth": 22, "stop": 0.35},
    "large subtrees": {"n_columns": 12, "n_trees": 3, "max_depth": 11, "stop": 0.03},
    "stumps": {"n_columns": 3, "n_trees": 40, "max_depth": 1},
}


def continuous(plain, rng):
    """The same forest with thresholds that never tie, on rows that do not either."""
    thresholds = np.array(plain.arrays["threshold"])
    plain.arrays["threshold"] = list(thresholds + rng.normal(size=len(thresholds)))
    return lambda n: rng.normal(size=(n, plain.n_columns)) * 2 + 2


def histogram(plain, rng):
    """Thresholds that trees repeat, as boosting on histograms makes them, on rows that hardly tie, with gaps."""

    def rows(n):
        x = rng.normal(size=(n, plain.n_columns)) * 2 + 2
        x[rng.random(x.shape) < 0.1] = np.nan
        return x

    return rows


def apart(plain, rng):
    """The same without gaps: every split is asked in one way, and no two are crossed at one time."""
    plain.arrays["missing_left"] = [False] * len(plain.arrays["missing_left"])
    return lambda n: rng.normal(size=(n, plain.n_columns)) * 2 + 2


def near(plain, rng):
    """Rows so far away that many splits are crossed in so short a time that only exact times can put them in order."""
    return lambda n: (rng.normal(size=(n, plain.n_columns)) * 2 + 2) * 1e4


def close(plain, rng):
    """Numbers alone, thresholds of one variable so close to one another that a path crosses them at one corner."""
    thresholds = np.array(plain.arrays["threshold"])
    plain.arrays["threshold"] = list(thresholds + rng.integers(0, 3, size=len(thresholds)) * 1e-14)
    return lambda n: rng.integers(0, 5, size=(n, plain.n_columns)).astype(float)


def categories(plain, rng):
    """Two thirds of the columns hold a few levels, mostly the same, with gaps: many variables change at one half."""
    a, p = plain.arrays, plain.n_columns
    for node, column in enumerate(a["feature"]):
        if column > 0 and column % 3:
            a["category_set"][node] = len(a["set_start"]) - 1
            a["set_words"].append(int(rng.integers(1, 16)))
            a["set_start"].append(len(a["set_words"]))

    def rows(n):
        levels = rng.choice([0.0, 1.0, 2.0, 3.0, 40.0, -1.0], size=(n, p), p=[0.5, 0.2, 0.1, 0.1, 0.05, 0.05])
        x = np.where(np.arange(p) % 3 > 0, levels, rng.normal(size=(n, p)) * 2 + 2)
        x[rng.random(x.shape) < 0.05] = np.nan
        return x

    return rows


KINDS = {
    "ties": lambda plain, rng: lambda n: random_rows(rng, n, plain),
    "continuous": continuous,
    "histogram": histogram,
    "apart": apart,
    "near": near,
    "close": close,
    "categories": categories,
}


def both(shape, kind, seed):
    rng = np.random.default_rng(seed)
    plain = random_forest(rng, **SHAPES[shape], grid=4, categories=kind == "ties")
    rows = KINDS[kind](plain, rng)
    return rng, plain.forest, rows


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_pairs_are_the_same_but_for_rounding(shape, kind):
    _, forest, rows = both(shape, kind, 1)
    s, e = rows(700), rows(700)
    results = {name: kernels.credits_pairs(forest, s, e) for name in every_simd()}
    for result in results.values():
        np.testing.assert_allclose(result, results["portable"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_links_and_jumps_are_the_same_but_for_rounding(shape, kind):
    rng, forest, rows = both(shape, kind, 5)
    outputs = kernels.predict(forest, np.zeros((1, SHAPES[shape]["n_columns"]))).shape[1]
    link = [kernels.Stage("affine", rng.normal(size=(1, outputs)), np.zeros(1)), kernels.Stage("sigmoid")]
    s, e = rows(60), rows(60)
    weights = rng.dirichlet(np.ones(len(s)))
    means = {name: kernels.linked_credits(forest, link, s, weights, e[:10]) for name in every_simd()}
    pairs = {name: kernels.linked_credits_pairs(forest, link, s, e) for name in every_simd()}
    jumps = {name: kernels.jumps(forest, s, e) for name in every_simd()}
    for name in means:
        for found in (means, pairs):
            np.testing.assert_allclose(found[name].values, found["portable"].values, rtol=0, atol=1e-12)
            for one, other in zip(found[name].large, found["portable"].large, strict=True):
                np.testing.assert_array_equal(one, other)
        for one, other in zip(by_variable(jumps[name], s), by_variable(jumps["portable"], s), strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


def by_variable(jumps, s):
    """Sums of the jumps, and of jumps times their times, by pair and variable."""
    pair = np.repeat(np.arange(len(s)), np.diff(jumps.offsets))
    sums = np.zeros((2, *s.shape, jumps.delta.shape[1]))
    np.add.at(sums[0], (pair, jumps.variable), jumps.delta)
    np.add.at(sums[1], (pair, jumps.variable), jumps.delta * jumps.time[:, None])
    return sums


CROWDS = [(shape, n) for shape in SHAPES for n in (1, 8, 15, 16, 100, 300)] + [("shallow", 2500)]  # beyond a chunk


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("shape", "n_starts"), CROWDS)
def test_population_is_the_same_but_for_rounding(shape, kind, weighted, n_starts):
    rng, forest, rows = both(shape, kind, 2)
    s, e = rows(n_starts), rows(5 if n_starts > 300 else 40)
    weights = rng.dirichlet(np.ones(n_starts)) if weighted else np.full(n_starts, 1 / n_starts)
    results = {name: kernels.credits(forest, s, weights, e) for name in every_simd()}
    for result in results.values():
        np.testing.assert_allclose(result, results["portable"], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("shape", "kind"), [("large subtrees", "ties"), ("shallow", "categories"), ("shallow", "histogram")]
)
def test_a_row_is_answered_the_same_in_any_company_and_by_any_number_of_threads(shape, kind):
    rng, forest, rows = both(shape, kind, 3)
    s, e = rows(2500), rows(12)
    weights = rng.dirichlet(np.ones(len(s)))
    for _ in every_simd():
        together = kernels.credits(forest, s, weights, e, n_threads=1)
        for n_threads in (2, 5):
            assert kernels.credits(forest, s, weights, e, n_threads).tobytes() == together.tobytes()
        alone = np.concatenate([kernels.credits(forest, s, weights, e[i : i + 1], n_threads=2) for i in range(len(e))])
        assert alone.tobytes() == together.tobytes()


def test_differences_that_float32_cannot_hold_take_the_exact_walk():
    """Columns of tiny, huge and mixed magnitude: the codes give up, the answer does not change."""
    rng = np.random.default_rng(4)
    plain = random_forest(rng, n_columns=5, n_trees=30, max_depth=5, categories=False)
    scale = np.array([1e-300, 1e-40, 1.0, 1e40, 1e300])
    thresholds = np.array(plain.arrays["threshold"]) * scale[np.array(plain.arrays["feature"])]
    plain.arrays["threshold"] = list(thresholds)
    s, e = (random_rows(rng, 200, plain) * scale for _ in range(2))
    results = {name: kernels.credits_pairs(plain.forest, s, e) for name in every_simd()}
    for result in results.values():
        np.testing.assert_allclose(result, results["portable"], rtol=0, atol=1e-12)
    means = {name: kernels.credits(plain.forest, s, np.full(200, 0.005), e[:20]) for name in every_simd()}
    for mean in means.values():
        np.testing.assert_allclose(mean, means["portable"], rtol=0, atol=1e-12)


def test_times_close_to_a_tie_are_told_apart():
    """Two variables cross 1e-12 (a corner) to 1e-6 (two jumps) apart: times rounded to 2^-30 decide."""
    feature, left, right = [0, 1, 1, -1, -1, -1, -1], [1, 3, 5, -1, -1, -1, -1], [2, 4, 6, -1, -1, -1, -1]
    apart = np.concatenate([10.0 ** -np.arange(6, 13), -(10.0 ** -np.arange(6, 13)), [0.0]])
    for gap in apart:
        forest = Plain(2, single_tree(7) | {
            "feature": feature, "threshold": [0.3, 0.3 + gap, 0.3 + gap, 0, 0, 0, 0], "left": left, "right": right,
            "value": [-1, -1, -1, 0, 1, 2, 3], "values": [0.0, 1.0, 10.0, 100.0],
        }).forest  # fmt: skip
        s, e = np.zeros((20, 2)), np.ones((20, 2))
        tie = (10 - 0 + 100 - 1) / 2, (1 - 0 + 100 - 10) / 2
        first = (10.0, 90.0) if gap > 0 else (99.0, 1.0)
        want = tie if round(0.3 * TIMES) == round((0.3 + gap) * TIMES) else first
        for _ in every_simd():
            np.testing.assert_allclose(kernels.credits_pairs(forest, s, e)[:, :, 0], np.tile(want, (20, 1)))
            np.testing.assert_allclose(
                kernels.credits(forest, s, np.full(20, 0.05), e)[:, :, 0], np.tile(want, (20, 1))
            )


def test_choice_is_shown_and_checked():
    used = kernels.get_simd()
    assert used in kernels.simd_choices()
    assert kernels.simd_choices()[-1] == "portable"
    for name in every_simd():
        assert kernels.get_simd() == name
    assert kernels.get_simd() == used
    with pytest.raises(ValueError, match="portable"):
        kernels.set_simd("sse9")
