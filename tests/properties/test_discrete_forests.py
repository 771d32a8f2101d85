"""Forests over whole numbers in every library against the definition, which works out all places and times itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from whole_numbers import LIBRARIES, MOST, NAMES, TAKES_MISSING, fitted, rows

import gigrad as gig
from gigrad.testing import brute_force

WHOLE: dict[str, Any] = {NAMES[j]: None for j in MOST}
CASES = [(name, False) for name in LIBRARIES] + [(name, True) for name in TAKES_MISSING]


def frame(X: Any) -> Any:
    return pd.DataFrame(X, columns=list(NAMES))


@pytest.mark.parametrize("output", [None, "margin"])
@pytest.mark.parametrize("choice", ["none", "default", "values"])
@pytest.mark.parametrize(("library", "missing"), CASES)
def test_libraries_against_the_definition(library: str, missing: bool, choice: str, output: Any) -> None:
    graph = gig.import_model(fitted(library, missing)).with_columns(NAMES)
    X = np.array(rows(missing))
    start, end = X[:5], X[5:10]
    discrete: Any = {"none": (), "default": None, "values": {"children": [0, 1, 4], "late": [0, 3]}}[choice]
    by_hand: Any = {"none": {}, "default": WHOLE, "values": discrete}[choice]
    if choice == "default" and library == "extra trees":
        discrete = list(WHOLE)  # its thresholds are drawn, so the rule leaves its columns alone
    e = gig.explain_pairs(graph, frame(start), frame(end), output=output, discrete=discrete)
    for i in range(len(start)):
        want = brute_force(graph, start[i], end[i], output=output, discrete=by_hand)
        got = e.values[i].reshape(want.shape)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-9 * max(1.0, np.abs(want).max()))


def grown(library: str, X: Any, y: Any, seed: int) -> Any:
    """A forest of the library with whatever thresholds it likes."""
    if library == "xgboost":
        import xgboost

        method = ["hist", "exact"][seed % 2]
        return xgboost.XGBRegressor(n_estimators=6, max_depth=4, tree_method=method, n_jobs=1).fit(X, y)
    if library == "lightgbm":
        import lightgbm

        return lightgbm.LGBMRegressor(n_estimators=6, min_child_samples=2, verbose=-1, n_jobs=1).fit(X, y)
    if library == "catboost":
        import catboost

        return catboost.CatBoostRegressor(
            iterations=6, depth=4, verbose=0, allow_writing_files=False, thread_count=1
        ).fit(X, y)
    from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor, RandomForestRegressor

    if library == "histogram boosting":
        return HistGradientBoostingRegressor(max_iter=6, min_samples_leaf=2).fit(X, y)
    cls = RandomForestRegressor if library == "forest" else ExtraTreesRegressor
    return cls(6, max_depth=4, random_state=seed).fit(X, y)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost", "histogram boosting", "forest", "extra trees"])
def test_small_integers_full_of_ties(library: str, seed: int) -> None:
    """Four columns of 0 to 4, from anywhere to anywhere: many cross together in opposite directions and over different
    spans, and many begin or end on a threshold."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, (150, 4)).astype(float)
    y = X[:, 0] * X[:, 1] + 3 * (X[:, 2] > X[:, 3]) + rng.normal(size=len(X)) * 0.1
    model = grown(library, X, y, seed)
    graph = gig.import_model(model)
    start, end = rng.integers(0, 5, (2, 12, 4)).astype(float)
    names = graph.feature_names
    for discrete, by_hand in (((), {}), (list(names), dict.fromkeys(names))):
        e = gig.explain_pairs(graph, start, end, discrete=discrete)
        for i in range(len(start)):
            want = brute_force(graph, start[i], end[i], discrete=by_hand)[:, 0]
            np.testing.assert_allclose(e.values[i], want, rtol=0, atol=1e-9 * np.abs(y).max())


@pytest.mark.parametrize("grid", [10, 100])
@pytest.mark.parametrize("library", ["xgboost", "catboost", "forest"])
def test_decimals_in_libraries_of_float32(library: str, grid: int) -> None:
    rng = np.random.default_rng(grid)
    X = rng.integers(0, 8, (200, 4)) / grid
    y = X[:, 0] * X[:, 1] * grid + (X[:, 2] > X[:, 3])
    graph = gig.import_model(grown(library, X, y, 0))
    start, end = rng.integers(0, 8, (2, 12, 4)) / grid
    for kind in (np.float64, np.float32):
        e = gig.explain_pairs(graph, start.astype(kind), end.astype(kind), discrete=())
        for i in range(len(start)):
            want = brute_force(graph, start[i].astype(kind), end[i].astype(kind), discrete={})[:, 0]
            np.testing.assert_allclose(e.values[i], want, rtol=0, atol=1e-9 * max(1.0, np.abs(y).max()))
