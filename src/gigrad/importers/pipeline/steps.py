"""Steps: the effect of a fitted transformer on ONE column, evaluated in its own arithmetic, in monotone pieces.

A step maps numbers to numbers. Those that read labels (encoders, imputers) also take object arrays, in which NaN is a
missing value and `UNKNOWN` a label that no encoder of the column was fitted on.
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

Reads = Literal["number", "label", "any"]


class Unknown:
    """The label that represents every label unknown to an encoder."""

    def __repr__(self) -> str:
        return "a label never seen"


UNKNOWN = Unknown()
NO_CUTS: Array = np.zeros(0)


class Refused(Exception):
    """The transformer refuses a value: a missing one, or an unknown label."""


@dataclass(frozen=True, eq=False)
class Step(ABC):
    """One transformer's effect on one column."""

    reads: ClassVar[Reads] = "number"
    """What the column must hold; "any" if that depends on the next step."""
    flat: ClassVar[bool] = False
    """Whether the output is constant between the cuts."""

    @abstractmethod
    def __call__(self, z: NDArray[Any]) -> NDArray[Any]:
        """The outputs, in the transformer's own arithmetic."""

    def takes(self, z: NDArray[Any]) -> bool:
        """Whether the transformer accepts all of these values. Most scikit-learn steps pass NaN through."""
        return True

    def cuts(self) -> Array:
        """Inputs that end a piece: on `(cut, next cut]` the step is monotone. Strictly increasing."""
        return NO_CUTS

    def places(self) -> Array:
        """The place of each cut: the number that the step stores, which is the cut or the float64 after it."""
        return of_pair(self.cuts())

    def ends(self) -> Array:
        """Inputs beyond which the output is constant."""
        return NO_CUTS

    def node(self, source: Node) -> Node:
        """The step as a node over one column. Only for steps that are continuous."""
        raise UnsupportedModelError(
            f"A smooth model cannot read the step {type(self).__name__}, which jumps between two numbers of a column."
        )

    def jumps(self) -> Stairs | None:
        """The jumps of a step, as a step function of its input; `node` is the continuous part. None for most."""
        return None

    @classmethod
    def nodes(cls, steps: Sequence[Any], source: Node) -> Node:
        """Steps of one kind as one node, column by column of `source`."""
        parts = tuple(step.node(Select(source, (i,))) for i, step in enumerate(steps))
        return parts[0] if len(parts) == 1 else Concat(parts)


@dataclass(frozen=True, eq=False)
class Linear(Step):
    """`(x - minus) / over * times + plus`, each operation rounded; those that are None are left out."""

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
    """The number clipped to two bounds, of which one may be infinite."""

    low: float
    high: float

    def __call__(self, z: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(np.clip(z, self.low, self.high))

    def ends(self) -> Array:
        return np.array([v for v in (self.low, self.high) if np.isfinite(v)])

    def node(self, source: Node) -> Node:
        from ...graph import PiecewiseLinear

        bounds = self.ends()
        if len(bounds) == 2:
            return PiecewiseLinear(source, bounds, bounds)
        if not len(bounds):
            return source
        # bound + relu(x - bound) from below, bound - relu(bound - x) from above
        side = np.array([[1.0 if np.isfinite(self.low) else -1.0]])
        beyond = Elementwise(Affine(source, side, -side[0] * bounds), "relu")
        return Affine(beyond, side, bounds)


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
    missing: float | None = None  # the output for NaN; None if the transformer refuses it
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
    """An integer power by repeated multiplication, as in PolynomialFeatures."""

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
    """The number unchanged, by a transformer that refuses missing values."""

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
    """Numbers from `low` to `high` treated as missing: a sentinel, or the zeros that a sparse matrix leaves out."""

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
            f"A number ({self.low if self.value is None else self.value!r}) is treated as a missing value in a column "
            "that another step reads or changes before, so a smooth model cannot read it. Replace it by missing values "
            "before the pipeline, and fit the pipeline on them."
        )


@dataclass(frozen=True, eq=False)
class Impute(Step):
    """Missing values replaced by a number, or by a label in a column of labels.

    A `marker` other than None is the label or the number that means a missing value, such as "?" or -1; NaN is then
    refused, or replaced as well with `both`.
    """

    reads: ClassVar[Reads] = "any"
    fill: Any
    marker: Any = None
    both: bool = False

    def takes(self, z: NDArray[Any]) -> bool:
        return self.marker is None or self.both or not is_missing(z).any()

    def __call__(self, z: NDArray[Any]) -> NDArray[Any]:
        missing = marked(z, self.marker)
        if self.both:
            missing = missing | is_missing(z)
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
                    f"SimpleImputer treats the number {step.marker!r} as missing in a column that another step reads "
                    "or changes before it, so a smooth model cannot read it. Impute the raw column first, and let "
                    "every step read the imputed one."
                )
        return Fill(source, np.array([float(s.fill) for s in steps]))


@dataclass(frozen=True, eq=False)
class Indicator(Step):
    """1 where the value is missing, or is the `marker` of a missing value; 0 elsewhere."""

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


def marked(z: NDArray[Any], marker: Any) -> NDArray[np.bool_]:
    """Where a value is missing, or is the marker of a missing value."""
    if marker is None:
        return is_missing(z)
    return np.array([v == marker for v in z.tolist()], dtype=bool)


def around(marker: Any) -> Array:
    """The cuts on either side of a number that means a missing value."""
    if marker is None or isinstance(marker, str):
        return NO_CUTS
    return np.array([np.nextafter(marker, -np.inf), marker])


def is_missing(z: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a number or a label is missing."""
    if z.dtype != object:
        return np.asarray(np.isnan(z))
    return are_missing(z.tolist())
