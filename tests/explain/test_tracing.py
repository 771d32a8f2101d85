"""Paths: what is gathered on the way, against the model itself asked on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor

import gigrad as gig
from gigrad import InputError
from gigrad.testing import brute_force


def regression(depth: int, n: int = 400, p: int = 4, **more: Any) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    y = X[:, 0] * X[:, 1] + np.abs(X[:, 2]) + 0.5 * X[:, 0]
    return GradientBoostingRegressor(max_depth=depth, n_estimators=25, random_state=0, **more).fit(X, y), X


def test_an_additive_model_credits_each_variable_with_its_own_change_so_far() -> None:
    model, X = regression(depth=1)
    start, end = X[:1], X[1:2]
    e = gig.explain_pairs(model, start, end, paths=1)
    assert e.paths is not None
    for t, credit in zip(e.paths.times, e.paths.credit[0], strict=True):
        for j in range(X.shape[1]):
            moved = start.copy()
            moved[0, j] = (1 - t) * start[0, j] + t * end[0, j]
            assert credit[j] == pytest.approx((model.predict(moved) - model.predict(start))[0], abs=1e-9)


def test_the_score_on_the_way_is_the_models_own_and_the_credits_add_up_to_it() -> None:
    model, X = regression(depth=3)
    e = gig.explain_pairs(model, X[:3], X[3:6], paths=3)
    assert e.paths is not None
    for i in range(3):
        points = X[i] + e.paths.times[:, None] * (X[i + 3] - X[i])
        np.testing.assert_allclose(e.paths.score[i], model.predict(points), atol=1e-9)
    np.testing.assert_allclose(e.paths.credit.sum(axis=2), e.paths.score - e.paths.score[:, :1], atol=1e-9)
    np.testing.assert_allclose(e.paths.credit[:, -1], e.values, atol=1e-12)


def test_credit_so_far_is_the_definitions_credit_of_the_way_so_far() -> None:
    model, X = regression(depth=3)
    e = gig.explain_pairs(model, X[:1], X[1:2], paths=1)
    assert e.paths is not None
    for k in (20, 67, 110):
        t = e.paths.times[k]
        so_far = brute_force(model, X[0], (1 - t) * X[0] + t * X[1])[:, 0]
        np.testing.assert_allclose(e.paths.credit[0, k], so_far, atol=1e-9)


def test_missing_values_and_categories_change_half_way() -> None:
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.integers(0, 4, 500), rng.normal(size=500), rng.normal(size=500)]).astype(float)
    X[rng.random(500) < 0.3, 1] = np.nan
    y = np.array([3.0, 0.0, -2.0, 1.0])[X[:, 0].astype(int)] + np.where(np.isnan(X[:, 1]), 2.0, X[:, 1]) + X[:, 2]
    model = HistGradientBoostingRegressor(max_iter=20, categorical_features=[0], random_state=0).fit(X, y)
    start = X[(X[:, 0] == 0) & np.isnan(X[:, 1])][:1]
    end = X[(X[:, 0] == 2) & ~np.isnan(X[:, 1])][:1]
    e = gig.explain_pairs(model, start, end, paths=1)
    assert e.paths is not None
    before = e.paths.times < 0.5
    assert (e.paths.credit[0][before][:, :2] == 0).all()
    after = e.paths.credit[0][~before]
    np.testing.assert_allclose(e.paths.credit[0, -1], e.values[0], atol=1e-12)
    jumps = {int(f): (t, s) for t, f, s in zip(e.paths.jump_time, e.paths.jump_feature, e.paths.jump_size, strict=True)}
    for j in (0, 1):
        time, size = jumps[j]
        assert time == pytest.approx(0.5, abs=1e-9)
        assert size == pytest.approx(after[0, j], abs=1e-6)


def test_a_probability_on_the_way_is_traced_piece_by_piece() -> None:
    from sklearn.ensemble import GradientBoostingClassifier

    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 3))
    model = GradientBoostingClassifier(max_depth=2, n_estimators=10, random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
    e = gig.explain_pairs(model, X[:1], X[1:2], paths=1)
    assert e.paths is not None
    points = X[0] + e.paths.times[:, None] * (X[1] - X[0])
    np.testing.assert_allclose(e.paths.score[0], model.predict_proba(points)[:, 1], atol=1e-9)
    for k in (20, 67, 121):
        t = e.paths.times[k]
        so_far = brute_force(model, X[0], (1 - t) * X[0] + t * X[1])[:, 0]
        np.testing.assert_allclose(e.paths.credit[0, k], so_far, atol=1e-9)
    for time, size in zip(e.paths.jump_time, e.paths.jump_size, strict=True):  # the model itself jumps there
        beside = X[0] + np.array([[time - 1e-4], [time + 1e-4]]) * (X[1] - X[0])
        assert np.diff(model.predict_proba(beside)[:, 1])[0] == pytest.approx(size, abs=1e-9)


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
def test_a_stack_of_trees_and_a_net_is_traced_too() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPRegressor

    trees, X = regression(depth=2)
    net = MLPRegressor(hidden_layer_sizes=(4,), activation="tanh", max_iter=300, random_state=0).fit(
        X, X[:, 0] - X[:, 2]
    )
    Z = np.column_stack([trees.predict(X), net.predict(X)])
    model = gig.stack([trees, net], LogisticRegression().fit(Z, Z.sum(axis=1) > 0.5))
    e = gig.explain_pairs(model, X[:1], X[1:2], paths=1)
    assert e.paths is not None
    np.testing.assert_allclose(e.paths.credit[0, -1], e.values[0], atol=1e-5)
    points = X[0] + e.paths.times[:, None] * (X[1] - X[0])
    np.testing.assert_allclose(e.paths.score[0], model.predict(points), atol=1e-9)
    np.testing.assert_allclose(e.paths.credit[0].sum(axis=1), e.paths.score[0] - e.paths.score[0, 0], atol=1e-5)
    for time, size in zip(e.paths.jump_time, e.paths.jump_size, strict=True):
        beside = X[0] + np.array([[time - 1e-4], [time + 1e-4]]) * (X[1] - X[0])
        assert np.diff(model.predict(beside))[0] == pytest.approx(size, abs=5e-3)


def test_corners_of_many_variables_under_a_link() -> None:
    """Whole numbers, categories and missing values: most corners are passed by several variables at once."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    rng = np.random.default_rng(6)
    X = rng.integers(0, 4, size=(400, 5)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X[:, 0]) * np.nan_to_num(X[:, 1]) + (X[:, 2] == 2) + rng.normal(size=400) > 2.5
    model = HistGradientBoostingClassifier(max_iter=15, categorical_features=[2, 3], random_state=0).fit(X, y)
    for groups in (None, {"both": ["x0", "x2"]}):
        e = gig.explain(model, X[:3], X[3:23], paths=3, groups=groups)
        assert e.paths is not None
        np.testing.assert_allclose(e.paths.credit[:, -1], e.values, atol=1e-12)
        np.testing.assert_allclose(e.paths.score[:, -1], e.predictions, atol=1e-12)


