"""The rows of pipelines with category_encoders and imbalanced-learn in the conformance table."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from . import data
from .row import Fitted, Row

ENCODERS = (
    "WOEEncoder", "TargetEncoder", "LeaveOneOutEncoder", "CatBoostEncoder", "JamesSteinEncoder", "MEstimateEncoder",
    "OrdinalEncoder", "CountEncoder", "OneHotEncoder", "BinaryEncoder",
)  # fmt: skip


def labelled() -> Any:
    """Labels, some missing; labels that are numbers; numbers."""
    table = data.frame().drop(columns=["amount", "owner"])
    table["purpose"] = table["purpose"].astype(object).where(table["purpose"].notna(), np.nan)
    table["grade"] = table["grade"].astype(int)
    return table


def model_of(kind: str) -> Any:
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    if kind == "trees":
        return GradientBoostingClassifier(n_estimators=4, max_depth=3, random_state=0)
    return LogisticRegression()


def encoded(encoder: str, kind: str, options: str = "", **settings: Any) -> Row:
    def build() -> Fitted:
        import category_encoders
        from sklearn.pipeline import make_pipeline

        step = getattr(category_encoders, encoder)(cols=["purpose", "grade"], **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make_pipeline(step, model_of(kind)).fit(labelled(), data.frame_target()), labelled()

    text = f"{encoder}{options}, then {'trees' if kind == 'trees' else 'a linear model'}"
    return Row("category_encoders", "category_encoders", "Pipeline", "binary", text, build)


def resampled(kind: str, options: str) -> Row:
    def build() -> Fitted:
        from imblearn.over_sampling import SMOTE
        from imblearn.pipeline import make_pipeline
        from imblearn.under_sampling import RandomUnderSampler
        from sklearn.preprocessing import StandardScaler

        steps = [StandardScaler(), SMOTE(random_state=0), RandomUnderSampler(random_state=0)]
        if kind == "trees":
            steps = steps[1:]
        return make_pipeline(*steps, model_of(kind)).fit(data.named(), data.classes_of_two()), data.named()

    return Row("imbalanced-learn", "imblearn", "Pipeline", "binary", options, build)


ROWS = (
    *(encoded(name, "trees") for name in ENCODERS),
    *(encoded(name, "linear") for name in ENCODERS),
    encoded("TargetEncoder", "linear", "(handle_unknown='error')", handle_unknown="error"),
    resampled("trees", "SMOTE, then trees"),
    resampled("linear", "StandardScaler, SMOTE, then a linear model"),
)
