"""`interactions`: the matrix agrees with the sum over steps that it comes from, step by step, and with brute force."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeRegressor
from xgboost import XGBClassifier

import gigrad as gig
from gigrad import InputError
from gigrad._io.tables import read_rows
from gigrad.testing import brute_force_interactions


def step_by_step(score: Any, start: Any, end: Any) -> Any:
    """The definition on whole numbers, asked as a black box: every variable moves by ones, half-way between two.

    Each step of a variable is worth what it changes with the others where they are; what it would have changed with the
    others at the start is its own effect, and the rest is laid to the steps that the others have made, one by one, in
    their order. Ties are broken in every way, and the mean is taken.
    """
    p = len(start)
    steps: dict[Fraction, list[int]] = {}
    for j in range(p):
        count = int(abs(end[j] - start[j]))
        for k in range(count):
            steps.setdefault(Fraction(2 * k + 1, 2 * count), []).append(j)
    orders = list(product(*(permutations(steps[time]) for time in sorted(steps))))
    direction = np.sign(np.asarray(end) - start)
    total = np.zeros((p, p))
    for corners in orders:
        order = [j for corner in corners for j in corner]
        here = np.array(start, float)
        for number, i in enumerate(order):
            there = here.copy()
            there[i] += direction[i]

            def gain(others: Any, before: float = here[i], after: float = there[i], i: int = i) -> float:
                low, high = np.array(others, float), np.array(others, float)
                low[i], high[i] = before, after
                return float(score(np.stack([high]))[0] - score(np.stack([low]))[0])

            others = np.array(start, float)
            total[i, i] += gain(others)
            for j in order[:number]:
                if j != i:
                    so_far = gain(others)
                    others[j] += direction[j]
                    total[i, j] += gain(others) - so_far
            here = there
    return total / len(orders)


def whole_numbers(seed: int, p: int = 3, n: int = 200) -> Any:
    return np.random.default_rng(seed).integers(0, 4, (n, p)).astype(float)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("output", [None, "margin"])
def test_agrees_with_the_sum_over_steps(seed: int, output: Any) -> None:
    X = whole_numbers(seed)
    rng = np.random.default_rng(seed)
    y = (X[:, 0] * X[:, 1] + X[:, 2] * (X[:, 0] > 1) + rng.normal(size=len(X)) > 3).astype(int)
    model = XGBClassifier(n_estimators=6, max_depth=3, n_jobs=1).fit(X, y)

    # trees see the columns as whole numbers, so that the score may be asked there alone
    def score(rows: Any) -> Any:
        return model.predict(rows, output_margin=True) if output == "margin" else model.predict_proba(rows)[:, 1]

    for start, end in rng.choice(X, (3, 2)):
        explainer = gig.Explainer(model, start[None], output=output, discrete=["f0", "f1", "f2"])
        found = gig.interactions(explainer, end[None])
        np.testing.assert_allclose(found.values[0], step_by_step(score, start, end), atol=3e-6)
        np.testing.assert_allclose(found.values.sum(axis=2), explainer(end[None]).values, atol=1e-12)


@pytest.fixture(scope="module")
def loans() -> Any:
    """Flags, counts, an amount with missing values and a category that XGBoost reads itself."""
    rng = np.random.default_rng(0)
    n = 400
    X = pd.DataFrame(
        {
            "owns": rng.integers(0, 2, n),
            "late": rng.integers(0, 5, n),
            "amount": rng.lognormal(size=n).round(2),
            "town": pd.Categorical(rng.choice(["a", "b", "c"], n)),
            "never_used": 0.0,
        }
    )
    X.loc[::7, "amount"] = np.nan
    amount = X["amount"].fillna(2.0)
    risk = X["late"] * (1 - X["owns"]) + amount * (X["town"] == "a") - 0.5 * amount
    return X, (risk + rng.normal(size=n) > 1).astype(int)


def agrees(explainer: gig.Explainer, X: Any, atol: float = 1e-9, **asked: Any) -> gig.Interactions:
    """The matrices of some rows against those of brute force, weighted as the reference is; and their sums."""
    found = gig.interactions(explainer, X)
    graph, starts = explainer.scorer.graph, explainer.reference.matrix
    ends = explainer(X)
    for r, row in enumerate(read_rows(X, graph, what="X").matrix):
        matrices = [brute_force_interactions(graph, start, row, **asked)[:, :, 0] for start in starts]
        np.testing.assert_allclose(found.values[r], np.tensordot(explainer.weights, matrices, 1), atol=atol)
    np.testing.assert_allclose(found.values.sum(axis=2) + found.gap, ends.values, atol=1e-12)
    assert np.abs(found.gap).max() <= max(1e-9, 2 * found.error.max())
    np.testing.assert_allclose(found.own.sum(axis=1) + found.together.sum(axis=(1, 2)) / 2,
                               ends.predictions - ends.base_values, atol=1e-6)  # fmt: skip
    symmetric = found.symmetric()
    np.testing.assert_allclose(symmetric, symmetric.transpose(0, 2, 1), atol=1e-15)
    np.testing.assert_allclose(symmetric.sum(axis=2) + found.gap, ends.values, atol=1e-12)
    return found


def ecdf(model: Any, X: Any) -> Any:
    return gig.SmoothedECDF.fit(model.predict_proba(X)[:, 1])


@pytest.mark.parametrize("space", ["margin", "probability", "rank"])
def test_trees_agree_with_brute_force_in_every_space(loans: Any, space: str) -> None:
    X, bad = loans
    model = XGBClassifier(n_estimators=8, max_depth=3, enable_categorical=True, n_jobs=1).fit(X, bad)
    output = {"margin": "margin", "probability": None, "rank": ecdf(model, X)}[space]
    explainer = gig.Explainer(model, X.head(5), output=output, weights=[1, 2, 3, 4, 5])
    found = agrees(explainer, X.iloc[[14, 20, 33]], output=output)
    assert not found.values[:, 4].any()  # what the model ignores needs nobody, and nobody needs it
    assert not found.values[:, :, 4].any()
    assert found.pairs()["mean_abs"].iloc[0] > 0.01


def test_groups_are_one_variable(loans: Any) -> None:
    X, bad = loans
    X = X[["owns", "late", "amount"]].fillna(1.0)
    model = GradientBoostingRegressor(n_estimators=6, random_state=0).fit(X, bad)
    groups = {"home and late": ["owns", "late"]}
    explainer = gig.Explainer(model, X.head(4), groups=groups)
    found = agrees(explainer, X.iloc[[14, 20]], groups=groups)
    assert found.values.shape == (2, 2, 2)


@pytest.mark.parametrize("kind", ["net", "trees and net"])
def test_smooth_and_mixed_models_agree_with_brute_force(loans: Any, kind: str) -> None:
    X, bad = loans
    X = X[["owns", "late", "amount"]].fillna(1.0)
    net = MLPClassifier((6,), activation="tanh", solver="lbfgs", max_iter=40, tol=1e-2, random_state=0).fit(X, bad)
    model = net
    if kind == "trees and net":
        forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, bad)
        model = gig.average([net, forest])
    agrees(gig.Explainer(model, X.head(3), tol=1e-9), X.iloc[[14, 20]], atol=1e-7)


def test_a_product_is_shared_by_halves_and_the_last_of_two_indicators_needs_the_first() -> None:
    def product_of(x: Any) -> Any:
        return x[:, 0] * x[:, 1]

    smooth = gig.function(product_of, lambda x: x[:, ::-1], ["x", "y"])
    found = gig.interactions(gig.Explainer(smooth, [[0.0, 0.0]]), [[2.0, 3.0]])
    np.testing.assert_allclose(found.values[0], [[0.0, 3.0], [3.0, 0.0]], atol=1e-9)

    corners = [[0.0, 0.0], [0.0, 10.0], [10.0, 0.0], [10.0, 10.0]]
    both = DecisionTreeRegressor().fit(corners, [0, 0, 0, 1])  # both thresholds lie at 5
    found = gig.interactions(gig.Explainer(both, [[0.0, 4.0]], discrete=()), [[6.0, 10.0]])
    np.testing.assert_allclose(found.values[0], [[0.0, 1.0], [0.0, 0.0]])  # x moves last, and needed y
    np.testing.assert_allclose(found.symmetric()[0], [[0.5, 0.5], [0.5, -0.5]])
    back = gig.interactions(gig.Explainer(both, [[6.0, 10.0]], discrete=()), [[0.0, 4.0]])
    np.testing.assert_allclose(back.values[0], [[-1.0, 0.0], [1.0, -1.0]])  # each alone undoes all of it


def test_nothing_for_variables_that_no_part_of_the_model_joins() -> None:
    X = whole_numbers(1, p=4, n=300)
    y = X[:, 0] * X[:, 1] + X[:, 2] - X[:, 3]
    stumps = GradientBoostingRegressor(n_estimators=30, max_depth=1, random_state=0).fit(X, y)
    alone = gig.interactions(gig.Explainer(stumps, X[:20]), X[20:30])
    assert np.abs(alone.together).max() < 1e-12
    np.testing.assert_allclose(alone.own, alone.explanation.values, atol=1e-12)
    assert len(gig.interactions(gig.Explainer(LogisticRegression().fit(X, y > 2), X[:20], output="margin"), X[20:30])
               .pairs().query("mean_abs > 1e-12")) == 0  # fmt: skip

    first = GradientBoostingRegressor(n_estimators=9, random_state=0).fit(X[:, :2], y)
    second = GradientBoostingRegressor(n_estimators=9, random_state=0).fit(X[:, 2:], y)
    frame = pd.DataFrame(X, columns=list("abcd"))
    first.feature_names_in_, second.feature_names_in_ = np.array(["a", "b"]), np.array(["c", "d"])
    found = gig.interactions(gig.Explainer(gig.average([first, second]), frame.head(20)), frame.iloc[20:30])
    assert np.abs(found.together[:, :2, 2:]).max() < 1e-12
    assert np.abs(found.together[:, 0, 1]).max() > 0.1


def test_recoding_a_flag_changes_nothing() -> None:
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.integers(0, 2, 300), rng.integers(0, 5, 300), rng.normal(size=300).round(2)])
    y = X[:, 0] * X[:, 1] + X[:, 2] * (X[:, 0] > 0) + 0.1 * X[:, 2]
    turned = X.copy()
    turned[:, 0] = 1 - turned[:, 0]
    plain, recoded = (DecisionTreeRegressor(max_depth=5, random_state=0).fit(rows, y) for rows in (X, turned))
    np.testing.assert_allclose(plain.predict(X), recoded.predict(turned), atol=1e-12)
    one, two = (
        gig.interactions(gig.Explainer(model, rows[:40]), rows[40:50])
        for model, rows in ((plain, X), (recoded, turned))
    )
    np.testing.assert_allclose(one.values, two.values, atol=1e-12)


def test_tables_and_slices(loans: Any) -> None:
    X, bad = loans
    X = X[["owns", "late", "amount"]]
    model = HistGradientBoostingClassifier(max_iter=10, random_state=0).fit(X, bad)
    found = gig.interactions(gig.Explainer(model, X.head(30)), X.iloc[40:45])
    table = found.to_frame()
    assert table.columns.tolist() == ["id", "feature", "needed", "value"]
    np.testing.assert_allclose(
        table.groupby(["id", "feature"], sort=False)["value"].sum().to_numpy(), found.values.sum(axis=2).ravel()
    )
    pairs = found.pairs()
    assert len(pairs) == 3
    np.testing.assert_allclose(pairs["together"], pairs["feature_needed_other"] + pairs["other_needed_feature"])
    one = found[2]
    assert one.explanation.ids.tolist() == [42]
    assert repr(one).startswith("Interactions of row 42: alone ")
    assert repr(found).count(" and ") == 3


def test_refuses_what_makes_no_sense(loans: Any) -> None:
    X, bad = loans
    X = X[["owns", "late"]]
    model = HistGradientBoostingClassifier(max_iter=3).fit(X, bad + (X["late"] > 3))
    with pytest.raises(InputError, match="an Explainer of one output; got"):
        gig.interactions(model, X)
    with pytest.raises(InputError, match="target="):
        gig.interactions(gig.Explainer(model, X.head(3)), X)
    found = gig.interactions(gig.Explainer(model, X.head(3), target=2), X.head(2))
    with pytest.raises(InputError, match="below 2; got 7"):
        found[7]
