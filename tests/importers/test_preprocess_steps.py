"""Every transformer, column by column, against what scikit-learn's own transform gives for the same numbers."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from conformance.binning import quantile_bins
from sklearn.cluster import FeatureAgglomeration
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, DictionaryLearning, IncrementalPCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest, SelectPercentile, VarianceThreshold
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.manifold import Isomap
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from unchecked import unchecked

from gigrad.errors import InputError, UnsupportedModelError
from gigrad.graph import Column, Input, evaluate
from gigrad.importers.pipeline import transform
from gigrad.importers.pipeline.edges import cuts
from gigrad.importers.pipeline.nodes import Values
from gigrad.importers.pipeline.raw import objects, raw_columns, uses
from gigrad.importers.pipeline.table import Derived, Table, numbers, run

RNG = np.random.default_rng(0)
ROWS = np.column_stack(
    [RNG.normal(3.0, 2.0, 400), RNG.poisson(1.0, 400), RNG.lognormal(0, 1, 400), RNG.integers(0, 3, 400) * 0.1]
)
TARGET = (ROWS[:, 0] + ROWS[:, 1] + RNG.normal(0, 1, 400) > 4).astype(int)

PER_COLUMN = {
    "standard": StandardScaler(),
    "standard_without_mean": StandardScaler(with_mean=False),
    "standard_without_scale": StandardScaler(with_std=False),
    "min_max": MinMaxScaler((-1, 3)),
    "min_max_clip": MinMaxScaler(clip=True),
    "max_abs": MaxAbsScaler(),
    "robust": RobustScaler(),
    "quantile": QuantileTransformer(n_quantiles=40),
    "quantile_normal": QuantileTransformer(n_quantiles=300, output_distribution="normal"),
    "yeo_johnson": PowerTransformer(),
    "yeo_johnson_alone": PowerTransformer(standardize=False),
    "box_cox": make_pipeline(MinMaxScaler((1, 2)), PowerTransformer("box-cox")),
    "bins": quantile_bins(4),
    "bins_ordinal": KBinsDiscretizer(4, encode="ordinal", strategy="uniform"),
    "bins_single": KBinsDiscretizer(5, encode="ordinal", strategy="kmeans", dtype=np.float32),
    "binarizer": Binarizer(threshold=1.0),
    "log1p": FunctionTransformer(np.log1p),
    "square_then_root": make_pipeline(FunctionTransformer(np.square), FunctionTransformer(np.sqrt)),
    "absolute": make_pipeline(StandardScaler(), FunctionTransformer(np.abs)),
    "no_function": FunctionTransformer(),
    "powers": make_pipeline(StandardScaler(), PolynomialFeatures(4), VarianceThreshold()),
    "union": FeatureUnion([("a", StandardScaler()), ("b", Binarizer())], transformer_weights={"a": 0.3}),
    "select_best": SelectKBest(k=2),
    "select_percentile": SelectPercentile(percentile=50),
    "select_from_model": SelectFromModel(LogisticRegression()),
    "select_rfe": RFE(LogisticRegression(), n_features_to_select=2),
    "bins_of_scaled": make_pipeline(StandardScaler(), KBinsDiscretizer(3), StandardScaler(with_mean=False)),
    "numbers_as_labels": OneHotEncoder(handle_unknown="ignore", max_categories=4),
    "imputed": SimpleImputer(add_indicator=True),
}


def fitted(transformer):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return transformer.fit(ROWS, TARGET)


def table_of(transformer) -> Table:
    return transform(transformer, Table(tuple(Derived(j) for j in range(ROWS.shape[1]))))


def own(transformer, rows) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = transformer.transform(rows)
    return out if isinstance(out, np.ndarray) else out.toarray()


def around(edges: np.ndarray) -> np.ndarray:
    edges = edges[np.abs(edges) < 1e6]
    return np.concatenate([edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)])


@pytest.mark.parametrize("name", PER_COLUMN)
def test_a_step_gives_the_same_bits_and_flips_where_it_says(name):
    transformer = fitted(PER_COLUMN[name])
    table = table_of(transformer)
    derived = [(k, f) for k, f in enumerate(table.features) if isinstance(f, Derived)]
    assert derived
    assert len(table) == own(transformer, ROWS[:2]).shape[1]
    for k, feature in derived:
        edges = cuts(feature.steps)
        probes = np.concatenate([ROWS[:50, feature.column], around(edges[:: max(1, len(edges) // 20)])])
        if name in ("log1p", "box_cox", "square_then_root"):
            probes = probes[probes >= 0]
        rows = np.repeat(ROWS[:1], len(probes), axis=0)
        rows[:, feature.column] = probes
        np.testing.assert_array_equal(numbers(feature.steps)(probes), own(transformer, rows)[:, k])


@pytest.mark.parametrize("name", PER_COLUMN)
def test_a_step_is_monotone_between_its_cuts(name):
    for feature in table_of(fitted(PER_COLUMN[name])).features:
        if not isinstance(feature, Derived):
            continue
        ends = np.unique(np.concatenate([[-50.0], cuts(feature.steps), [50.0]]))
        ends = ends[(ends >= -50) & (ends <= 50)]
        for low, high in pairwise(ends.tolist()):
            x = np.linspace(np.nextafter(low, np.inf), high, 7)
            change = np.diff(numbers(feature.steps)(x))
            assert np.isnan(change).any() or (change >= 0).all() or (change <= 0).all()


SMOOTH = {
    **{k: v for k, v in PER_COLUMN.items() if k != "numbers_as_labels"},
    "splines": SplineTransformer(),
    "splines_linear": SplineTransformer(degree=2, extrapolation="linear", include_bias=False),
    "splines_straight": SplineTransformer(degree=1, extrapolation="continue", knots="quantile", n_knots=3),
    "splines_one_by_one": ColumnTransformer(
        [(str(j), SplineTransformer(degree=1, extrapolation="linear"), [j]) for j in range(4)]
    ),
    "splines_continue": SplineTransformer(extrapolation="continue", n_knots=3),
    "splines_missing": SplineTransformer(handle_missing="zeros"),
    "splines_periodic": SplineTransformer(extrapolation="periodic", n_knots=5),
    "splines_periodic_straight": SplineTransformer(degree=1, extrapolation="periodic", n_knots=4, include_bias=False),
    "splines_straight_ends": SplineTransformer(degree=1, extrapolation="linear"),
    "splines_straight_sparse": SplineTransformer(degree=1, extrapolation="linear", sparse_output=True),
    "splines_straight_two_knots": SplineTransformer(degree=1, extrapolation="linear", n_knots=2),
    "splines_straight_three_knots": SplineTransformer(degree=1, extrapolation="linear", n_knots=3, include_bias=False),
    "splines_steps": SplineTransformer(degree=0, extrapolation="continue"),
    "splines_steps_linear": SplineTransformer(degree=0, extrapolation="linear", n_knots=6),
    "splines_steps_missing": SplineTransformer(degree=0, extrapolation="continue", handle_missing="zeros"),
    "polynomial": PolynomialFeatures(3, interaction_only=False),
    "interactions": make_pipeline(
        PolynomialFeatures((2, 3), interaction_only=True, include_bias=False), SelectKBest(k=3)
    ),
    "pca": make_pipeline(StandardScaler(), PCA(3, whiten=True), StandardScaler()),
    "incremental_pca": IncrementalPCA(2),
    "svd": TruncatedSVD(2),
    "pca_of_bins": make_pipeline(KBinsDiscretizer(3, encode="onehot-dense"), PCA(2), PowerTransformer()),
}  # fmt: skip


def node_of(table: Table, missing: bool = False):
    wanted = [Column(str(k), missing=missing) for k in range(len(table))]
    columns = raw_columns(list("abcd"), list(uses(table.features, wanted)))
    source = Input(4)
    return source, Values(source, columns).node(table.features), columns


@pytest.mark.parametrize("name", SMOOTH)
def test_the_steps_as_nodes_give_what_the_transformer_gives(name):
    transformer = fitted(SMOOTH[name])
    source, node, _ = node_of(table_of(transformer))
    wide = np.abs(ROWS) * RNG.choice([1.0, 1.0, 2.0, 0.0], ROWS.shape)
    want = own(transformer, wide)
    got = evaluate((node,), {source: wide})[node]
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9 * max(1.0, float(np.abs(want).max())))


@pytest.mark.parametrize("name", [name for name in SMOOTH if name.startswith("splines")])
def test_splines_are_followed_at_their_knots_and_far_beyond_them(name):
    transformer = fitted(SMOOTH[name])
    source, node, _ = node_of(table_of(transformer))
    low, high = ROWS.min(axis=0), ROWS.max(axis=0)
    at = np.linspace(low - 2.5 * (high - low), high + 2.5 * (high - low), 97)
    one = transformer if isinstance(transformer, SplineTransformer) else None
    if one is not None:
        knots = np.stack([s.t for s in one.bsplines_], axis=1)
        at = np.concatenate([at, knots, np.nextafter(knots, -np.inf), np.nextafter(knots, np.inf)])
    want, got = own(transformer, at), evaluate((node,), {source: at})[node]
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9 * max(1.0, float(np.abs(want).max())))


def test_a_periodic_curve_says_how_far_it_is_followed():
    source, node, _ = node_of(table_of(fitted(SplineTransformer(extrapolation="periodic"))))
    with pytest.raises(InputError, match="100 periods"):
        evaluate((node,), {source: np.full((1, 4), 1e9)})


@pytest.mark.parametrize("name", ["yeo_johnson", "quantile", "quantile_normal", "splines", "splines_linear", "box_cox"])
def test_the_slopes_of_the_nodes_are_those_of_the_transformer(name):
    from gigrad.testing import gradient

    transformer = fitted(SMOOTH[name])
    source, node, _ = node_of(table_of(transformer))
    x = np.random.default_rng(1).uniform(0.05, 2.9, (40, 4))
    x[:, 3] /= 15
    h = 1e-7
    for k in range(0, node.width, 3):
        slope = gradient(node, source, x, k)
        for j in range(4):
            ahead, behind = x.copy(), x.copy()
            ahead[:, j] += h
            behind[:, j] -= h
            change = (own(transformer, ahead) - own(transformer, behind))[:, k] / (2 * h)
            np.testing.assert_allclose(slope[:, j], change, rtol=2e-4, atol=2e-4 * max(1.0, np.abs(change).max()))


LABELS = np.array([["a", "x"], ["b", "y"], ["a", "z"], ["c", "x"], ["a", "y"], ["b", None], ["a", "x"]], dtype=object)
LABELS[5, 1] = np.nan

ENCODERS = {
    "one_hot": OneHotEncoder(handle_unknown="ignore"),
    "one_hot_drop": OneHotEncoder(drop="first", handle_unknown="ignore"),
    "one_hot_binary": OneHotEncoder(drop="if_binary", handle_unknown="ignore"),
    "one_hot_drop_named": OneHotEncoder(drop=["b", "x"], handle_unknown="ignore"),
    "one_hot_rare": OneHotEncoder(min_frequency=2, handle_unknown="infrequent_if_exist"),
    "one_hot_rare_drop": OneHotEncoder(max_categories=2, drop="first", handle_unknown="infrequent_if_exist"),
    "ordinal": OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-3, encoded_missing_value=-7),
    "ordinal_rare": OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan, min_frequency=2),
    "target": TargetEncoder(),
    "filled": make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")),
    "filled_with_label": make_pipeline(SimpleImputer(strategy="constant", fill_value="gone"), OrdinalEncoder()),
    "filled_marked": make_pipeline(
        SimpleImputer(missing_values="x", strategy="constant", fill_value="y"), OneHotEncoder(handle_unknown="ignore")
    ),
}


@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoder_gives_the_same_numbers_for_every_label(name):
    encoder = ENCODERS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train = [0, 1, 2, 3, 4, 6] if name == "filled_marked" else [*range(7)]  # a marker of its own leaves no NaN
        encoder.fit(LABELS[train], np.array([0, 1, 0, 1, 1, 0, 0])[train])
        table = transform(encoder, Table((Derived(0), Derived(1))))
        wanted = [Column(str(k)) for k in range(len(table))]
        columns = raw_columns(["p", "q"], list(uses(table.features, wanted)))
        for j, column in enumerate(columns):
            labels: list[Any] = list(unchecked(column.labels))
            labels += ["never seen"] if column.unknown == "other" else []
            labels += [np.nan] if column.missing else []
            assert len(labels) >= 3
            rows = np.repeat(LABELS[:1], len(labels), axis=0)
            rows[:, j] = objects(labels)
            want = own(encoder, rows).astype(float)
            for k, feature in enumerate(table.features):
                if isinstance(feature, Derived) and feature.column == j:
                    got = run(feature.steps, objects(labels))
                    np.testing.assert_array_equal(got.astype(float), want[:, k])


def test_an_encoder_that_refuses_makes_a_column_that_refuses():
    table = transform(OneHotEncoder().fit(LABELS[:5]), Table((Derived(0), Derived(1))))
    columns = raw_columns(["p", "q"], list(uses(table.features, [Column(str(k)) for k in range(len(table))])))
    assert [c.unknown for c in columns] == ["refuse", "refuse"]
    assert not any(c.missing for c in columns)
    assert columns[1].labels == ("x", "y", "z")


def test_missing_indicator_marks_what_is_missing():
    rows = ROWS.copy()
    rows[3, 1] = np.nan
    indicator = MissingIndicator().fit(rows)
    (feature,) = table_of(indicator).features
    assert isinstance(feature, Derived)
    np.testing.assert_array_equal(run(feature.steps, rows[:, 1]), indicator.transform(rows)[:, 0])


@pytest.mark.parametrize(
    ("transformer", "said"),
    [
        (Normalizer(norm="max"), "norm='l1'"),
        (KNNImputer(), "KNNImputer.*SimpleImputer"),
        (FunctionTransformer(np.cumsum), "FunctionTransformer.*'cumsum'"),
        (SplineTransformer(degree=0, extrapolation="periodic"), "steps without end"),
        (SplineTransformer(degree=0, extrapolation="linear", n_knots=3), "confuses the ends"),
        (DictionaryLearning(1, max_iter=1), "DictionaryLearning.*iteration.*SparsePCA"),
        (Isomap(n_neighbors=2, n_components=1), "Isomap.*nearest.*KernelPCA"),
        (TfidfTransformer(sublinear_tf=True), "sublinear_tf=False"),
        (FeatureAgglomeration(1, pooling_func=np.max), "pooling_func=np.mean"),
    ],
)
def test_steps_that_cannot_be_followed_are_refused_by_name(transformer, said):
    with pytest.raises(UnsupportedModelError, match=said):
        table_of(fitted(transformer))
