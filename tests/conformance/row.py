"""A row of the conformance table: a kind of model that gigrad must import exactly, as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Fitted = tuple[Any, Any]  # a fitted model, and a table as that model takes it


@dataclass(frozen=True)
class Row:
    """One kind of model.

    Attributes
    ----------
    library : str
        As people call it: "XGBoost".
    package : str
        What must be installed to build it: "xgboost".
    model : str
        The class or classes: "XGBClassifier".
    task : str
        "binary", "multiclass", "regression", "ranking", "survival", "several targets"...
    options : str
        What is special about it, in words for the support table: "dart", "missing values"; empty for the plain model.
    build : callable
        Fits the model; imports its library itself, so that the table can be read where none is installed.
    """

    library: str
    package: str
    model: str
    task: str
    options: str
    build: Callable[[], Fitted]

    @property
    def name(self) -> str:
        return " ".join(part for part in (self.model, self.task, self.options) if part).replace(" ", "-")
