"""Credit of link(sum of trees) against the definition, with corners across trees."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_forest import Plain, case, every_simd, random_forest, single_tree

from gigrad import kernels
from gigrad.graph.functions import FUNCTIONS
from gigrad.kernels import Stage
from gigrad.testing import shapley

KNOTS = np.array([-2.0, -0.5, 0.25, 1.0, 2.5]), np.array([0.0, 0.1, 0.5, 0.55, 1.0])


POSITIVE = ("log", "sqrt", "logit", "reciprocal", "box_cox", "normal_score")


def softmax(m):
    shifted = np.exp(m - m.max())
    return shifted / shifted.sum()


def affine(weight, bias):
    return Stage("affine", np.asarray(weight, float), np.asarray(bias, float)), lambda m: np.asarray(weight) @ m + bias


# name: (stages, the same as a function of the margins), by number of outputs
LINKS = {
    "sigmoid": lambda k: ([Stage("sigmoid")], lambda m: 1 / (1 + np.exp(-m))),
    "rank of a probability": lambda k: (
        [Stage("sigmoid"), Stage("piecewise_linear", KNOTS[0] / 4 + 0.5, KNOTS[1])],
        lambda m: np.interp(1 / (1 + np.exp(-m)), KNOTS[0] / 4 + 0.5, KNOTS[1]),
    ),
    "softmax": lambda k: ([Stage("softmax")], softmax),
    "one class of a softmax": lambda k: (
        [Stage("softmax"), affine(np.eye(k)[:1], [0.5])[0], Stage("log")],
        lambda m: np.log(softmax(m)[:1] + 0.5),
    ),
    "scaled exp": lambda k: (
        [affine(0.3 * np.eye(k), np.full(k, -0.2))[0], Stage("exp")],
        lambda m: np.exp(0.3 * m - 0.2),
    ),
}


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    outputs=st.sampled_from([1, 3]),
    grid=st.sampled_from([1, 2, 4]),
    missing=st.sampled_from([0.0, 0.2]),
    n_columns=st.integers(1, 6),
    name=st.sampled_from(sorted(LINKS)),
    places=st.booleans(),
)
def test_linked_credit_is_the_definition(seed, outputs, grid, missing, n_columns, name, places):
    _, plain, s, e = case(seed, outputs, grid, missing, n_columns, n=3, places=places)
    stages, link = LINKS[name](outputs)
    want = np.array([plain.credit(*pair, link=link) for pair in zip(s, e, strict=True)])
    for _ in every_simd():
        got = kernels.linked_credits_pairs(plain.forest, stages, s, e, n_threads=1)
        np.testing.assert_allclose(got.values, want, rtol=0, atol=1e-12)
        assert not len(got.large.end)


@pytest.mark.parametrize("name", sorted(kernels.LINK_FUNCTIONS))
def test_every_scalar_function_is_the_graphs(name):
    """A stump that jumps from one margin to another earns the difference of the function."""
    inside = name in ("log", "sqrt", "logit", "reciprocal", "box_cox", "normal_score")
    margins = np.linspace(0.1, 0.9, 9) if inside else np.linspace(-0.9, 4, 11)
    for low, high in pairwise(margins):
        tree = single_tree(3) | {"feature": [0, -1, -1], "threshold": [0.5, 0, 0], "left": [1, -1, -1],
                                 "right": [2, -1, -1], "value": [-1, 0, 1], "values": [low, high]}  # fmt: skip
        got = kernels.linked_credits_pairs(
            Plain(1, tree).forest, [Stage(name, np.array([0.3]))], np.zeros((1, 1)), np.ones((1, 1))
        )
        f = FUNCTIONS[name].value
        want = f(np.array([high]), 0.3) - f(np.array([low]), 0.3)
        np.testing.assert_allclose(got.values.ravel(), want, rtol=1e-13, atol=1e-14)


def test_identity_gives_the_credit_of_the_trees():
    _, plain, s, e = case(11, 3, 4, 0.1, 6, n=50)
    got = kernels.linked_credits_pairs(plain.forest, [], s, e)
    np.testing.assert_allclose(got.values, kernels.credits_pairs(plain.forest, s, e), rtol=0, atol=1e-13)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("grid", [1, 2, 4])
def test_single_credits_are_those_of_pairs_with_those_of_the_trees_beside(outputs, grid):
    """With corners within and across trees, missing values and ties; the sums are the credits without the link."""
    _, plain, s, e = case(17 + grid, outputs, grid, 0.15, 6, n=40)
    starts, ends = s[:37], e[:3]
    first, last = np.tile(starts, (3, 1)), np.repeat(ends, 37, axis=0)
    link = [Stage("softmax" if outputs > 1 else "sigmoid")]
    for _ in every_simd():
        got, sums = kernels.linked_credits_singly(plain.forest, link, starts, ends, n_threads=2)
        want = kernels.linked_credits_pairs(plain.forest, link, first, last)
        np.testing.assert_allclose(got.values, want.values, rtol=0, atol=1e-13)
        np.testing.assert_allclose(sums, kernels.credits_pairs(plain.forest, first, last), rtol=0, atol=1e-13)


def test_single_credits_of_the_trees_are_whole_where_corners_are_left_out():
    plain, s, e = binary_case(30)
    starts = np.concatenate([s, 1 - e, (np.arange(30) % 2 == 0).astype(float)[None]])
    got, sums = kernels.linked_credits_singly(plain.forest, [Stage("sigmoid")], starts, e)
    assert got.large.start.tolist() == got.large.end.tolist() == [0, 1]
    want = kernels.credits_pairs(plain.forest, starts, np.repeat(e, 3, axis=0))
    np.testing.assert_allclose(sums, want, rtol=0, atol=1e-13)


def test_population_is_the_weighted_mean_of_pairs():
    rng, plain, s, e = case(12, 1, 2, 0.1, 6, n=150)
    weights = rng.dirichlet(np.ones(len(s)))
    link = [Stage("sigmoid")]
    for _ in every_simd():
        got = kernels.linked_credits(plain.forest, link, s, weights, e[:3], n_threads=2)
        for i in range(3):
            pairs = kernels.linked_credits_pairs(plain.forest, link, s, np.repeat(e[i : i + 1], len(s), 0))
            want = np.einsum("m,mjk->jk", weights, pairs.values)
            np.testing.assert_allclose(got.values[i], want, rtol=0, atol=1e-14)


def binary_case(n_columns, seed=13):
    """Every variable crosses at one half: one corner of all of them, over many trees."""
    rng = np.random.default_rng(seed)
    plain = random_forest(rng, n_columns=n_columns, n_trees=30, max_depth=4, grid=1, categories=False)
    plain.arrays["threshold"] = plain.arrays["place"] = [0.5] * len(plain.arrays["threshold"])
    return plain, np.zeros((1, n_columns)), np.ones((1, n_columns))


def test_corner_of_fourteen_variables_is_what_asking_all_coalitions_gives():
    plain, s, e = binary_case(14)
    got = kernels.linked_credits_pairs(plain.forest, [Stage("sigmoid")], s, e)
    coalitions = (np.arange(2**14)[:, None] >> np.arange(14) & 1).astype(float)  # the path's end where a bit is set
    game = 1 / (1 + np.exp(-kernels.predict(plain.forest, coalitions)))
    np.testing.assert_allclose(got.values[0], shapley(game), rtol=0, atol=1e-13)
    assert not len(got.large.end)


def sampled(plain, s, e, groups, seed=7, n_threads=1):
    """Credit of the only corner of a pair and its standard error, (columns,) each, from so many groups of orders."""
    one = (np.zeros(1, np.int64),) * 3
    some = kernels.SampledCorners(*one, np.array([0.5]), np.ones(1), np.array([groups]), np.array([seed], np.uint64))
    credit, _, variance, *_ = kernels.sample_corners(plain.forest, [Stage("sigmoid")], s, e, some, 1, n_threads)
    return credit[0, :, 0], np.sqrt(variance[0, :, 0])


def test_large_corner_is_sampled_with_an_honest_error():
    plain, s, e = binary_case(14)
    exact = kernels.linked_credits_pairs(plain.forest, [Stage("sigmoid")], s, e).values[0, :, 0]
    credit, error = sampled(plain, s, e, 2000)
    assert 0 < np.abs(credit - exact).max() < 5 * error.max()
    np.testing.assert_allclose(credit.sum(), exact.sum(), rtol=0, atol=1e-13)  # every order shares out the whole jump
    _, fewer = sampled(plain, s, e, 125)
    assert 3 < fewer.max() / error.max() < 5  # sixteen times the groups, a quarter of the error
    assert sampled(plain, s, e, 2000, n_threads=3)[0].tobytes() == credit.tobytes()
    assert sampled(plain, s, e, 2000, seed=8)[0].tobytes() != credit.tobytes()


def test_corner_of_more_variables_than_bits_is_listed_and_adds_up():
    plain, s, e = binary_case(90, seed=14)
    got = kernels.linked_credits_pairs(plain.forest, [Stage("sigmoid")], s, e)
    assert got.large.players.tolist() == [len(set(plain.arrays["feature"]) - {-1})]
    assert got.large.time.tolist() == [0.5]
    assert not got.values.any()
    ends = 1 / (1 + np.exp(-kernels.predict(plain.forest, np.vstack([s, e]))[:, 0]))
    credit, error = sampled(plain, s, e, 16)
    np.testing.assert_allclose(credit.sum(), ends[1] - ends[0], rtol=0, atol=1e-13)
    assert error.max() > 0


def test_variables_without_effect_do_not_make_a_corner_large():
    """Trees split on each of 18 variables, but both sides ask for the first one in the same way."""
    a: dict[str, list[Any]] = {
        name: [] for name in ("feature", "left", "right", "value", "values", "roots", "set_words")
    }
    for j in range(2, 20):
        root = len(a["feature"])
        a["roots"].append(root)
        a["feature"] += [j, 0, 0, -1, -1, -1, -1] if j > 2 else [1, 0, 0, -1, -1, -1, -1]
        a["left"] += [root + 1, root + 3, root + 5, -1, -1, -1, -1]
        a["right"] += [root + 2, root + 4, root + 6, -1, -1, -1, -1]
        n = len(a["values"])
        a["value"] += [-1, -1, -1, n, n + 1, n + 2, n + 3]
        low, high = np.sin(j), np.cos(j)
        a["values"] += [low, high, low, high] if j > 2 else [low, high, high, low]
    n, trees = len(a["feature"]), len(a["roots"])
    a |= {"threshold": [0.5] * n, "missing_left": [True] * n, "category_set": [-1] * n, "set_start": [0],
          "tree_output": [0] * trees, "base": [0.0]}  # fmt: skip
    plain = Plain(20, a)
    s, e = np.zeros((1, 20)), np.ones((1, 20))
    got = kernels.linked_credits_pairs(plain.forest, [Stage("sigmoid")], s, e)
    assert not len(got.large.end)
    assert got.values[0, :2].all()
    assert not got.values[0, 2:].any()


def test_links_that_do_not_fit_are_refused():
    plain = random_forest(np.random.default_rng(6), n_columns=4)
    forest, x = plain.forest, np.zeros((2, 4))
    for stages, words in (
        ([Stage("sigmoyd")], "sigmoyd"),
        ([Stage("affine", np.ones(3), np.ones(2))], "2 x 1"),
        ([Stage("affine")], "affine"),
        ([Stage("piecewise_linear", np.zeros(2), np.arange(2.0))], "increase"),
        ([Stage("piecewise_linear", np.zeros(1), np.zeros(1))], "two at least"),
    ):
        with pytest.raises(ValueError, match=words):
            kernels.linked_credits_pairs(forest, stages, x, x)
    assert kernels.linked_credits(forest, [], x, np.full(2, 0.5), x[:0]).values.shape == (0, 4, 1)


def test_bits_do_not_depend_on_threads_or_company():
    rng, plain, s, e = case(17, 3, 2, 0.1, 9, n=300)
    weights = rng.dirichlet(np.ones(len(s)))
    for _ in every_simd():

        def run(ends, n_threads, plain=plain):
            return kernels.linked_credits(
                plain.forest, [Stage("softmax")], s, weights, ends, n_threads
            ).values.tobytes()

        together = run(e[:9], 1)
        assert run(e[:9], 2) == run(e[:9], 5) == together
        assert b"".join(run(e[i : i + 1], 2) for i in range(9)) == together


def test_sigmoid_is_exact_to_the_last_digits():
    """The native exponential against the C library's, over all of its range."""
    margins = np.concatenate([np.linspace(-40, 40, 1601), [-800.0, -745.0, 745.0, 800.0]])
    for low, high in pairwise(margins):
        tree = single_tree(3) | {"feature": [0, -1, -1], "threshold": [0.5, 0, 0], "left": [1, -1, -1],
                                 "right": [2, -1, -1], "value": [-1, 0, 1], "values": [low, high]}  # fmt: skip
        got = kernels.linked_credits_pairs(
            Plain(1, tree).forest, [Stage("sigmoid")], np.zeros((1, 1)), np.ones((1, 1))
        ).values.item()
        want = 1 / (1 + math.exp(min(-high, 700))) - 1 / (1 + math.exp(min(-low, 700)))
        assert abs(got - want) <= 4e-16
