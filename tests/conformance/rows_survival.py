"""The rows of survival models in the conformance table: survival probabilities at all times, and hazards as margins."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from . import data
from .row import Fitted, Row


def durations() -> tuple[Any, Any]:
    """Months up to 6, longer for larger targets, and whether the loan defaulted."""
    rng = np.random.default_rng(31)
    months = np.clip(np.ceil(rng.exponential(2.5, data.N) * np.exp(-0.4 * data.target())), 1, 6)
    return months, rng.random(data.N) < 0.6


def lifelines(**options: Any) -> Callable[[], Fitted]:
    def build() -> Fitted:
        from lifelines import CoxPHFitter

        X = data.named()
        months, event = durations()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return CoxPHFitter(**options).fit(X.assign(months=months, event=event), "months", "event"), X

    return build


def sksurv(name: str, missing: bool = False, **options: Any) -> Callable[[], Fitted]:
    def build() -> Fitted:
        from sksurv.util import Surv

        months, event = durations()
        module, cls = name.split(".")
        X = data.with_missing() if missing else data.numbers()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = getattr(import_module(f"sksurv.{module}"), cls)(**options)
            return model.fit(X, Surv.from_arrays(event, months)), X

    return build


def row(name: str, options: str, **settings: Any) -> Row:
    return Row("scikit-survival", "sksurv", name.split(".")[1], "survival", options, sksurv(name, **settings))


SMALL = {"n_estimators": 4, "max_depth": 3, "random_state": 0}
ROWS = (
    Row("lifelines", "lifelines", "CoxPHFitter", "survival", "", lifelines()),
    Row("lifelines", "lifelines", "CoxPHFitter", "survival", "penalised", lifelines(penalizer=0.1, l1_ratio=0.5)),
    row("linear_model.CoxPHSurvivalAnalysis", ""),
    row("linear_model.CoxPHSurvivalAnalysis", "ridge, Efron's ties", alpha=0.1, ties="efron"),
    row("linear_model.CoxnetSurvivalAnalysis", "its last alpha", fit_baseline_model=True, n_alphas=5),
    row("tree.SurvivalTree", "", max_depth=3),
    row("ensemble.RandomSurvivalForest", "", **SMALL),
    row("ensemble.RandomSurvivalForest", "missing values", missing=True, **SMALL),
    row("ensemble.ExtraSurvivalTrees", "", **SMALL),
    row("ensemble.GradientBoostingSurvivalAnalysis", "", **SMALL),
    row("ensemble.GradientBoostingSurvivalAnalysis", "dropout", dropout_rate=0.3, **SMALL),
    row("ensemble.GradientBoostingSurvivalAnalysis", "squared, the time itself", loss="squared", **SMALL),
    row("ensemble.ComponentwiseGradientBoostingSurvivalAnalysis", "", n_estimators=20, random_state=0),
)
