"""The rows of glum in the conformance table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import data
from .row import Fitted, Row

MODEL = "GeneralizedLinearRegressor"


def labelled() -> Any:
    """Categories of strings, some missing, and of integers; no missing numbers, which glum refuses."""
    return data.frame().drop(columns="amount")


def row(model: str, task: str, options: str, X: Callable[[], Any], y: Callable[[], Any], **settings: Any) -> Row:
    def build() -> Fitted:
        import glum

        return getattr(glum, model)(**settings).fit(X(), y()), X()

    return Row("glum", "glum", model, task, options, build)


ROWS = (
    row(MODEL, "regression", "gamma", data.named, data.positive, family="gamma", alpha=0.01),
    row(MODEL, "regression", "poisson, an array", data.numbers, data.class_codes, family="poisson", alpha=0.01),
    row(MODEL, "regression", "normal", data.named, data.target, alpha=0.01),
    row(MODEL, "any", "binomial, categories, missing ones converted", labelled, data.frame_target, family="binomial",
        alpha=0.01, cat_missing_method="convert", drop_first=True),
    row(MODEL, "any", "binomial, categories, missing ones zero", labelled, data.frame_target, family="binomial",
        alpha=0.01, cat_missing_method="zero"),
    row("GeneralizedLinearRegressorCV", "regression", "tweedie", data.named, data.positive, family="tweedie",
        alphas=[0.1, 1.0], cv=3),
)  # fmt: skip
