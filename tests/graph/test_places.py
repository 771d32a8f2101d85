"""Where splits stand: exact decimals in every library and behind every step, against what the models themselves do.

Sides are the models' own (predictions at thresholds and their neighbours); places are compared with the numbers that
the libraries and transformers were fitted on, and with a bisection of the transformers' own `transform`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import catboost
import lightgbm
import numpy as np
import pytest
import xgboost
from conformance.binning import quantile_bins
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor, StackingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)
from sklearn.tree import DecisionTreeRegressor

import gigrad as gig
from gigrad.graph import TreeEnsemble, topological
from gigrad.graph.places import DATA_DIGITS, MIDPOINT_DIGITS, between
from gigrad.importers.common.thresholds import Folded, at_most_in_float32, less_in_float32

Floats = NDArray[np.float64]
Make = Callable[[], Any]

DATA: dict[str, Make] = {  # libraries that store a value of the data
    "xgboost": lambda: xgboost.XGBRegressor(n_estimators=12, max_depth=4, n_jobs=1),
}
MEANS: dict[str, Make] = {  # and those that store the mean of two
    "xgboost exact": lambda: xgboost.XGBRegressor(n_estimators=12, max_depth=4, tree_method="exact", n_jobs=1),
    "catboost": lambda: catboost.CatBoostRegressor(iterations=12, verbose=0, allow_writing_files=False, thread_count=1),
    "tree": lambda: DecisionTreeRegressor(max_depth=7, random_state=0),
    "forest": lambda: RandomForestRegressor(6, max_depth=6, random_state=0),
    "histogram boosting": lambda: HistGradientBoostingRegressor(max_iter=12),
    "lightgbm": lambda: lightgbm.LGBMRegressor(n_estimators=12, min_data_in_bin=1, verbose=-1, n_jobs=1),
}
LIBRARIES = DATA | MEANS
SCALERS: dict[str, Make] = {
    "standard": StandardScaler,
    "min max": lambda: MinMaxScaler((-1.3, 2.9)),
    "robust": RobustScaler,
    "max abs": MaxAbsScaler,
    "two": lambda: make_pipeline(RobustScaler(), StandardScaler()),
}
GRIDS = (1.0, 0.1, 0.01)


def table(rows: int = 400) -> tuple[Floats, Floats]:
    """Whole numbers, tenths and hundredths, of which some are missing from the grid."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(1, 60, rows), rng.integers(1, 99, rows) / 10, rng.integers(1, 950, rows) / 100])
    return X, X[:, 0] * (X[:, 1] > 4.2) + 20 * np.sin(X[:, 2]) * X[:, 1] + rng.normal(size=rows)


def trees_of(graph: gig.Graph) -> list[TreeEnsemble]:
    return [n for n in topological(graph.score) if isinstance(n, TreeEnsemble) and n.source is graph.input]


def splits(graph: gig.Graph, column: int) -> tuple[TreeEnsemble, NDArray[np.intp]]:
    """The trees on the raw rows, and their numeric splits on one column that tell numbers apart."""
    (trees,) = trees_of(graph)
    numeric = (trees.feature == column) & (trees.category_set < 0) & (np.abs(trees.threshold) < 1e300)
    return trees, np.flatnonzero(numeric)


def check_sides(model: Any, graph: gig.Graph, X: Floats) -> None:
    """The model's own predictions, at thresholds, at their neighbours and at places."""
    for j in range(X.shape[1]):
        trees, nodes = splits(graph, j)
        nodes = nodes[:40]
        if not len(nodes):
            continue
        for values in (trees.threshold, np.nextafter(trees.threshold, np.inf), trees.place, trees.equal_low):
            rows = X[np.arange(len(nodes)) % len(X)].copy()
            rows[:, j] = np.clip(values[nodes], -1e30, 1e30)
            np.testing.assert_allclose(graph.predict(rows), model.predict(rows), rtol=1e-5, atol=1e-4)


