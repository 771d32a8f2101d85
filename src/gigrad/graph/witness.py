"""Witnesses: the model's own predictions, which the graph must reproduce before anything is explained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import kernels
from ..errors import AccuracyWarning, GigradError, InputError, ModelMismatchError, warn
from .columns import Column
from .node import Array, Input, Node, topological, value_of

if TYPE_CHECKING:
    from .._io.tables import Rows

_SINGLE = 1e-5  # a net's float32 predictions, relative to their size

Predict = Callable[["Rows"], Any]

LOW_PRECISION = 1e-5
"""The usual relative error of predictions in single precision is below this: 1e-7 to 1e-6 for a net. In half precision,
or where rounding moves a value across a threshold, it is larger."""


@dataclass(frozen=True)
class OnRows:
    """A prediction for rows that are first turned into those which the model reads."""

    predict: Predict
    read: Callable[[Rows], Rows]

    def __call__(self, rows: Rows) -> Any:
        return self.predict(self.read(rows))


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
    scale : float or callable
        A callable takes Rows and gives a bound for each of them, (n,) or (n, node.width).
    source : Node or None
        The input of `predict`: None for the model's rows; for a head over other models the node with their scores,
        which `predict` gets as those models themselves give them.
    columns : tuple of Column
        The model's columns for the numbers of `source`.
    lower : bool
        Whether the models below predict first, and the graph is compared on their own predictions: for a model that
        transforms the predictions of others and may be steep where theirs are rounded.
    exact : callable or None
        The same prediction in float64, for a library that predicts in float32: the graph is compared with this one,
        tightly, while `predict` is what the model itself gives. It may return None if the two are the same.
    advice : str
        What a user can do where the predictions differ.
    """

    node: Node
    predict: Predict
    label: str
    rtol: float = 1e-9
    atol: float = 1e-12
    scale: float | Predict = 0.0
    source: Node | None = None
    columns: tuple[Column, ...] = ()
    exact: Predict | None = None
    lower: bool = False
    advice: str = "Please report this model."

    def behind(self, node: Node, read: Callable[[Rows], Rows]) -> Witness:
        """The same prediction for other rows, which `read` turns into the model's own; `node` is the node over them."""
        return replace(
            self,
            node=node,
            predict=OnRows(self.predict, read),
            exact=None if self.exact is None else OnRows(self.exact, read),
            scale=OnRows(self.scale, read) if callable(self.scale) else self.scale,
        )

    def check(self, rows: Rows, values: dict[Node, Array]) -> Array:
        """The model's own predictions (n, width); raises ModelMismatchError where the graph's differ."""
        own = self._ask(self.predict, rows)
        right = own if self.exact is None else self._ask(self.exact, rows, own)
        graph = values[self.node]
        if right.shape != graph.shape or own.shape != graph.shape:
            raise ModelMismatchError(
                f"{self.label} gives {right.shape[1]} numbers a row, the graph imported from it {graph.shape[1]}."
            )
        scale = self._ask(self.scale, rows) if callable(self.scale) else self.scale
        allowed = self.atol + self.rtol * np.maximum(np.abs(right), scale)
        same = (right == graph) | (np.isnan(right) & np.isnan(graph))
        with np.errstate(divide="ignore", invalid="ignore"):
            excess = np.where(same, 0.0, np.abs(right - graph) / allowed)
        excess = np.where(np.isnan(excess), np.inf, excess)
        if len(right) and excess.max() > 1.0:
            row, column = np.unravel_index(int(excess.argmax()), excess.shape)
            raise ModelMismatchError(
                f"The graph imported from {self.label} must reproduce its predictions; row {row} differs most: "
                f"the model says {right[row, column]!r}, the graph {graph[row, column]!r} "
                f"({int((excess.max(axis=1) > 1).sum())} of {len(right)} rows differ). {self.advice}"
            )
        if right is not own:
            self._warn_of_rounding(own, right)
        return own

    def _warn_of_rounding(self, own: Array, right: Array) -> None:
        """Warn if the model's own predictions (`own`) differ visibly from the same computed in float64 (`right`)."""
        apart = np.nan_to_num(np.abs(own - right))
        if (apart > LOW_PRECISION * np.abs(np.nan_to_num(right)).max(axis=0, initial=0.0)).any():
            warn(
                f"{self.label} computes in low precision: its own predictions differ by up to {apart.max():.2g} (row "
                f"{int(apart.max(axis=1).argmax())}) from the same in float64, which is what the credits explain; "
                "`gap` holds the difference. Tables and models in float64 avoid it.",
                AccuracyWarning,
            )

    def _ask(self, predict: Predict, rows: Rows, otherwise: Array | None = None) -> Array:
        """The model's own prediction, (n, width); errors of its library become an InputError that names the model."""
        try:
            answer = predict(rows)
        except (TypeError, ValueError) as error:
            if isinstance(error, GigradError):
                raise
            why = " ".join(str(error).split())
            raise InputError(
                f"{self.label} itself cannot take these rows ({type(error).__name__}: {why:.300}). Give columns of the "
                "types that it was fitted on."
            ) from error
        if answer is None and otherwise is not None:
            return otherwise
        return np.asarray(answer, dtype=np.float64).reshape(len(rows.matrix), -1)


