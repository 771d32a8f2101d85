"""What a model expects of each column of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .cityhash import category_hash
from .node import Array

Kind = Literal["number", "category", "unused"]
Unknown = Literal["refuse", "missing", "other"]
KnownAs = Literal["label", "catboost hash"]

_KNOWN_AS: dict[KnownAs, Callable[[Any], Any]] = {"label": lambda value: value, "catboost hash": category_hash}


@dataclass(frozen=True)
class Column:
    """One variable of a model.

    Attributes
    ----------
    name : str
    kind : "number", "category" or "unused"
        A number moves along the path from start to end; a category changes all at once, half-way. What an unused
        column holds is never looked at: it may be anything, and earns nothing.
    labels : tuple or None
        Categories: the label that each code stands for. None where the table itself holds integer codes.
    missing : bool
        Whether the model takes a missing value here.
    unknown : "refuse", "missing" or "other"
        What a label outside of `labels` becomes: an error, a missing value, or code -1, as the model's library does.
    missing_value : float or None
        A number that the model takes for a missing value, as well as NaN; compared in float32, as XGBoost does.
    known_as : "label" or "catboost hash"
        Whether `labels` holds the labels themselves or, for a model that has forgotten them, their hashes.
    """

    name: str
    kind: Kind = "number"
    labels: tuple[Any, ...] | None = None
    missing: bool = True
    unknown: Unknown = "other"
    missing_value: float | None = None
    known_as: KnownAs = "label"

    def codes(self, values: Iterable[Any]) -> Array:
        """The codes of values that are not missing, (n,); -1 for those that are not among the labels."""
        code = {label: i for i, label in enumerate(self.labels or ())}
        key = _KNOWN_AS[self.known_as]
        return np.array([code.get(key(value), -1) for value in values], dtype=np.float64)