def check_grid(trees: TreeEnsemble, nodes: NDArray[np.intp], values: Floats, grid: float) -> None:
    """Every place is a multiple of half the grid, in the gap of the data that its threshold lies in."""
    assert len(nodes)
    threshold, place = trees.threshold[nodes], trees.place[nodes]
    np.testing.assert_allclose(place, np.round(place / grid * 2) * grid / 2, rtol=1e-12, atol=1e-13)
    known = np.unique(values)
    right = np.searchsorted(known, threshold, side="right")
    assert (right > 0).all()
    assert (right < len(known)).all()
    assert (place > known[right - 1] - 1e-9).all()
    assert (place < known[right] + 1e-9).all()


# ---------------------------------------------------------------- libraries on their own


@pytest.mark.parametrize("library", LIBRARIES)
def test_places_are_the_decimals_of_the_data(library: str) -> None:
    X, y = table()
    model = LIBRARIES[library]().fit(X, y)
    graph = gig.import_model(model)
    check_sides(model, graph, X)
    for j, grid in enumerate(GRIDS):
        trees, nodes = splits(graph, j)
        if library == "xgboost":
            # from 256 values on its histograms are cut between them as well
            assert np.isin(trees.place[nodes], X[:, j]).mean() > 0.9
        else:
            check_grid(trees, nodes, X[:, j], grid)


@pytest.mark.parametrize("grid", [10, 100])
def test_no_mean_of_two_decimals_is_missed(grid: int) -> None:
    """All pairs on a grid up to 10: the mean as float32 has it, and as scikit-learn does, which rounds once less."""
    i, j = np.triu_indices(10 * grid, 1)
    u, v, mean = (i + 1) / grid, (j + 1) / grid, (i + j + 2) / (2 * grid)
    low, high = u.astype(np.float32), v.astype(np.float32)
    single = np.ones(len(u), bool)
    rounded = (low + high) * np.float32(0.5)
    exact = low.astype(np.float64) / 2 + high.astype(np.float64) / 2

    def place(folded: Folded, digits: int) -> Floats:
        return between(*folded.equal, single, digits)

    np.testing.assert_array_equal(place(less_in_float32(rounded), DATA_DIGITS), mean)
    np.testing.assert_array_equal(place(at_most_in_float32(rounded), MIDPOINT_DIGITS), mean)
    np.testing.assert_array_equal(place(at_most_in_float32(exact), MIDPOINT_DIGITS), mean)
    np.testing.assert_array_equal(place(less_in_float32(high), DATA_DIGITS), v)


def test_values_of_the_data_are_not_moved() -> None:
    """Amounts with two decimals, to the limit of what float32 tells apart."""
    value = np.random.default_rng(0).integers(1, 10_000_000, 50_000) / 100
    got = between(*less_in_float32(value).equal, np.ones(len(value), bool))
    np.testing.assert_array_equal(got, value)


def test_the_band_around_zero_stands_at_zero() -> None:
    rng = np.random.default_rng(0)
    X = rng.choice([0.0, 1.0, -2.0, 3.5], (300, 2))
    y = (X[:, 0] != 0) * 2.0 + (X[:, 1] > 0) + rng.normal(size=300) * 0.01
    for options in ({}, {"zero_as_missing": True}, {"use_missing": False}):
        model = lightgbm.LGBMRegressor(n_estimators=8, min_child_samples=5, verbose=-1, n_jobs=1, **options).fit(X, y)
        graph = gig.import_model(model)
        (trees,) = trees_of(graph)
        band = (trees.feature >= 0) & (np.abs(trees.threshold) < 1e-34)
        assert band.any()
        assert (trees.place[band] == 0.0).all()
        assert (trees.equal_low[band] < 0.0).all()
        assert (trees.equal_high[band] > 0.0).all()
        check_sides(model, graph, X)


# ---------------------------------------------------------------- behind scalers


