"""The native walks against the definition, written out with 2^k subsets, on trees full of ties."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_forest import Plain, case, every_simd, random_forest, random_rows, single_tree

from gigrad import kernels

CASES = {
    "seed": st.integers(0, 2**32 - 1),
    "outputs": st.sampled_from([1, 3]),
    "grid": st.sampled_from([1, 2, 4]),
    "missing": st.sampled_from([0.0, 0.2]),
    "n_columns": st.integers(1, 6),
    "places": st.booleans(),
}


@settings(max_examples=150, deadline=None)
@given(**CASES)
def test_credit_of_a_pair_is_the_definition(seed, outputs, grid, missing, n_columns, places):
    _, plain, s, e = case(seed, outputs, grid, missing, n_columns, places=places)
    want = np.array([plain.credit(*pair) for pair in zip(s, e, strict=True)])
    for _ in every_simd():
        got = kernels.credits_pairs(plain.forest, s, e, n_threads=1)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(**CASES)
def test_credit_against_a_population_is_the_weighted_mean_of_pairs(seed, outputs, grid, missing, n_columns, places):
    rng, plain, s, e = case(seed, outputs, grid, missing, n_columns, n=7, places=places)
    weights = rng.dirichlet(np.ones(len(s)))
    want = [
        np.einsum("m,mjk->jk", weights, kernels.credits_pairs(plain.forest, s, np.repeat(row[None], len(s), 0)))
        for row in e[:3]
    ]
    for _ in every_simd():
        got = kernels.credits(plain.forest, s, weights, e[:3], n_threads=1)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(**CASES)
def test_predictions_and_cells_follow_the_routing_rule(seed, outputs, grid, missing, n_columns, places):
    rng, plain, s, e = case(seed, outputs, grid, missing, n_columns, places=places)
    forest = plain.forest
    want = [plain.evaluate(lambda n, x=x: plain.left(n, x[plain.arrays["feature"][n]])) for x in s]
    np.testing.assert_allclose(kernels.predict(forest, s), want, rtol=0, atol=1e-13)
    queries = [(i, t, rng.random(plain.n_variables) < 0.5) for i in range(len(s)) for t, _ in plain.corners(s[i], e[i])]
    if queries:
        pair, time, past = (np.array(q) for q in zip(*queries, strict=True))
        got = kernels.cells(forest, s, e, pair, time, past, n_threads=1)
        want = [plain.cell(s[i], e[i], t, set(np.flatnonzero(p))) for i, t, p in queries]
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-13)


@settings(max_examples=60, deadline=None)
@given(**CASES)
def test_jumps_add_up_at_every_corner(seed, outputs, grid, missing, n_columns, places):
    _, plain, s, e = case(seed, outputs, grid, missing, n_columns, places=places)
    jumps = kernels.jumps(plain.forest, s, e, n_threads=1)
    credit = kernels.credits_pairs(plain.forest, s, e)
    assert jumps.offsets[-1] == len(jumps.time) == len(jumps.variable) == len(jumps.delta)
    for i in range(len(s)):
        mine = slice(jumps.offsets[i], jumps.offsets[i + 1])
        time, variable, delta = jumps.time[mine], jumps.variable[mine], jumps.delta[mine]
        assert (np.diff(time) >= 0).all()
        total = np.zeros_like(credit[i])
        np.add.at(total, variable, delta)
        np.testing.assert_allclose(total, credit[i], rtol=0, atol=1e-12)
        for t in np.unique(time):
            here = time == t
            assert len(set(variable[here])) == here.sum()
            jump = plain.cell(s[i], e[i], t, set(range(n_columns))) - plain.cell(s[i], e[i], t, set())
            np.testing.assert_allclose(delta[here].sum(axis=0), jump, rtol=0, atol=1e-12)


def test_corner_of_thirty_variables_is_exact():
    """One tree that asks for 30 indicators in a row: the last leaf is a product, so each gets 1/30 of it."""
    k = 30
    a: dict[str, list[int]] = {name: [] for name in ("feature", "left", "right", "value")}
    for j in range(k):
        a["feature"] += [j, -1]
        a["left"] += [2 * j + 1, -1]
        a["right"] += [2 * j + 2, -1]
        a["value"] += [-1, 0]
    for name, number in (("feature", -1), ("left", -1), ("right", -1), ("value", 1)):
        a[name].append(number)
    n = len(a["feature"])
    a |= single_tree(n) | {"threshold": [0.5] * n, "values": [0.0, 3.0]}
    s, e = np.zeros((1, k)), np.ones((1, k))
    forest = Plain(k, a).forest
    for _ in every_simd():
        got = kernels.credits_pairs(forest, np.vstack([s, e]), np.vstack([e, s]))
        np.testing.assert_allclose(got[0], 3.0 / k, rtol=1e-14)
        np.testing.assert_allclose(got[1], -3.0 / k, rtol=1e-14)


def chain(depth):
    """A tree that is one long chain: the deepest there can be."""
    n = 2 * depth + 1
    split = np.arange(n - 1) % 2 == 0
    feature = np.append(np.where(split, 0, -1), -1)
    child = np.where(feature == 0, np.arange(n), -1)
    return Plain(1, single_tree(n) | {
        "feature": feature, "threshold": np.arange(n) / 2.0, "left": np.where(child >= 0, child + 1, -1),
        "right": np.where(child >= 0, child + 2, -1), "value": np.where(feature < 0, np.arange(n), -1),
        "values": np.sin(np.arange(n)),
    })  # fmt: skip


def test_very_deep_tree_is_walked():
    forest = chain(100_000).forest
    s, e = np.array([[-1.0], [3.0]]), np.array([[2e5], [3.0]])
    want = (kernels.predict(forest, e) - kernels.predict(forest, s))[:, 0]
    for _ in every_simd():
        got = kernels.credits_pairs(forest, s, e)[:, 0, 0]
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-9)
        assert got[1] == 0


def test_extreme_values_keep_the_sum():
    rng = np.random.default_rng(1)
    plain = random_forest(rng, n_columns=3, n_trees=20, categories=False)
    pool = np.array([-1.7e308, -1e300, -5e-324, 0.0, 5e-324, 1.0, 1.5, 1.7e308, np.inf, -np.inf, np.nan])
    s, e = rng.choice(pool, (500, 3)), rng.choice(pool, (500, 3))
    forest = plain.forest
    fs, fe = kernels.predict(forest, s), kernels.predict(forest, e)
    exact = kernels.credits_pairs(forest, s, e)
    for _ in every_simd():
        np.testing.assert_allclose(kernels.credits_pairs(forest, s, e).sum(axis=1), fe - fs, atol=1e-12)
        np.testing.assert_allclose(kernels.credits_pairs(forest, s, e), exact, rtol=0, atol=1e-12)
        mean = kernels.credits(forest, s, np.full(500, 0.002), e[:50])
        np.testing.assert_allclose(mean.sum(axis=1), fe[:50] - fs.mean(axis=0), atol=1e-12)


def test_bits_do_not_depend_on_threads():
    rng = np.random.default_rng(2)
    plain = random_forest(rng, n_columns=6, n_trees=40, outputs=3, max_depth=6)
    forest = plain.forest
    s, e = random_rows(rng, 3000, plain), random_rows(rng, 3000, plain)
    weights = rng.dirichlet(np.ones(1500))
    pair, time, past = rng.integers(3000, size=400), rng.random(400), rng.random((400, 6)) < 0.5

    def everything(n_threads):
        return [
            kernels.credits(forest, s[:1500], weights, e[:11], n_threads),
            kernels.credits_pairs(forest, s, e, n_threads),
            *kernels.jumps(forest, s[:300], e[:300], n_threads),
            kernels.cells(forest, s, e, pair, time, past, n_threads),
        ]

    one = everything(1)
    for n_threads in (2, 3, 8):
        for a, b in zip(one, everything(n_threads), strict=True):
            assert a.tobytes() == b.tobytes()
    with ThreadPoolExecutor(4) as pool:
        for result in pool.map(everything, [1, 2, 1, 2]):
            for a, b in zip(one, result, strict=True):
                assert a.tobytes() == b.tobytes()


def test_nothing_is_written_to_the_callers_arrays():
    rng = np.random.default_rng(3)
    plain = random_forest(rng)
    arrays = [random_rows(rng, 5, plain), np.full(5, 0.2), random_rows(rng, 5, plain)]
    before = [a.tobytes() for a in arrays]
    for a in arrays:
        a.setflags(write=False)
    kernels.credits(plain.forest, *arrays)
    assert [a.tobytes() for a in arrays] == before


BROKEN = {
    "a child before its parent": ("left", 0, 0, "child"),
    "a child out of range": ("right", 0, 10**6, "child"),
    "a negative child": ("right", 0, -1, "child"),
    "a column out of range": ("feature", 0, 99, "column 99"),
    "a negative column": ("feature", 0, -2, "column -2"),
    "a threshold that is no number": ("threshold", 0, np.nan, "threshold"),
    "a value out of range": ("value", -1, 10**6, "value"),
    "a negative value": ("value", -1, -1, "value"),
    "an infinite leaf": ("values", 0, np.inf, "finite"),
    "an infinite base": ("base", 0, np.inf, "finite"),
    "a set out of range": ("category_set", 0, 7, "category set 7"),
    "a root out of range": ("roots", 0, -1, "root"),
    "an output out of range": ("tree_output", 0, 3, "output 3"),
    "sets that do not begin at 0": ("set_start", 0, 1, "set_start"),
    "vector leaves that run over": ("tree_output", 0, -1, "past the end"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_corrupt_trees_are_refused(name):
    array, index, value, words = BROKEN[name]
    plain = random_forest(np.random.default_rng(4), n_trees=1, categories=False, stop=0.0)
    if "vector" in name:
        plain.arrays["base"] = [0.0] * 99
    plain.arrays[array][index] = value
    with pytest.raises(ValueError, match=words):
        _ = plain.forest


def test_arrays_of_different_lengths_are_refused():
    for array in ("threshold", "left", "missing_left", "tree_output", "base", "set_start"):
        plain = random_forest(np.random.default_rng(5), n_trees=2, categories=False)
        plain.arrays[array] = plain.arrays[array][:-1]
        with pytest.raises(ValueError):
            _ = plain.forest


def test_children_shared_without_end_are_refused():
    """60 diamonds in a row, each on its own column, have 2^60 coalitions: refused, not walked until the end of days."""
    n = 61
    split = np.arange(n) < n - 1
    child = np.where(split, np.arange(n) + 1, -1)
    plain = Plain(n, single_tree(n) | {
        "feature": np.where(split, np.arange(n), -1), "threshold": np.zeros(n), "left": child, "right": child,
        "value": np.where(split, -1, 0), "values": [1.0],
    })  # fmt: skip
    with pytest.raises(ValueError, match="shares children"):
        _ = plain.forest


@pytest.mark.parametrize("seed", range(3))
def test_a_tangle_of_few_columns_is_walked_by_the_ways_that_coalitions_take(seed):
    """40 levels of two nodes have 2^40 ways to the leaves, of which four columns that change at once take sixteen."""
    rng = np.random.default_rng(seed)
    levels, columns = 40, 4
    n = 1 + 2 * levels + 2
    level = (np.arange(n) + 1) // 2
    split = level <= levels
    child = np.where(split, 2 * level + 1, -1)
    swap = rng.random(n) < 0.5
    words = rng.integers(0, 2**6, n).astype(np.uint32)
    plain = Plain(columns, single_tree(n) | {
        "feature": np.where(split, rng.integers(0, columns, n), -1), "threshold": rng.integers(0, 4, n) + 0.5,
        "left": np.where(split, child + swap, -1), "right": np.where(split, child + 1 - swap, -1),
        "category_set": np.where(split & (rng.random(n) < 0.7), np.arange(n), -1),
        "set_start": np.arange(n + 1), "set_words": words,
        "value": np.where(split, -1, np.arange(n) - (n - 2)), "values": [1.0, -2.5],
    })  # fmt: skip
    s, e = rng.integers(0, 6, (2, 4, columns)).astype(float)
    want = np.array([plain.credit(*pair) for pair in zip(s, e, strict=True)])
    for _ in every_simd():
        np.testing.assert_allclose(kernels.credits_pairs(plain.forest, s, e, n_threads=1), want, rtol=0, atol=1e-12)
        got = kernels.credits(plain.forest, s, np.full(4, 0.25), e[:1], n_threads=1)
        each = [plain.credit(start, e[0]) for start in s]
        np.testing.assert_allclose(got[0], np.mean(each, axis=0), rtol=0, atol=1e-12)
    assert np.abs(want).max() > 0.5


def test_arguments_that_do_not_fit_are_refused():
    plain = random_forest(np.random.default_rng(6), n_columns=4)
    forest, x = plain.forest, np.zeros((3, 4))
    with pytest.raises(ValueError, match="4 columns"):
        kernels.predict(forest, np.zeros((3, 5)))
    with pytest.raises(ValueError, match="4 columns"):
        kernels.credits(forest, np.zeros((3, 5)), np.ones(3), x)
    with pytest.raises(ValueError, match="one entry for each"):
        kernels.credits(forest, x, np.ones(2), x)
    with pytest.raises(ValueError, match="finite"):
        kernels.credits(forest, x, np.full(3, np.nan), x)
    with pytest.raises(ValueError, match="at least one start"):
        kernels.credits(forest, x[:0], np.ones(0), x)
    with pytest.raises(ValueError, match="same number of rows"):
        kernels.credits_pairs(forest, x, x[:2])
    with pytest.raises(ValueError, match="same number of rows"):
        kernels.jumps(forest, x, x[:2])
    with pytest.raises(ValueError, match="n_threads"):
        kernels.credits_pairs(forest, x, x, n_threads=0)
    with pytest.raises(ValueError, match="pair 3"):
        kernels.cells(forest, x, x, [3], np.array([0.5]), np.zeros((1, 4)))
    assert kernels.credits_pairs(forest, x[:0], x[:0]).shape == (0, 4, 1)
    assert kernels.jumps(forest, x[:0], x[:0]).offsets.tolist() == [0]
