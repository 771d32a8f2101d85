"""What a model expects of each column of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .cityhash import category_hash
from .node import Array

Kind = Literal["number", "category", "unused"]
Unknown = Literal["refuse", "missing", "other"]
KnownAs = Literal["label", "catboost hash"]
ComparedIn = Literal["float32", "float64"]

TableType = Literal["integer", "float32", "decimal", "float64"]
"""The types of numbers in a table, as far as what an imputer fills in depends on them."""

_KNOWN_AS: dict[KnownAs, Callable[[Any], Any]] = {"label": lambda value: value, "catboost hash": category_hash}


@dataclass(frozen=True)
class Column:
    """One variable of a model.

    Attributes
    ----------
    name : str
    kind : "number", "category" or "unused"
        A number moves along the path from start to end; a category changes all at once, half-way. An unused column is
        never read: it may hold anything, and its credit is 0.
    labels : tuple or None
        Categories: the label that each code stands for. None where the table itself holds integer codes.
    missing : bool
        Whether the model accepts a missing value here: NaN or None.
    unknown : "refuse", "missing" or "other"
        What a label outside of `labels` becomes: an error, a missing value, or code -1, as the model's library does.
    missing_value : float or None
        A number that the model treats as a missing value, whether or not it accepts NaN.
    compared_in : "float32" or "float64"
        How a number is compared with `missing_value`: XGBoost does it in float32.
    known_as : "label" or "catboost hash"
        Whether `labels` holds the labels themselves or, for a model that does not store them, their hashes.
    least, most : float or None
        The smallest and the largest number that the model accepts, if it refuses others.
    fill : float or None
        What an imputer replaces a missing value by, if it casts that number to the type of the table's column, as
        Spark's does; NaN if the column is also read without it, so that no one number stands for a missing value.
    """

    name: str
    kind: Kind = "number"
    labels: tuple[Any, ...] | None = None
    missing: bool = True
    unknown: Unknown = "other"
    missing_value: float | None = None
    known_as: KnownAs = "label"
    compared_in: ComparedIn = "float32"
    least: float | None = None
    most: float | None = None
    fill: float | None = None

    @property
    def may_be_missing(self) -> bool:
        """Whether an encoded row may have NaN here."""
        return self.missing or self.missing_value is not None

    def stands_for_missing(self, values: Array) -> NDArray[np.bool_]:
        """Which numbers are `missing_value`, (n,)."""
        if self.missing_value is None:
            return np.zeros(len(values), np.bool_)
        if self.compared_in == "float64":
            return np.asarray(values == self.missing_value)
        with np.errstate(over="ignore"):
            return np.asarray(values.astype(np.float32) == np.float32(self.missing_value))

    def fill_as(self, type: TableType) -> float | None:
        """The number that marks a missing value in a table's column of a type; None if there is none."""
        if self.fill is None or not np.isfinite(self.fill) or type == "decimal":
            return None
        number = float(np.trunc(self.fill) if type == "integer" else np.float32(self.fill))
        return None if bool(self.stands_for_missing(np.array([number]))[0]) else number

    def refuses(self, values: Array) -> NDArray[np.bool_]:
        """Which numbers lie outside `least` to `most`, (n,)."""
        low, high = (-np.inf if self.least is None else self.least), (np.inf if self.most is None else self.most)
        return np.asarray((values < low) | (values > high))

    def codes(self, values: Iterable[Any]) -> Array:
        """The codes of values that are not missing, (n,); -1 for those that are not among the labels."""
        return np.array([self.code(value) for value in values], dtype=np.float64)

    def code(self, value: Any) -> int:
        """The code of one value that is not missing; -1 for one that is not among the labels."""
        return self._code_of.get(_KNOWN_AS[self.known_as](value), -1)

    @cached_property
    def _code_of(self) -> dict[Any, int]:
        return {label: i for i, label in enumerate(self.labels or ())}