@pytest.mark.parametrize("scaler", SCALERS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_places_behind_scalers_are_the_decimals_of_the_data(library: str, scaler: str) -> None:
    X, y = table()
    model = make_pipeline(SCALERS[scaler](), LIBRARIES[library]()).fit(X, y)
    graph = gig.import_model(model)
    check_sides(model, graph, X)
    for j, grid in enumerate(GRIDS):
        trees, nodes = splits(graph, j)
        if library == "xgboost":
            assert (np.abs(trees.place[nodes] / grid - np.round(trees.place[nodes] / grid)) < 1e-9).mean() > 0.9
            continue
        if library == "lightgbm":  # it parts the scaled numbers at zero, which is no mean of two
            scaled = model[:-1].transform(np.tile(trees.place[nodes][:, None], 3))[:, j]
            nodes = nodes[np.abs(scaled) > 1e-9]
        check_grid(trees, nodes, X[:, j], grid)


def first_at_least(transform: Callable[[Floats], Floats], z: Floats, top: float) -> Floats:
    """The least number up to `top` that an increasing transformer maps to z or more, by halving."""
    low, high = np.zeros(len(z)), np.full(len(z), top)
    while True:
        middle = 0.5 * low + 0.5 * high
        if not ((low < middle) & (middle < high)).any():
            return high
        enough = transform(middle) >= z
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)


CURVES: dict[str, Make] = {
    "standard": StandardScaler,
    "min max": MinMaxScaler,
    "power": PowerTransformer,
    "log1p": lambda: FunctionTransformer(np.log1p),
    "rank": lambda: QuantileTransformer(n_quantiles=40),
    "normal": lambda: QuantileTransformer(n_quantiles=40, output_distribution="normal"),
    "standard and normal": lambda: make_pipeline(
        StandardScaler(), QuantileTransformer(n_quantiles=40, output_distribution="normal")
    ),
}


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("library", ["xgboost", "tree", "lightgbm"])
def test_what_is_mapped_onto_a_threshold_is_found(library: str, curve: str) -> None:
    """Against a bisection of the transformer itself, which knows nothing of pieces and floats in order."""
    rng = np.random.default_rng(1)
    X = np.exp(rng.normal(1.0, 0.7, (500, 1)))
    model = make_pipeline(CURVES[curve](), LIBRARIES[library]()).fit(X, np.sin(3 * X[:, 0]))
    inner, trees = (trees_of(gig.import_model(m))[0] for m in (model[-1], model))
    top = 4.0 * X.max()

    def first(z: Floats) -> Floats:
        return first_at_least(lambda x: np.asarray(model[:-1].transform(x[:, None]))[:, 0], z, top)

    exact = curve in ("standard", "min max", "log1p")  # the others are not monotone to the last bit

    def same(a: float, b: float) -> bool:
        return a == b if exact else abs(a - b) <= 1e-14 * abs(b)

    nodes = np.flatnonzero(inner.feature >= 0)
    raw = np.nextafter(first(np.nextafter(inner.threshold[nodes], np.inf)), -np.inf)
    low = first(inner.equal_low[nodes])
    high = np.nextafter(first(np.nextafter(inner.equal_high[nodes], np.inf)), -np.inf)
    mapped = 0
    for i in np.flatnonzero((trees.threshold > 0) & (trees.threshold < 1e300)).tolist():
        nearest = int(np.argmin(np.abs(raw - trees.threshold[i])))
        assert same(trees.threshold[i], raw[nearest])
        least, most, place = float(low[nearest]), float(high[nearest]), float(trees.place[i])
        if least > most:  # the transformer jumps over the stored number
            assert trees.threshold[i] <= place <= np.nextafter(trees.threshold[i], np.inf)
            continue
        # the decimal of a neighbour may have been taken, which widens the interval up to it
        assert same(trees.equal_low[i], min(least, place))
        assert same(trees.equal_high[i], max(most, place))
        unit = max(float(np.spacing(np.float32(place))), most - least)
        assert least - unit <= place <= most + unit
        mapped += 1
    assert mapped > 5


def test_a_test_that_is_passed_twice_stands_at_both_of_its_numbers() -> None:
    X = np.arange(-50, 51)[:, None] / 10
    model = make_pipeline(PolynomialFeatures((2, 2), include_bias=False), DecisionTreeRegressor(max_depth=1))
    model.fit(X, (np.abs(X[:, 0]) > 2.0).astype(float))
    trees, nodes = splits(gig.import_model(model), 0)
    want = np.sqrt((2.0**2 + 2.1**2) / 2)
    np.testing.assert_allclose(np.sort(trees.place[nodes]), [-want, want], rtol=1e-7)