def test_a_smooth_model_has_no_jumps_but_where_a_missing_value_is_filled() -> None:
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 3))
    model = make_pipeline(SimpleImputer(strategy="constant", fill_value=0.0), LogisticRegression())
    model.fit(X, X @ [2.0, -1.0, 0.5] > 0)
    start, end = np.array([[-1.0, 1.0, np.nan]]), np.array([[1.5, -1.0, 2.0]])
    e = gig.explain_pairs(model, start, end, paths=1)
    assert e.paths is not None
    assert e.paths.jump_feature.tolist() == [2]
    np.testing.assert_allclose(e.paths.jump_time, [0.5], atol=1e-12)
    path = start + e.paths.times[:, None] * (end - start)
    path[:, 2] = np.where(e.paths.times < 0.5, np.nan, 2.0)
    np.testing.assert_allclose(e.paths.score[0], model.predict_proba(path)[:, 1], atol=1e-9)
    np.testing.assert_allclose(e.paths.credit[0, -1], e.values[0], atol=1e-6)


def test_jumps_are_found_where_thresholds_are_passed() -> None:
    from sklearn.tree import DecisionTreeRegressor

    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    model = DecisionTreeRegressor().fit(X, [0.0, 1.0, 5.0, 6.0])
    e = gig.explain_pairs(model, [[0.1, -1.0]], [[2.1, 1.5]], paths=1)
    assert e.paths is not None
    found = sorted(zip(e.paths.jump_time, e.paths.jump_feature, e.paths.jump_size, strict=True))
    assert [f for _, f, _ in found] == [0, 1]
    np.testing.assert_allclose([t for t, _, _ in found], [0.4 / 2.0, 1.5 / 2.5], atol=1e-5)
    np.testing.assert_allclose([s for _, _, s in found], [5.0, 1.0])