class Memory:
    """A cache of the model's own predictions, row by row, until `forget` is called.

    A reference is scored to choose the rows that pass, and scored again as the reference: the rows are the same, and so
    are the predictions. The graph is compared with them each time.
    """

    def __init__(self) -> None:
        self.known: list[dict[bytes, Array]] = []
        self.open = True

    def witnesses(self, given: Sequence[Witness]) -> tuple[Witness, ...]:
        """The same witnesses, with cached predictions."""
        return tuple(
            replace(w, predict=self._asked(w.predict), exact=None if w.exact is None else self._asked(w.exact))
            for w in given
        )

    def forget(self) -> None:
        """Clear the cache; later predictions are not cached."""
        self.open = False
        for known in self.known:
            known.clear()

    def _asked(self, predict: Predict) -> Predict:
        """The prediction function with a cache by row."""
        known: dict[bytes, Array] = {}
        self.known.append(known)

        def ask(rows: Rows) -> Any:
            if not self.open:
                return predict(rows)
            keys = [row.tobytes() for row in rows.matrix]
            if keys and all(key in known for key in keys):
                return np.array([known[key] for key in keys])
            answer = predict(rows)
            if answer is not None:
                known.update(zip(keys, np.asarray(answer, dtype=np.float64).reshape(len(keys), -1), strict=True))
            return answer

        return ask


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of some rows for one output.

    Attributes
    ----------
    own : (n, width)
        As the models themselves give it: lower models predict first, and parts above them (a head, a transform) use
        their own predictions.
    graph : (n, width)
        As the graph gives it: differs from `own` by the models' rounding and its effect on the parts above them.
    """

    own: Array
    graph: Array


def own_values(output: Node, witnesses: Sequence[Witness], source: Input, rows: Rows) -> Array:
    """An output (n, width) as the models themselves give it, after checking that the graph reproduces each model."""
    return scores_of(output, witnesses, source, rows).own


def scores_of(output: Node, witnesses: Sequence[Witness], source: Input, rows: Rows) -> Scores:
    """An output as the models themselves and as the graph give it, after checking that the graph reproduces them."""
    from .._io.tables import decoded_rows

    known: dict[Node, Array] = {source: rows.matrix}
    graph = dict(known)
    if len(rows.matrix) == 0:  # most libraries refuse an empty table
        none = value_of(output, known)
        return Scores(none, none)
    tell = kernels.watcher()
    with kernels.watched(None):  # progress is reported by the blocks, not by the calls inside
        for witness in nearest_witnesses(output, witnesses):
            asked = {*known} - {source}
            compared = graph[witness.node] = value_of(witness.node, graph, tell=tell)
            if asked.intersection(topological(witness.node)):
                compared = value_of(witness.node, known)
            read = rows
            if witness.source is not None:
                read = decoded_rows(value_of(witness.source, known), witness.columns)
            known[witness.node] = witness.check(read, {witness.node: compared})
    return Scores(value_of(output, known), value_of(output, graph))


def rounding_above(output: Node, witnesses: Sequence[Witness], scale: Array) -> Array:
    """A bound on the difference between the graph's output, of size `scale` (n, width), and the models' own.

    Infinite for a prediction that was itself compared; for others the models' rounding, if no function above them is
    steep.
    """
    found = nearest_witnesses(output, witnesses)
    if not found or any(w.node is output for w in found):
        return np.full_like(scale, np.inf)
    relative = max(_SINGLE if w.exact is not None else w.rtol for w in found)
    return sum(w.atol for w in found) + relative * scale


def nearest_witnesses(output: Node, witnesses: Sequence[Witness]) -> list[Witness]:
    """The witnesses needed to check an output, lowest first: one that reads the rows makes those below it redundant,
    unless it is `lower`; one that reads scores needs those of the scores."""
    by_node = {w.node: w for w in witnesses}
    found: set[Node] = set()
    seen: set[Node] = set()
    stack = [output]
    while stack:
        top = stack.pop()
        if top in seen:
            continue
        seen.add(top)
        if top not in by_node:
            stack.extend(top.parents)
            continue
        found.add(top)
        below = by_node[top].source
        if below is not None:
            stack.append(below)
        elif by_node[top].lower:
            stack.extend(top.parents)
    return [by_node[node] for node in topological(output) if node in found]