# ---------------------------------------------------------------- steps that jump


def knots(model: Pipeline, X: Floats) -> list[Floats]:
    """The numbers that the fitted step compares each column with, as scikit-learn has them."""
    step = model[-2]
    if isinstance(step, KBinsDiscretizer):
        return [e[1:-1] for e in step.bin_edges_]
    if isinstance(step, Binarizer):
        return [np.array([step.threshold])] * X.shape[1]
    if isinstance(step, SplineTransformer):
        return [s.t[1:-1] for s in step.bsplines_]
    return [np.asarray(c, float) for c in step.categories_]


STAIRS: dict[str, Make] = {
    "bins": lambda: quantile_bins(6, encode="ordinal"),
    "uniform bins": lambda: KBinsDiscretizer(6, encode="ordinal", strategy="uniform"),
    "dummies of bins": lambda: quantile_bins(6, encode="onehot-dense"),
    "bins in float32": lambda: quantile_bins(6, encode="ordinal", dtype=np.float32),
    "binarizer": lambda: Binarizer(threshold=4.2),
    "splines": lambda: SplineTransformer(degree=0, n_knots=6, extrapolation="continue"),
}


@pytest.mark.parametrize("step", STAIRS)
@pytest.mark.parametrize("library", [*LIBRARIES, "linear"])
def test_steps_stand_where_they_compare(library: str, step: str) -> None:
    """At the edge itself, though its cut is the number before; so in every library and in smooth models."""
    X, y = table()
    last = LinearRegression() if library == "linear" else LIBRARIES[library]()
    model = make_pipeline(STAIRS[step](), last).fit(X, y)
    graph = gig.import_model(model)
    check_sides(model, graph, X)
    for j, edges in enumerate(knots(model, X)):
        trees, nodes = splits(graph, j)
        asked = np.abs(trees.place[nodes][:, None] - edges).min(axis=1)
        # the decimal of a quantile that was interpolated, where the step reads float32
        assert (asked <= (1e-14 if step == "bins in float32" else 0.0)).all()
        assert (trees.single[nodes] == (step == "bins in float32")).all()


@pytest.mark.parametrize("library", ["xgboost", "catboost", "tree"])
def test_bins_behind_a_scaler_stand_at_raw_numbers(library: str) -> None:
    X, y = table()
    bins = quantile_bins(6, encode="ordinal")
    model = make_pipeline(StandardScaler(), bins, LIBRARIES[library]()).fit(X, y)
    graph = gig.import_model(model)
    check_sides(model, graph, X)
    for j, edges in enumerate(knots(model, X)):
        raw = edges * model[0].scale_[j] + model[0].mean_[j]
        trees, nodes = splits(graph, j)
        assert np.abs(trees.place[nodes][:, None] - raw).min(axis=1).max() < 1e-13


@pytest.mark.parametrize("library", ["xgboost", "catboost", "tree", "lightgbm"])
@pytest.mark.parametrize("encoder", ["dummies", "codes"])
def test_encoded_numbers_stand_at_their_labels(library: str, encoder: str) -> None:
    """A column that is also read as a number: every label is a test of equality, passed twice."""
    from sklearn.compose import ColumnTransformer

    rng = np.random.default_rng(0)
    X = np.column_stack([rng.choice([0.1, 0.7, 1.3, 24.0], 300), rng.normal(size=300)])
    y = (X[:, 0] == 0.7) * 3.0 + (X[:, 0] == 24.0) + X[:, 1]
    step = (
        OneHotEncoder(sparse_output=False, handle_unknown="ignore")
        if encoder == "dummies"
        else OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    )
    both = ColumnTransformer([("number", "passthrough", [0, 1]), ("label", step, [0])])
    model = make_pipeline(both, LIBRARIES[library]()).fit(X, y)
    graph = gig.import_model(model)
    check_sides(model, graph, X)
    trees, nodes = splits(graph, 0)
    labels = np.array([0.1, 0.7, 1.3, 24.0])
    encoded = nodes[~trees.single[nodes] & np.isin(trees.place[nodes], labels)]
    assert set(np.unique(trees.place[encoded])) <= set(labels.tolist())
    between_labels = (labels[1:] + labels[:-1]) / 2
    number = np.isin(trees.place[nodes], labels) | (np.abs(trees.place[nodes][:, None] - between_labels) < 1e-12).any(1)
    assert number.all()