def test_jumps_of_trees_over_a_score_are_found_and_shared_along_it() -> None:
    from sklearn.linear_model import LinearRegression
    from sklearn.tree import DecisionTreeRegressor

    rng = np.random.default_rng(8)
    X = rng.normal(size=(300, 3))
    line = LinearRegression().fit(X, X @ [1.0, 2.0, -1.0])
    scores = line.predict(X)[:, None]
    tree = DecisionTreeRegressor(max_depth=1).fit(scores, scores[:, 0] > 0.3)
    start, end = np.array([[-1.0, -1.0, 1.0]]), np.array([[2.0, 1.0, 0.5]])
    e = gig.explain_pairs(gig.stack([line], tree), start, end, paths=1)
    assert e.paths is not None
    parts = (end - start)[0] * line.coef_
    when = (tree.tree_.threshold[0] - line.predict(start)[0]) / parts.sum()
    np.testing.assert_allclose(e.values[0], parts / parts.sum(), atol=1e-12)  # the tree rises from 0 to 1
    assert sorted(e.paths.jump_feature.tolist()) == [0, 1, 2]
    np.testing.assert_allclose(e.paths.jump_time, when, atol=1e-4)  # narrowed down
    np.testing.assert_allclose(e.paths.jump_size, e.values[0][e.paths.jump_feature], atol=1e-12)
    np.testing.assert_allclose(e.paths.credit[0, -1], e.values[0], atol=1e-12)


@pytest.mark.parametrize("space", ["margin", "rank"])
def test_columns_that_two_libraries_read_in_two_precisions(space: str) -> None:
    """On a grid of 0.1 that is stored in float32: XGBoost reads decimals, scikit-learn what is there."""
    import xgboost

    rng = np.random.default_rng(9)
    X = (rng.integers(0, 12, (300, 3)) / 10).astype(np.float32).astype(float)
    y = X[:, 0] * X[:, 1] - np.abs(X[:, 2] - 0.5)
    single = xgboost.XGBRegressor(n_estimators=8, max_depth=3, n_jobs=1).fit(X, y)
    double = HistGradientBoostingRegressor(max_iter=8, max_depth=3, random_state=0).fit(X, y)
    f = gig.average([gig.import_model(m).with_columns(["x0", "x1", "x2"]) for m in (single, double)])
    f = f.then(gig.SmoothedECDF.fit(f.predict(X), 15)) if space == "rank" else f
    e = gig.explain_pairs(f, X[:6], X[6:12], paths=6, discrete=())
    assert e.paths is not None
    np.testing.assert_allclose(e.paths.credit[:, -1], e.values, atol=1e-12)
    for i in range(6):
        for k in (17, 61, 99):
            so_far = brute_force(f, X[i], X[6 + i], until=float(e.paths.times[k]))[:, 0]
            np.testing.assert_allclose(e.paths.credit[i, k], so_far, atol=1e-12)


def test_a_populations_path_is_the_weighted_mean_of_the_paths_from_each_reference() -> None:
    model, X = regression(depth=3)
    weights = np.array([0.5, 0.3, 0.2])
    e = gig.explain(model, X[10:12], X[:3], weights=weights, paths=[1])
    assert e.paths is not None
    assert (e.paths.rows.tolist(), e.paths.references, e.paths.of) == ([1], 3, 3)
    alone = [gig.explain_pairs(model, X[[m]], X[[11]], paths=1).paths for m in range(3)]
    mean = sum(w * a.credit[0] for w, a in zip(weights, alone, strict=True) if a is not None)
    np.testing.assert_allclose(e.paths.credit[0], mean, atol=1e-12)
    np.testing.assert_allclose(e.paths.credit[0, -1], e.values[1], atol=1e-12)


def test_references_are_sampled_where_there_are_too_many_to_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.linear_model import LogisticRegression

    monkeypatch.setattr("gigrad._explain.tracing.WAYS", 80)
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 2))
    model = LogisticRegression().fit(X, X.sum(axis=1) > 0)
    e = gig.explain(model, X[:2], X, tol=1e-4, paths=1)
    assert e.paths is not None
    assert (e.paths.references, e.paths.of) == (80, 300)
    assert e.paths.said == "mean over a sample of 80 of 300 references"
    np.testing.assert_allclose(e.paths.credit[0, -1].sum(), e.values[0].sum(), atol=0.01)  # it keeps the scores' spread


def test_groups_gather_as_one_variable() -> None:
    model, X = regression(depth=3)
    e = gig.explain(model, X[:2], X[5:9], groups={"both": ["x0", "x1"]}, paths=2)
    assert e.paths is not None
    assert e.feature_names == ("both", "x2", "x3")
    np.testing.assert_allclose(e.paths.credit[:, -1], e.values, atol=1e-9)
    np.testing.assert_allclose(e.paths.credit.sum(axis=2), e.paths.score - e.paths.score[:, :1], atol=1e-9)


