"""A whole model as a graph: its columns, the score it gives, and the model's own word to check it against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, ModelMismatchError
from .columns import Column
from .node import Array, Input, Node, Select, evaluate

if TYPE_CHECKING:
    from ..tables import Rows


@dataclass(frozen=True, eq=False)
class Witness:
    """The model's own prediction of one node: what the graph must reproduce.

    Attributes
    ----------
    node : Node
    predict : callable
        Takes Rows, gives an array of shape (n,) or (n, node.width) from the model's own library.
    label : str
        The model's name, for messages.
    rtol, atol : float
        The library's own rounding: what two correct sums in its arithmetic may differ by. `rtol` is relative to
        `scale`, an upper bound on what the library adds up (the larger of it and the prediction counts).
    scale : float
    """

    node: Node
    predict: Callable[[Rows], Any]
    label: str
    rtol: float = 1e-9
    atol: float = 1e-12
    scale: float = 0.0

    def check(self, rows: Rows, values: dict[Node, Array]) -> Array:
        """The model's own predictions (n, width); raises ModelMismatchError where the graph's differ."""
        own = np.asarray(self.predict(rows), dtype=np.float64).reshape(len(rows.matrix), -1)
        graph = values[self.node]
        if own.shape != graph.shape:
            raise ModelMismatchError(
                f"{self.label} gives {own.shape[1]} numbers a row, the graph imported from it {graph.shape[1]}."
            )
        allowed = self.atol + self.rtol * np.maximum(np.abs(own), self.scale)
        excess = np.where(np.isnan(own) & np.isnan(graph), 0.0, np.abs(own - graph) / allowed)
        excess = np.where(np.isnan(excess), np.inf, excess)
        if len(own) and excess.max() > 1.0:
            row, column = np.unravel_index(int(excess.argmax()), excess.shape)
            raise ModelMismatchError(
                f"The graph imported from {self.label} must reproduce its predictions; row {row} differs most: "
                f"the model says {own[row, column]!r}, the graph {graph[row, column]!r} "
                f"({int((excess.max(axis=1) > 1).sum())} of {len(own)} rows differ). Please report this model."
            )
        return own


@dataclass(frozen=True, eq=False)
class Graph:
    """A model that gigrad can explain.

    Attributes
    ----------
    columns : tuple of Column
    input : Input
        The node that stands for the encoded rows, (n, len(columns)).
    score : Node
        The number the model itself gives: predict for a regressor, probabilities for a classifier.
    margin : Node
        Its raw score; the same node as `score` where there is no link.
    output_names : tuple of str
        One name for each column of `score`.
    margin_names : tuple of str
        One name for each column of `margin`; as `output_names` unless said otherwise.
    witnesses : tuple of Witness
        The model's own predictions of some nodes, compared before every explanation.
    named : bool
        Whether the model knew its columns by name; if not, tables are read by position.
    label : str
    """

    columns: tuple[Column, ...]
    input: Input
    score: Node
    margin: Node
    output_names: tuple[str, ...]
    margin_names: tuple[str, ...] = ()
    witnesses: tuple[Witness, ...] = ()
    named: bool = False
    label: str = "model"

    def __post_init__(self) -> None:
        if self.input.width != len(self.columns):
            raise InputError(f"A graph of {len(self.columns)} columns cannot have an input of {self.input.width}.")
        if not self.margin_names:
            object.__setattr__(self, "margin_names", self.output_names)
        for what, node, names in (
            ("score", self.score, self.output_names),
            ("margin", self.margin, self.margin_names),
        ):
            if node.width != len(names):
                raise InputError(f"The {what} has {node.width} outputs and {len(names)} output names.")

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns)

    def predict(self, X: Any, output: Any = None) -> Array:
        """The score of every row: (n,), or (n, outputs) for several. `output="margin"` gives the raw score."""
        from ..tables import read_rows

        node = self.output(output)[0]
        rows = read_rows(X, self, what="X")
        values = evaluate((node,), {self.input: rows.matrix})[node]
        return values[:, 0] if node.width == 1 else values

    def output(self, output: Any = None) -> tuple[Node, tuple[str, ...]]:
        """The node that `output` names, and the names of its columns. See `gigrad.explain` for what it may be."""
        if output is None or output == "prediction":
            return self.score, self.output_names
        if isinstance(output, str):
            if output == "margin":
                return self.margin, self.margin_names
            raise InputError(f'output must be None, "margin" or a transform such as a SmoothedECDF; {output!r} came.')
        if isinstance(output, Transform):
            return output.apply(self.score), self.output_names
        raise InputError(
            f'output must be None, "margin" or a transform such as a SmoothedECDF; a {type(output).__name__} came.'
        )

    def then(self, transform: Transform) -> Graph:
        """The same model with its score mapped further, say by a SmoothedECDF."""
        return replace(self, score=transform.apply(self.score))


class Transform:
    """Something that maps a score further: `apply(node)` gives the node that does it."""

    def apply(self, source: Node) -> Node:
        raise NotImplementedError


def pick(node: Node, names: tuple[str, ...], target: int | str | None) -> tuple[Node, tuple[str, ...]]:
    """One output of a node, by position or by name; all of them for None."""
    if target is None:
        return node, names
    if isinstance(target, str) and target in names:
        index = names.index(target)
    elif isinstance(target, (int, np.integer)) and not isinstance(target, bool) and 0 <= target < node.width:
        index = int(target)
    else:
        raise InputError(
            f"target must be one of the outputs {', '.join(map(repr, names))}, or its position; {target!r} came."
        )
    return (node if node.width == 1 else Select(node, (index,))), (names[index],)
