"""Values between the operators of an ONNX model: constants, single columns, or numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import UnsupportedModelError
from ...graph import Affine, Array, Concat, Node, Select
from ..pipeline.steps import Step
from ..pipeline.table import Feature
from .shape import Shape


@dataclass(frozen=True, eq=False)
class Fixed:
    """A constant of the model; `repeated` says that its first axis, of the size 1, stands for the rows.

    `classes` are those of its columns, where it is the score of a classifier.
    """

    array: NDArray[Any]
    repeated: bool = False
    classes: tuple[Any, ...] = ()

    def numbers(self) -> Array:
        return np.asarray(self.array, np.float64)


@dataclass(frozen=True, eq=False)
class Cells:
    """Columns that depend on one raw column each, and the type that they have in the model.

    `shape` is how they lie in their tensor; None for rows and columns.
    """

    features: tuple[Feature, ...]
    type: str
    shape: Shape | None = None


@dataclass(frozen=True, eq=False)
class Numbers:
    """A node over the columns that the model reads, and the classes of its numbers, if known.

    `shape` is as in Cells. `truncated`: the model truncates the numbers to integers.
    """

    node: Node
    classes: tuple[Any, ...] | None = None
    shape: Shape | None = None
    truncated: bool = False


@dataclass(frozen=True)
class Dims:
    """The output of Shape: the sizes of axes, None for the number of rows."""

    sizes: tuple[int | None, ...]


@dataclass(frozen=True, eq=False)
class Labels:
    """Predicted classes, which are not explained; `scores` are those whose largest selects the class, if known."""

    scores: Numbers | None = None
    classes: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False)
class Distances:
    """`factor` times the squared distances of each row of a node from some constant rows.

    Its first axis is that of the node's rows where `turned`, else that of the constant rows.
    """

    node: Node
    support: Array  # (constant rows, width of the node)
    factor: float
    turned: bool


Columns = Cells | Numbers
Value = Fixed | Cells | Numbers | Labels | Dims | Distances


@dataclass(frozen=True, eq=False)
class InSingle(Step):
    """`((x - minus) / over) * times + plus` in float32, each operation rounded; those that are None are left out."""

    minus: float | None = None
    over: float | None = None
    times: float | None = None
    plus: float | None = None

    def __call__(self, z: NDArray[Any]) -> NDArray[Any]:
        out = z.astype(np.float32)
        with np.errstate(all="ignore"):
            if self.minus is not None:
                out = out - np.float32(self.minus)
            if self.over is not None:
                out = out / np.float32(self.over)
            if self.times is not None:
                out = out * np.float32(self.times)
            if self.plus is not None:
                out = out + np.float32(self.plus)
        return np.asarray(out, np.float64)

    @classmethod
    def nodes(cls, steps: Sequence[InSingle], source: Node) -> Node:
        slope = np.array([(1.0 if s.times is None else s.times) / (1.0 if s.over is None else s.over) for s in steps])
        shift = np.array([s.minus or 0.0 for s in steps])
        plus = np.array([s.plus or 0.0 for s in steps])
        return Affine(source, np.diag(slope), plus - shift * slope)


def side_by_side(nodes: Sequence[Node]) -> Node:
    return nodes[0] if len(nodes) == 1 else Concat(tuple(nodes))


def columns_of(value: Value) -> int:
    """How many columns a value has."""
    if isinstance(value, Cells):
        return len(value.features)
    if isinstance(value, Numbers):
        return value.node.width
    if isinstance(value, Fixed):
        return int(value.array.size)
    raise UnsupportedModelError("Operators on predicted classes are not supported: classes cannot be explained.")


def shape_of(value: Columns) -> Shape:
    """How the columns of a value lie in their tensor."""
    return value.shape if value.shape is not None else Shape((), (columns_of(value),))


def in_shape(value: Columns, shape: Shape) -> Columns:
    """The same columns in a tensor of another shape."""
    kept = None if shape.plain else shape
    if isinstance(value, Cells):
        return Cells(value.features, value.type, kept)
    return Numbers(value.node, value.classes if kept is None else None, kept, value.truncated)


def picked(value: Columns, index: NDArray[Any], axis: int) -> Columns:
    """The columns of a value selected by `index`, in its shape; `axis` of `index` is that of the rows, of size 1."""
    places = [int(i) for i in index.ravel()]
    shape = Shape(index.shape[:axis], index.shape[axis + 1 :])
    if isinstance(value, Cells):
        return in_shape(Cells(tuple(value.features[i] for i in places), value.type), shape)
    classes, width = value.classes, value.node.width
    some = None if classes is None or len(classes) != width else tuple(classes[i] for i in places)
    return in_shape(Numbers(spread(value.node, places), some, None, value.truncated), shape)


def spread(node: Node, places: Sequence[int]) -> Node:
    """The columns `places` of a node; the node itself where these are all of them, in order."""
    return node if list(places) == list(range(node.width)) else Select(node, tuple(places))
