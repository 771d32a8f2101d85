"""Properties of every scikit-learn estimator: its columns, its classes, and its own predictions."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._io.tables import Rows
from ...errors import NotFittedError
from ...graph import Array, Column, Graph, Input, Node, Opposite, Witness


def require_fitted(model: Any) -> None:
    """Raise NotFittedError for an estimator that has not been fitted."""
    from sklearn.exceptions import NotFittedError as Unfitted
    from sklearn.utils.validation import check_is_fitted

    if getattr(model, "_is_fitted", False) is True:  # optbinning's flag; its fitted attributes do not end in "_"
        return
    steps = getattr(model, "steps", None)  # of a pipeline
    if isinstance(steps, list) and steps[-1][1] == "passthrough":
        return  # scikit-learn 1.4 raises a TypeError here; the steps are checked one by one
    try:
        check_is_fitted(model)
    except Unfitted:
        raise NotFittedError(f"This {type(model).__name__} has not been fitted; call fit first.") from None


def label_of(model: Any) -> str:
    """The estimator's name, for messages."""
    return type(model).__name__


def names_of(model: Any) -> tuple[str, ...] | None:
    """The names of the columns that it was fitted on; None if it was fitted on an array."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(map(str, names))


def number_columns(model: Any) -> tuple[Column, ...]:
    """Its columns, all of them numbers that must not be missing."""
    names = names_of(model) or tuple(f"x{j}" for j in range(model.n_features_in_))
    return tuple(Column(name, missing=False) for name in names)


def takes_missing(model: Any) -> bool:
    """Whether an estimator accepts NaN, by its scikit-learn tags."""
    try:
        from sklearn.utils import get_tags
    except ImportError:  # before 1.6
        return bool(model._get_tags()["allow_nan"])
    return bool(get_tags(model).input_tags.allow_nan)


def estimator_graph(
    model: Any,
    source: Input,
    score: Node,
    margin: Node,
    names: tuple[str, ...],
    *witnesses: Witness,
    no_score: str = "",
    opposite: Opposite | None = None,
) -> Graph:
    """The graph of an estimator whose columns are numbers that must not be missing."""
    return Graph(
        columns=number_columns(model),
        input=source,
        score=score,
        margin=margin,
        output_names=names,
        witnesses=witnesses,
        named=names_of(model) is not None,
        label=label_of(model),
        no_score=no_score,
        opposite=opposite,
    )


@dataclass(frozen=True)
class OwnPrediction:
    """The estimator's own prediction for rows of numbers, (n,) or (n, k).

    Attributes
    ----------
    model : estimator
    method : str
        "predict", "predict_proba", "decision_function"...
    positive : bool
        Whether to keep only the last of two columns: the positive class of a binary classifier.
    """

    model: Any
    method: str
    positive: bool = False

    def __call__(self, rows: Rows) -> Array:
        with warnings.catch_warnings():  # rows are plain numbers: names have been matched already
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            out = np.asarray(getattr(self.model, self.method)(self.data(rows)))
        return out[:, 1:] if self.positive and out.ndim == 2 and out.shape[1] == 2 else out

    def data(self, rows: Rows) -> Any:
        """The rows in the form that the estimator takes."""
        return rows.matrix
