"""The rows of pipelines with steps of feature-engine in the conformance table."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from . import data
from .row import Fitted, Row
from .rows_encoders import model_of

Step = tuple[str, dict[str, Any]]  # "module.Class", arguments


def complete() -> Any:
    """Numbers above zero and labels, none missing."""
    import pandas as pd

    rng = np.random.default_rng(17)
    return pd.DataFrame(
        {
            "income": (rng.exponential(2, data.N) + 0.1).round(1),
            "share": rng.integers(1, 10, data.N) / 10.0,
            "purpose": rng.choice(["car", "house", "boat", "school"], data.N, p=[0.5, 0.3, 0.15, 0.05]),
            "children": rng.integers(1, 5, data.N),
        }
    )


def with_gaps() -> Any:
    table, rng = complete(), np.random.default_rng(18)
    table["purpose"] = table["purpose"].astype(object)
    for name in ("income", "purpose"):
        table.loc[rng.random(data.N) < 0.1, name] = np.nan
    return table


def target() -> Any:
    table = complete()
    up = (table["purpose"] == "car").to_numpy() ^ (table["income"] > 2).to_numpy() ^ (table["share"] > 0.4).to_numpy()
    return (up ^ (np.random.default_rng(19).random(data.N) < 0.1)).astype(int)


LABELS, NUMBERS = ["purpose", "children"], ["income", "share"]
TO_NUMBERS: Step = ("encoding.OrdinalEncoder", {"variables": ["purpose"]})


def pipeline(steps: Sequence[Step], kind: str, table: Callable[[], Any]) -> Callable[[], Fitted]:
    def build() -> Fitted:
        from sklearn.pipeline import make_pipeline

        made = []
        for name, arguments in steps:
            module, cls = name.split(".")
            made.append(getattr(import_module(f"feature_engine.{module}"), cls)(**arguments))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make_pipeline(*made, model_of(kind)).fit(table(), target()), table()

    return build


def row(text: str, steps: Sequence[Step], kind: str, table: Callable[[], Any] = complete) -> Row:
    options = f"{text}, then {'trees' if kind == 'trees' else 'a linear model'}"
    return Row("feature-engine", "feature_engine", "Pipeline", "binary", options, pipeline(steps, kind, table))


def encoder(name: str, **arguments: Any) -> list[Step]:
    return [(f"encoding.{name}", {"variables": LABELS, "ignore_format": True, **arguments})]


def of_numbers(name: str, **arguments: Any) -> list[Step]:
    return [(name, {"variables": NUMBERS, **arguments}), TO_NUMBERS]


IMPUTED: list[Step] = [
    ("imputation.AddMissingIndicator", {"variables": ["income", "purpose"]}),
    ("imputation.MeanMedianImputer", {"variables": ["income"]}),
    ("imputation.CategoricalImputer", {"variables": ["purpose"]}),
    TO_NUMBERS,
]
STEPS: dict[str, tuple[list[Step], Callable[[], Any]]] = {
    "MeanMedianImputer, CategoricalImputer, AddMissingIndicator": (IMPUTED, with_gaps),
    "ArbitraryNumberImputer, CategoricalImputer(frequent)": (
        [("imputation.ArbitraryNumberImputer", {"arbitrary_number": -1, "variables": ["income"]}),
         ("imputation.CategoricalImputer", {"imputation_method": "frequent", "variables": ["purpose"]}), TO_NUMBERS],
        with_gaps,
    ),
    "EndTailImputer, OneHotEncoder": (
        [("imputation.EndTailImputer", {"variables": ["income"]}),
         ("imputation.CategoricalImputer", {"variables": ["purpose"]}), *encoder("OneHotEncoder", drop_last=True)],
        with_gaps,
    ),
    "RareLabelEncoder, MeanEncoder": (
        [("encoding.RareLabelEncoder", {"variables": ["purpose"], "tol": 0.2, "n_categories": 2}),
         *encoder("MeanEncoder")],
        complete,
    ),
    "MeanEncoder(unseen='encode')": (encoder("MeanEncoder", unseen="encode"), complete),
    "WoEEncoder": (encoder("WoEEncoder"), complete),
    "OrdinalEncoder(unseen='encode')": (encoder("OrdinalEncoder", unseen="encode"), complete),
    "CountFrequencyEncoder": (encoder("CountFrequencyEncoder"), complete),
    "DecisionTreeEncoder": (encoder("DecisionTreeEncoder", regression=False, random_state=0), complete),
    "EqualFrequencyDiscretiser": (of_numbers("discretisation.EqualFrequencyDiscretiser", q=5), complete),
    "EqualWidthDiscretiser, MeanEncoder": (
        [("discretisation.EqualWidthDiscretiser", {"variables": ["income"], "bins": 3, "return_object": True}),
         ("encoding.MeanEncoder", {"variables": ["income", "purpose"], "unseen": "encode"})],
        complete,
    ),
    "GeometricWidthDiscretiser": (of_numbers("discretisation.GeometricWidthDiscretiser", bins=4), complete),
    "ArbitraryDiscretiser": (
        [("discretisation.ArbitraryDiscretiser", {"binning_dict": {"income": [-np.inf, 0.5, 2.0, np.inf]}}),
         TO_NUMBERS],
        complete,
    ),
    "DecisionTreeDiscretiser": (
        of_numbers("discretisation.DecisionTreeDiscretiser", regression=False, random_state=0), complete,
    ),
    "Winsorizer with indicators": (
        of_numbers("outliers.Winsorizer", capping_method="quantiles", tail="both", fold=0.1, add_indicators=True),
        complete,
    ),
    "ArbitraryOutlierCapper": (
        [("outliers.ArbitraryOutlierCapper", {"max_capping_dict": {"income": 3.0}, "min_capping_dict": {"share": 0.2}}),
         TO_NUMBERS],
        complete,
    ),
    "LogTransformer": (of_numbers("transformation.LogTransformer"), complete),
    "LogCpTransformer(base='10')": (of_numbers("transformation.LogCpTransformer", base="10"), complete),
    "PowerTransformer": (of_numbers("transformation.PowerTransformer"), complete),
    "PowerTransformer(exp=2)": (of_numbers("transformation.PowerTransformer", exp=2), complete),
    "BoxCoxTransformer": (of_numbers("transformation.BoxCoxTransformer"), complete),
    "YeoJohnsonTransformer": (of_numbers("transformation.YeoJohnsonTransformer"), complete),
    "MeanNormalizationScaler, DropFeatures": (
        [*of_numbers("scaling.MeanNormalizationScaler"),
         ("selection.DropFeatures", {"features_to_drop": ["children"]})],
        complete,
    ),
}  # fmt: skip
ONLY_TREES: dict[str, list[Step]] = {
    "ArcSinhTransformer": of_numbers("transformation.ArcSinhTransformer", loc=1.0, scale=2.0),
}

ROWS = (
    *(row(text, steps, kind, table) for text, (steps, table) in STEPS.items() for kind in ("trees", "linear")),
    *(row(text, steps, "trees") for text, steps in ONLY_TREES.items()),
)
