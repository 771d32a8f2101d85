"""Fitted transformers -> what each transformed column is, in terms of the raw ones.

`table.py` says what a column is made of, `steps.py` the per-column steps; one file a family of transformers fills them
in. `pieces.py` and `trees.py` then rewrite trees on the raw columns, `edges.py` finds where their splits stand there,
`nodes.py` gives smooth models their inputs, and `raw.py` finds what the raw table must hold. A new transformer is one
function and one line here.
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
    "sklearn.SelectorMixin": "compose:selector",
    "sklearn.ColumnTransformer": "compose:column_transformer",
    "sklearn.FeatureUnion": "compose:feature_union",
    "sklearn.Pipeline": "compose:pipeline",
    "sklearn.FrozenEstimator": "compose:frozen",
    "category_encoders.BaseEncoder": "tabulated:category_encoder",
}

# Steps that look at several columns at once in a way that is not smooth: there is nothing to rewrite them as.
_MIXING = {
    "Normalizer": "scale each row before the pipeline, where the scaled columns are the variables",
    "KNNImputer": "use SimpleImputer, or impute before the pipeline",
    "IterativeImputer": "use SimpleImputer, or impute before the pipeline",
}


def transform(transformer: Any, table: Table) -> Table:
    """The table behind a fitted transformer."""
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
    """Where a transformer is read; one that cannot be is an UnsupportedModelError that names it.

    Nothing else is asked of it: transformers outside of scikit-learn may look as if they had never been fitted.
    """
    for cls in type(transformer).__mro__:
        where = TRANSFORMERS.get(f"{cls.__module__.split('.')[0]}.{cls.__qualname__}")
        if where is not None:
            return where
    name = type(transformer).__name__
    where = type(transformer).__module__
    if name in _MIXING:
        raise UnsupportedModelError(
            f"{name} makes each column from several, so what follows is no test on one raw column and the credit of a "
            f"raw column is not defined. Instead, {_MIXING[name]}."
        )
    known = ", ".join(sorted(n.split(".")[1] for n in TRANSFORMERS if n.startswith("sklearn.") and n[-5:] != "Mixin"))
    raise UnsupportedModelError(
        f"The step {name} ({where}) cannot be imported; supported are {known}, scikit-learn's selectors, the encoders "
        "of category_encoders and the samplers of imbalanced-learn. Apply it before the pipeline, so that its output "
        "columns are the variables."
    )


def prediction_steps(steps: Sequence[tuple[str, Any]]) -> list[Any]:
    """The steps of a pipeline that do something when it predicts: not the samplers of imbalanced-learn."""
    return [s for _, s in steps if not (hasattr(s, "fit_resample") and not hasattr(s, "transform"))]
