"""What a fitted transformer does to ONE column, as data: evaluated in its own arithmetic, cut into monotone pieces.

A step maps numbers to numbers. Those that read labels (encoders, imputers) also take object arrays, in which NaN is a
missing value and `UNKNOWN` a label that no encoder of the column knows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ..._io.tables import are_missing
from ...errors import UnsupportedModelError
from ...graph import Affine, Array, Concat, Elementwise, Fill, Node, Select
from ...graph.places import of_pair
from .pieces import before

Reads = Literal["number", "label", "any"]


class Unknown:
    """The label that stands for every label an encoder never saw."""

    def __repr__(self) -> str:
        return "a label never seen"


UNKNOWN = Unknown()
NO_CUTS: Array = np.zeros(0)


class Refused(Exception):
    """The transformer takes no such value: a missing one, or a label it never saw."""


@dataclass(frozen=True, eq=False)
class Step(ABC):
    """One transformer's effect on one column."""

    reads: ClassVar[Reads] = "number"
    """What the column must hold: "any" passes the question on to the next step."""
    flat: ClassVar[bool] = False
    """Whether the output is constant between the cuts."""

    @abstractmethod
    def __call__(self, z: NDArray[Any]) -> NDArray[Any]:
        """The outputs, in the transformer's own arithmetic."""

    def takes(self, z: NDArray[Any]) -> bool:
        """Whether the transformer takes all of these values. Most scikit-learn steps pass NaN on."""
        return True

    def cuts(self) -> Array:
        """Inputs that end a piece: on `(cut, next cut]` the step is monotone. Strictly increasing."""
        return NO_CUTS

    def places(self) -> Array:
        """Where each cut stands: the number that the step stores, of which the cut may be the float64 before."""
        return of_pair(self.cuts())

    def ends(self) -> Array:
        """Inputs beyond which the output stays the same."""
        return NO_CUTS

    def node(self, source: Node) -> Node:
        """The step as a node over one column. Only for steps that are continuous."""
        raise UnsupportedModelError(
            f"A smooth model cannot follow {type(self).__name__}, which jumps in between two numbers of a raw column."
        )

    def jumps(self) -> Stairs | None:
        """The part of a step that jumps, as a step function of its input; `node` is the rest. None for most."""
        return None

    @classmethod
    def nodes(cls, steps: Sequence[Any], source: Node) -> Node:
        """Steps of one kind as one node, column by column of `source`."""
        parts = tuple(step.node(Select(source, (i,))) for i, step in enumerate(steps))
        return parts[0] if len(parts) == 1 else Concat(parts)


@dataclass(frozen=True, eq=False)
class Linear(Step):
    """`(x - minus) / over * times + plus`, each operation rounded on its own and left out where it is None."""

    minus: float | None = None
    over: float | None = None
    times: float | None = None
    plus: float | None = None

    def __call__(self, z: NDArray[Any]) -> NDArray[Any]:
        if self.minus is not None:
            z = z - self.minus
        if self.over is not None:
            z = z / self.over
        if self.times is not None:
            z = z * self.times
        return z if self.plus is None else z + self.plus

    @classmethod
    def nodes(cls, steps: Sequence[Linear], source: Node) -> Node:
        slope = np.array([(s.times if s.times is not None else 1.0) / (s.over or 1.0) for s in steps])
        shift = np.array([s.minus or 0.0 for s in steps])
        plus = np.array([s.plus or 0.0 for s in steps])
        return Affine(source, np.diag(slope), plus - shift * slope)