def test_several_outputs_have_paths_of_their_own() -> None:
    from sklearn.ensemble import RandomForestRegressor

    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 3))
    model = RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, np.column_stack([X[:, 0], X[:, 1] * X[:, 2]]))
    e = gig.explain(model, X[:2], X[5:9], paths=2)
    assert e.paths is not None
    assert e.paths.credit.shape == (2, 122, 3, 2)
    np.testing.assert_allclose(e.paths.credit[:, -1], e.values, atol=1e-12)
    one = e[:, :, 1].paths
    assert one is not None
    np.testing.assert_array_equal(one.jump_size, e.paths.jump_size[:, 1])


@pytest.mark.parametrize("paths", [-1, [5], [-1], "all", 1.5, True])
def test_paths_that_cannot_be_kept_are_refused(paths: Any) -> None:
    model, X = regression(depth=1)
    with pytest.raises(InputError, match="paths must be how many rows' paths to keep"):
        gig.explain(model, X[:5], X[5:9], paths=paths)


def flags_and_a_count(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.integers(0, 2, (n, 3)), rng.integers(0, 5, n), np.round(rng.gamma(2.0, 2.0, n), 1)])
    y = X[:, 0] * X[:, 1] + X[:, 2] * (X[:, 3] > 2) + X[:, 0] * (X[:, 4] > 3) * X[:, 3]
    return X.astype(float), y


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "sklearn"])
@pytest.mark.parametrize("kind", ["trees", "rank", "mixed", "grouped"])
def test_paths_of_discrete_columns_end_where_the_credits_are(library: str, kind: str) -> None:
    import lightgbm
    import xgboost
    from sklearn.linear_model import LinearRegression
    from sklearn.tree import DecisionTreeRegressor

    X, y = flags_and_a_count(400)
    model = {
        "xgboost": xgboost.XGBRegressor(n_estimators=10, max_depth=4),  # x < 1
        "lightgbm": lightgbm.LGBMRegressor(n_estimators=10, num_leaves=12, verbose=-1),  # x <= 1e-35
        "sklearn": DecisionTreeRegressor(max_depth=6, random_state=0),  # x <= 0.5
    }[library].fit(X, y)
    f = gig.import_model(model).with_columns([f"x{j}" for j in range(5)])
    options: dict[str, Any] = {}
    if kind == "rank":
        f = f.then(gig.SmoothedECDF.fit(model.predict(X), 20))
    elif kind == "mixed":
        f = gig.average([f, LinearRegression().fit(X, y)]).then(gig.SmoothedECDF.fit(model.predict(X), 20))
    elif kind == "grouped":
        options = {"groups": {"both": ["x0", "x1"]}}
    exact = 1e-9 if kind == "mixed" else 1e-12
    e = gig.explain(f, X[:4], X[20:45], paths=4, tol=1e-11, **options)
    assert set(e.provenance["choice"]["discrete"]["thresholds"]) >= {"x0", "x1", "x2", "x3"}
    assert e.paths is not None
    # a mean over many references may be drawn from a sample of them; 25 are all asked
    assert np.abs(e.paths.credit[:, -1] - e.values).max() < exact * np.abs(e.values).max()
    assert np.abs(e.paths.score[:, -1] - e.predictions).max() < 1e-6 * np.abs(e.predictions).max()
    pairs = gig.explain_pairs(f, X[20:24], X[:4], paths=4, tol=1e-11, **options)
    assert pairs.paths is not None
    assert np.abs(pairs.paths.credit[:, -1] - pairs.values).max() < exact * np.abs(pairs.values).max()
    discrete = dict.fromkeys(pairs.provenance["choice"]["discrete"]["thresholds"])
    for k in (30, 61, 90):  # the definition up to then; 61 is the first time after one half
        for i in range(4):
            until = float(pairs.paths.times[k])
            so_far = brute_force(f, X[20 + i], X[i], discrete=discrete, until=until, groups=options.get("groups"))
            np.testing.assert_allclose(pairs.paths.credit[i, k], so_far[:, 0], atol=1e-9)
    if kind == "trees":  # flags jump at one half and nowhere else
        flags = np.isin(pairs.paths.jump_feature, (0, 1, 2))
        assert flags.any()
        assert set(pairs.paths.jump_time[flags]) == {0.5}