# ---------------------------------------------------------------- flat ends


BOUNDED: dict[str, Make] = {
    "rank": lambda: QuantileTransformer(n_quantiles=30),
    "normal": lambda: QuantileTransformer(n_quantiles=30, output_distribution="normal"),
    "clipped": lambda: MinMaxScaler(clip=True),
}


@pytest.mark.parametrize("bounded", BOUNDED)
def test_bounds_stand_at_the_last_value_of_the_data(bounded: str) -> None:
    """`z < 1` in float32 begins before the largest value, and what lies beyond it is that threshold, too."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((300, 2)) < 0.4, 9.7, rng.integers(10, 90, (300, 2)) / 10)
    y = 10.0 * (X[:, 0] == 9.7) * (X[:, 1] == 9.7)
    exact = {"learning_rate": 1.0, "reg_lambda": 0.0, "base_score": 0.0, "min_child_weight": 0}
    last = xgboost.XGBRegressor(n_estimators=1, max_depth=2, n_jobs=1, **exact)
    model = make_pipeline(BOUNDED[bounded](), last).fit(X, y)
    graph = gig.import_model(model)
    check_sides(model, graph, X)
    for j in range(2):
        trees, nodes = splits(graph, j)
        at_bound = nodes[np.abs(trees.place[nodes] - 9.7) < 1e-3]
        assert len(at_bound)
        np.testing.assert_allclose(trees.place[at_bound], 9.7, rtol=1e-15)
        assert (trees.equal_high[at_bound] > 1e300).all()
    # The transformer puts ends beyond the bound on the threshold: both columns cross with the last step, and share.
    start, end = np.array([[2.0, 5.0]]), np.array([[12.0, 700.0]])
    e = gig.explain_pairs(model, start, end, discrete=())
    np.testing.assert_allclose(e.values, [[5.0, 5.0]], rtol=1e-6)


def test_smooth_models_behind_normal_scores_jump_at_the_bounds() -> None:
    """The jumps of QuantileTransformer lie 1e-7 inside of the bounds; they stand at the bounds, and at tied values."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (200, 1)) / 10
    quantile = QuantileTransformer(n_quantiles=20, output_distribution="normal")
    model = make_pipeline(quantile, LinearRegression()).fit(X, X[:, 0])
    graph = gig.import_model(model)
    check_sides(model, graph, X)
    (trees,) = trees_of(graph)
    place = trees.place[(trees.feature >= 0) & (trees.threshold < 1e300)]
    assert set(np.round(place, 12)) == {0.0, 0.1, 0.2, 0.3}
    assert np.isin(place, quantile.quantiles_).all()


# ---------------------------------------------------------------- trees over scores and raw columns


@pytest.mark.parametrize("last", ["tree", "xgboost", "lightgbm"])
def test_ranks_keep_every_place(last: str) -> None:
    X, y = table(200)
    stack = StackingRegressor(
        [("a", MEANS["tree"]()), ("b", LinearRegression())], final_estimator=LIBRARIES[last](), passthrough=True, cv=2
    )
    model = stack.fit(X, y)
    graph = gig.import_model(model)
    (head,) = trees_of(gig.import_model(model.final_estimator_))
    ranks = max(trees_of(graph), key=lambda t: t.width)
    for j in range(3):
        own = (head.feature == 2 + j) & (np.abs(head.threshold) < 1e300)
        kept = (ranks.feature == j) & (np.abs(ranks.threshold) < 1e300)
        names = ("threshold", "place", "equal_low", "equal_high", "single")
        want, got = ({tuple(r) for r in np.stack([getattr(t, n)[k] for n in names], 1).tolist()} for t, k in
                     ((head, own), (ranks, kept)))  # fmt: skip
        assert want <= got
    np.testing.assert_allclose(graph.predict(X), model.predict(X), rtol=1e-5, atol=1e-4)