@dataclass(frozen=True, eq=False)
class Clip(Step):
    """The number held between two bounds."""

    low: float
    high: float

    def __call__(self, z: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(np.clip(z, self.low, self.high))

    def ends(self) -> Array:
        return np.array([self.low, self.high])

    def node(self, source: Node) -> Node:
        from ...graph import PiecewiseLinear

        bounds = np.array([self.low, self.high])
        return PiecewiseLinear(source, bounds, bounds)


@dataclass(frozen=True, eq=False)
class Ufunc(Step):
    """A NumPy function of one number, by its name in `graph.functions`."""

    name: str
    where: tuple[float, ...] = ()  # the cuts

    def __call__(self, z: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(getattr(np, self.name)(z))

    def cuts(self) -> Array:
        return np.array(self.where)

    def node(self, source: Node) -> Node:
        return Elementwise(source, self.name)


@dataclass(frozen=True, eq=False)
class Stairs(Step):
    """A step function: `values[i]` on the piece that ends at `edges[i]`, the last value beyond the last edge.

    `stored` are the numbers that the transformer itself compares with, where these are not the edges.
    """

    flat: ClassVar[bool] = True
    edges: Array
    values: Array
    missing: float | None = None  # what NaN becomes; None where the transformer refuses it
    stored: Array | None = None

    def takes(self, z: NDArray[Any]) -> bool:
        return self.missing is not None or not is_missing(z).any()

    def __call__(self, z: NDArray[Any]) -> NDArray[Any]:
        z = np.asarray(z, np.float64)
        out = self.values[np.searchsorted(self.edges, z, side="left")]
        return out if self.missing is None else np.where(np.isnan(z), self.missing, out)

    def cuts(self) -> Array:
        return self.edges

    def places(self) -> Array:
        return self.edges if self.stored is None else self.stored


@dataclass(frozen=True, eq=False)
class Power(Step):
    """A whole power by repeated multiplication, as polynomial features are made."""

    exponent: int

    def takes(self, z: NDArray[Any]) -> bool:
        return not is_missing(z).any()

    def __call__(self, z: NDArray[Any]) -> NDArray[Any]:
        out = z
        for _ in range(self.exponent - 1):
            out = out * z
        return out

    def cuts(self) -> Array:
        return np.array([0.0]) if self.exponent % 2 == 0 else NO_CUTS

    def node(self, source: Node) -> Node:
        from ...graph import Product

        node = source
        for _ in range(self.exponent - 1):
            node = Product(node, source)
        return node


@dataclass(frozen=True, eq=False)
class Single(Step):
    """The number rounded to single precision, as a transformer with dtype float32 does first."""

    def __call__(self, z: NDArray[Any]) -> NDArray[Any]:
        return z.astype(np.float32).astype(np.float64)

    def node(self, source: Node) -> Node:
        return source  # within single precision; what follows is a step function, which is exact


@dataclass(frozen=True, eq=False)
class Present(Step):
    """The number as it is, by a transformer that takes no missing ones."""

    reads: ClassVar[Reads] = "any"

    def takes(self, z: NDArray[Any]) -> bool:
        return not is_missing(z).any()

    def __call__(self, z: NDArray[Any]) -> NDArray[Any]:
        return z

    @classmethod
    def nodes(cls, steps: Sequence[Present], source: Node) -> Node:
        return source


@dataclass(frozen=True, eq=False)
class AsMissing(Step):
    """Numbers from `low` to `high` taken for missing ones: a sentinel, or the zeros that a sparse matrix leaves out."""

    low: float
    high: float
    value: float | None = None  # the sentinel itself

    def __call__(self, z: NDArray[Any]) -> NDArray[Any]:
        return np.where((z >= self.low) & (z <= self.high), np.nan, z)

    def cuts(self) -> Array:
        return np.array([np.nextafter(self.low, -np.inf), self.high])

    def places(self) -> Array:
        return np.full(2, 0.5 * self.low + 0.5 * self.high if self.value is None else self.value)

    def node(self, source: Node) -> Node:
        raise UnsupportedModelError(
            f"A number ({self.low if self.value is None else self.value!r}) is taken for a missing value in a column "
            "that another step reads or changes before, so a smooth model cannot follow it. Put missing values there "
            "before the pipeline, and fit it on them."
        )


@dataclass(frozen=True, eq=False)
class Impute(Step):
    """Missing values replaced: by a number, or by a label in a column of labels.

    A `marker` other than None is the label or the number that stands for a missing value, say "?" or -1; NaN is then
    refused.
    """

    reads: ClassVar[Reads] = "any"
    fill: Any
    marker: Any = None

    def takes(self, z: NDArray[Any]) -> bool:
        return self.marker is None or not is_missing(z).any()

    def __call__(self, z: NDArray[Any]) -> NDArray[Any]:
        missing = marked(z, self.marker)
        if not missing.any():
            return z
        out = z.astype(object if isinstance(self.fill, str) else z.dtype)
        out[missing] = self.fill
        return out

    def cuts(self) -> Array:
        return around(self.marker)

    def places(self) -> Array:
        return np.full(len(self.cuts()), self.marker) if len(self.cuts()) else NO_CUTS

    @classmethod
    def nodes(cls, steps: Sequence[Impute], source: Node) -> Node:
        for step in steps:
            if step.marker is not None:
                raise UnsupportedModelError(
                    f"SimpleImputer takes the number {step.marker!r} for a missing value in a column that another step "
                    "reads or changes before it, so a smooth model cannot follow it. Impute the raw column first, and "
                    "let every step read the imputed one."
                )
        return Fill(source, np.array([float(s.fill) for s in steps]))


@dataclass(frozen=True, eq=False)
class Indicator(Step):
    """1 where the value is missing, or is the `marker` that stands for a missing one; 0 elsewhere."""

    reads: ClassVar[Reads] = "any"
    flat: ClassVar[bool] = True
    marker: Any = None

    def takes(self, z: NDArray[Any]) -> bool:
        return self.marker is None or not is_missing(z).any()

    def __call__(self, z: NDArray[Any]) -> NDArray[Any]:
        return marked(z, self.marker).astype(np.float64)

    def cuts(self) -> Array:
        return around(self.marker)

    def places(self) -> Array:
        return np.full(len(self.cuts()), self.marker) if len(self.cuts()) else NO_CUTS


@dataclass(frozen=True, eq=False)
class Encode(Step):
    """A label turned into a number: one of `values`, or what the encoder does with the others (None: it refuses)."""

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
        """What unknown and missing labels become; 0 where the encoder refuses them, on the way between two it takes."""
        return 0.0 if self.unknown is None else self.unknown, 0.0 if self.missing is None else self.missing

    def _numbers(self, z: NDArray[Any]) -> Array:
        """The same on a column of numbers: every label is a test of equality."""
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


def marked(z: NDArray[Any], marker: Any) -> NDArray[np.bool_]:
    """Where a value is missing, or is the marker that stands for a missing one."""
    if marker is None:
        return is_missing(z)
    return np.array([v == marker for v in z.tolist()], dtype=bool)


def around(marker: Any) -> Array:
    """The cuts on either side of a number that stands for a missing one."""
    if marker is None or isinstance(marker, str):
        return NO_CUTS
    return np.array([np.nextafter(marker, -np.inf), marker])


def is_missing(z: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a number or a label is missing."""
    if z.dtype != object:
        return np.asarray(np.isnan(z))
    return are_missing(z.tolist())
