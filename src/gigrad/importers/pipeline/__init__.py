"""Fitted transformers -> each transformed column as a function of the raw ones.

`table.py` represents a transformed column, `steps.py` the steps on one column; there is one file for each family of
transformers. `pieces.py` and `trees.py` then rewrite trees on the raw columns, `edges.py` finds the places of their
splits, `nodes.py` builds the inputs of smooth models, `raw.py` finds what the raw table must hold, and
`own_predictions.py` predicts by the fitted steps themselves. A new transformer is one function and one line here.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from ...errors import UnsupportedModelError
from ..common.estimator import require_fitted
from .table import Table

# "package.Class" of a transformer -> "module:function" in this folder; the function takes it and the table before it
TRANSFORMERS: dict[str, str] = {
    "sklearn.StandardScaler": "scalers:standard_scaler",
    "sklearn.MinMaxScaler": "scalers:min_max_scaler",
    "sklearn.MaxAbsScaler": "scalers:max_abs_scaler",
    "sklearn.RobustScaler": "scalers:robust_scaler",
    "sklearn.QuantileTransformer": "quantiles:quantile_transformer",
    "sklearn.PowerTransformer": "functions:power_transformer",
    "sklearn.FunctionTransformer": "functions:function_transformer",
    "sklearn.SimpleImputer": "imputers:simple_imputer",
    "sklearn.MissingIndicator": "imputers:missing_indicator",
    "sklearn.OneHotEncoder": "encoders:one_hot_encoder",
    "sklearn.OrdinalEncoder": "encoders:ordinal_encoder",
    "sklearn.TargetEncoder": "encoders:target_encoder",
    "sklearn.KBinsDiscretizer": "bins:k_bins_discretizer",
    "sklearn.Binarizer": "bins:binarizer",
    "sklearn.SplineTransformer": "splines:spline_transformer",
    "sklearn.PolynomialFeatures": "mixing:polynomial_features",
    "sklearn.PCA": "mixing:pca",
    "sklearn.IncrementalPCA": "mixing:pca",
    "sklearn.TruncatedSVD": "mixing:truncated_svd",
    "sklearn.FastICA": "mixing:components",
    "sklearn.FactorAnalysis": "mixing:factor_analysis",
    "sklearn.BaseRandomProjection": "mixing:components",
    "sklearn.NeighborhoodComponentsAnalysis": "mixing:components",
    "sklearn.SparsePCA": "mixing:linear_map",
    "sklearn.MiniBatchSparsePCA": "mixing:linear_map",
    "sklearn.LinearDiscriminantAnalysis": "mixing:linear_map",
    "sklearn.FeatureAgglomeration": "mixing:feature_agglomeration",
    "sklearn.RBFSampler": "smooth_maps:rbf_sampler",
    "sklearn.SkewedChi2Sampler": "smooth_maps:skewed_chi2_sampler",
    "sklearn.AdditiveChi2Sampler": "smooth_maps:additive_chi2",
    "sklearn.Nystroem": "smooth_maps:nystroem",
    "sklearn.KernelPCA": "smooth_maps:kernel_pca",
    "sklearn.BernoulliRBM": "smooth_maps:rbm",
    "sklearn.KMeans": "smooth_maps:k_means",
    "sklearn.MiniBatchKMeans": "smooth_maps:k_means",
    "sklearn.BisectingKMeans": "smooth_maps:k_means",
    "sklearn.Birch": "smooth_maps:birch",
    "sklearn.Normalizer": "smooth_maps:normalizer",
    "sklearn.TfidfTransformer": "smooth_maps:tfidf",
    "sklearn.IterativeImputer": "imputers:iterative_imputer",
    "sklearn.StackingClassifier": "models:stacking",
    "sklearn.StackingRegressor": "models:stacking",
    "sklearn.VotingClassifier": "models:voting",
    "sklearn.VotingRegressor": "models:voting",
    "sklearn.RandomTreesEmbedding": "models:random_trees",
    "sklearn.SelectorMixin": "compose:selector",
    "sklearn.ColumnTransformer": "compose:column_transformer",
    "sklearn.FeatureUnion": "compose:feature_union",
    "sklearn.Pipeline": "compose:pipeline",
    "sklearn.FrozenEstimator": "compose:frozen",
    "category_encoders.BaseEncoder": "tabulated:category_encoder",
    "optbinning.BinningProcess": "optbinning:binning_process",
    "feature_engine.BaseImputer": "feature_engine:imputer",
    "feature_engine.BaseOutlier": "feature_engine:capper",
    "feature_engine.CategoricalMethodsMixin": "feature_engine:encoder",
    "feature_engine.BaseDiscretiser": "feature_engine:discretiser",
    "feature_engine.DecisionTreeDiscretiser": "feature_engine:discretiser",
    "feature_engine.LogTransformer": "feature_engine:transformation",
    "feature_engine.LogCpTransformer": "feature_engine:transformation",
    "feature_engine.PowerTransformer": "feature_engine:transformation",
    "feature_engine.ReciprocalTransformer": "feature_engine:transformation",
    "feature_engine.ArcsinTransformer": "feature_engine:transformation",
    "feature_engine.ArcSinhTransformer": "feature_engine:transformation",
    "feature_engine.BoxCoxTransformer": "feature_engine:transformation",
    "feature_engine.YeoJohnsonTransformer": "feature_engine:transformation",
    "feature_engine.MeanNormalizationScaler": "feature_engine:transformation",
    "feature_engine.BaseSelector": "feature_engine:selector",
    "feature_engine.SklearnTransformerWrapper": "feature_engine:wrapped",
}

_ITERATION = "solves for its output by an iteration for every row, which is not an exact function"
_NEIGHBOURS = "searches the nearest training rows, so it jumps along oblique boundaries everywhere"

# Steps that cannot be imported, each with the reason, and what to do instead.
REFUSED: dict[str, tuple[str, str]] = {
    "KNNImputer": (_NEIGHBOURS, "use SimpleImputer or IterativeImputer, or impute before the pipeline"),
    "KNeighborsTransformer": (_NEIGHBOURS, "use RBFSampler or Nystroem"),
    "RadiusNeighborsTransformer": (_NEIGHBOURS, "use RBFSampler or Nystroem"),
    "Isomap": (_NEIGHBOURS, "use KernelPCA or PCA"),
    "LocallyLinearEmbedding": (_NEIGHBOURS, "use KernelPCA or PCA"),
    "NMF": (_ITERATION, "use TruncatedSVD or PCA"),
    "MiniBatchNMF": (_ITERATION, "use TruncatedSVD or PCA"),
    "LatentDirichletAllocation": (_ITERATION, "use TruncatedSVD"),
    "DictionaryLearning": (_ITERATION, "use SparsePCA or PCA"),
    "MiniBatchDictionaryLearning": (_ITERATION, "use SparsePCA or PCA"),
    "SparseCoder": (_ITERATION, "use SparsePCA or PCA"),
    "PolynomialCountSketch": (
        "hashes columns into sums and multiplies those by a Fourier transform, which gigrad does not follow",
        "use PolynomialFeatures, or Nystroem with a polynomial kernel",
    ),
}


def transform(transformer: Any, table: Table) -> Table:
    """The transformed table of a fitted transformer."""
    if isinstance(transformer, str) or transformer is None:
        if transformer in (None, "passthrough"):
            return table
        if transformer == "drop":
            return table.take([])
    module, function = require_known(transformer).split(":")
    require_fitted(transformer)
    out: Table = getattr(import_module(f".{module}", __name__), function)(transformer, table)
    return out


def require_known(transformer: Any) -> str:
    """The "module:function" that imports a transformer; an UnsupportedModelError that names it if there is none.

    It is not checked for being fitted: transformers outside of scikit-learn may look unfitted.
    """
    for cls in type(transformer).__mro__:
        where = TRANSFORMERS.get(f"{cls.__module__.split('.')[0]}.{cls.__qualname__}")
        if where is not None:
            return where
    name = type(transformer).__name__
    where = type(transformer).__module__
    if name in REFUSED and where.startswith("sklearn."):
        why, instead = REFUSED[name]
        raise UnsupportedModelError(f"The step {name} cannot be imported: it {why}. Instead, {instead}.")
    if not hasattr(transformer, "transform"):
        raise UnsupportedModelError(
            f"The step {name} ({where}) cannot be imported: it has no transform method, so its effect on a column is "
            "unknown. Apply it before the pipeline, so that its output columns are the variables."
        )
    return "columnwise:columnwise"


def prediction_steps(steps: Sequence[tuple[str, Any]]) -> list[Any]:
    """The steps of a pipeline that do something when it predicts: not the samplers of imbalanced-learn."""
    return [s for _, s in steps if not (hasattr(s, "fit_resample") and not hasattr(s, "transform"))]
