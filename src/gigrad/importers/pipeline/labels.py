"""Steps that read labels: labels turned into numbers, and labels into other labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...graph import Array
from .pieces import before
from .steps import Reads, Step, is_missing


@dataclass(frozen=True, eq=False)
class Encode(Step):
    """A label encoded as a number: one of `values`, or `unknown` or `missing` (None: the encoder refuses them)."""

    reads: ClassVar[Reads] = "label"
    flat: ClassVar[bool] = True
    labels: tuple[Any, ...]
    values: Array  # (labels,)
    unknown: float | None
    missing: float | None

    def takes(self, z: NDArray[Any]) -> bool:
        missing = is_missing(z)
        if self.missing is None and missing.any():
            return False
        known = set(self.labels)
        return self.unknown is not None or all(v in known for v in z[~missing].tolist())

    @property
    def numeric(self) -> bool:
        """Whether every label is a number, so that the column can be one."""
        return all(isinstance(v, (int, float, np.number, np.bool_)) for v in self.labels)

    def __call__(self, z: NDArray[Any]) -> NDArray[Any]:
        if z.dtype != object:
            return self._numbers(z)
        known = dict(zip(self.labels, self.values.tolist(), strict=True))
        unknown, missing = self._others()
        gone = is_missing(z).tolist()
        return np.array([missing if g else known.get(v, unknown) for v, g in zip(z.tolist(), gone, strict=True)])

    def _others(self) -> tuple[float, float]:
        """The numbers of unknown and missing labels; 0 for those refused, which occur only inside a path."""
        return 0.0 if self.unknown is None else self.unknown, 0.0 if self.missing is None else self.missing

    def _numbers(self, z: NDArray[Any]) -> Array:
        """The encoding of a column of numbers: every label is a test of equality."""
        labels, values = self.sorted_numbers()
        unknown, missing = self._others()
        if not len(labels):
            return np.where(np.isnan(z), missing, unknown)
        place = np.minimum(np.searchsorted(labels, z), len(labels) - 1)
        return np.where(np.isnan(z), missing, np.where(labels[place] == z, values[place], unknown))

    def sorted_numbers(self) -> tuple[Array, Array]:
        labels = np.array(self.labels, np.float64)
        order = np.argsort(labels)
        return labels[order], self.values[order]

    def cuts(self) -> Array:
        labels = self.sorted_numbers()[0]
        return np.unique(np.concatenate([before(labels), labels]))

    def places(self) -> Array:
        cuts = self.cuts()
        return np.where(np.isin(cuts, self.sorted_numbers()[0]), cuts, np.nextafter(cuts, np.inf))


@dataclass(frozen=True, eq=False)
class Relabel(Step):
    """A label replaced by another, for a later encoder; with `passes`, unknown labels are kept.

    `unknown` and `missing` replace those labels; None if the transformer refuses them.
    """

    reads: ClassVar[Reads] = "label"
    flat: ClassVar[bool] = True
    labels: tuple[Any, ...]
    images: tuple[Any, ...]
    unknown: Any
    missing: Any
    passes: bool

    numeric: ClassVar[bool] = False

    def takes(self, z: NDArray[Any]) -> bool:
        missing = is_missing(z)
        if self.missing is None and missing.any():
            return False
        known = set(self.labels)
        return self.passes or self.unknown is not None or all(v in known for v in z[~missing].tolist())

    def __call__(self, z: NDArray[Any]) -> NDArray[Any]:
        known = dict(zip(self.labels, self.images, strict=True))
        out = np.empty(len(z), object)
        for i, (v, gone) in enumerate(zip(z.tolist(), is_missing(z).tolist(), strict=True)):
            out[i] = self.missing if gone else known.get(v, v if self.passes else self.unknown)
        return out
