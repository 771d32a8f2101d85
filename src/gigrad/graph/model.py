"""A whole model as a graph: its columns, its score, and the model's own predictions to check it against."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np

from ..errors import InputError, UnsupportedModelError, kind_of
from .columns import Column
from .node import Array, Input, Node, value_of
from .targets import Opposite, Times, pick
from .witness import Witness


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
    no_score : str
        An error message for models of which only the margin can be explained (`score` is the margin then). Empty for
        most.
    opposite : Opposite or None
        The classes that the outputs leave out, where they are those of a binary classifier.
    times : Times or None
        The times of the outputs, if they are the survival probabilities of one model at several times; `target` is then
        a time. A margin is the same at all times.

    Examples
    --------
    >>> import gigrad as gig
    >>> graph = gig.import_model(tree)
    >>> graph.predict([[1.0, 1.0], [0.0, 0.0]])
    array([4., 0.])
    >>> graph.with_columns(["age", "debt"]).feature_names
    ('age', 'debt')
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
    no_score: str = ""
    opposite: Opposite | None = None
    times: Times | None = None

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
                raise InputError(
                    f"The {what} must have one name for each of its {node.width} outputs; it has {len(names)}."
                )
        if self.times is not None and (
            len(self.times.at) != len(self.output_names) or (np.diff(self.times.at) <= 0).any()
        ):
            raise InputError("The times of a survival model must be increasing, one for each output.")
        if self.opposite is not None and len(self.opposite.names) != len(self.output_names):
            raise InputError(
                f"A graph of {len(self.output_names)} outputs cannot leave out {len(self.opposite.names)} classes."
            )

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(c.name for c in self.columns)

    def predict(self, X: Any, output: Any = None) -> Array:
        """The score of every row: (n,), or (n, outputs) for several. `output="margin"` gives the raw score."""
        from .._io.tables import read_rows

        node = self.output(output)[0]
        rows = read_rows(X, self, what="X")
        values = value_of(node, {self.input: rows.matrix})
        return values[:, 0] if node.width == 1 else values

    def __call__(self, X: Any) -> Array:
        """The score of every row, (n, outputs), so that scikit-learn's FunctionTransformer can use the graph."""
        return self.predict(X).reshape(-1, self.score.width)

    def output(self, output: Any = None, target: Any = None) -> tuple[Node, tuple[str, ...]]:
        """The node that `output` and `target` name, and the names of its columns.

        See `gigrad.Explainer` for what they may be. A transform maps the score that `target` names: for the class that
        a binary classifier leaves out, it is given 1 - score.
        """
        wants_score = output is None or output == "prediction" or isinstance(output, Transform)
        if wants_score and self.no_score:
            raise UnsupportedModelError(self.no_score)
        opposite = self.opposite or Opposite(())
        at_time = self.times.pick(self.score, target) if self.times is not None and target is not None else None
        if wants_score:
            node, names = at_time or pick(self.score, self.output_names, target, opposite.names, opposite.score_total)
            return (output.apply(node) if isinstance(output, Transform) else node), names
        if isinstance(output, str) and output == "margin":
            if at_time is not None:
                return self.margin, self.margin_names
            other = () if set(opposite.names) & set(self.margin_names) else opposite.names  # a margin may show both
            return pick(self.margin, self.margin_names, target, other, opposite.margin_total)
        if isinstance(output, str):
            raise InputError(
                f'output must be None, "margin" or a transform such as a SmoothedECDF; got {output!r}. '
                "None is the number that the model itself gives, for a classifier the probability."
            )
        raise InputError(f'output must be None, "margin" or a transform such as a SmoothedECDF; got {kind_of(output)}.')

    @property
    def labels(self) -> tuple[str, ...]:
        """Every name that `target` may have: outputs, margins, and of two classes the one that is not scored."""
        left_out = self.opposite.names if self.opposite is not None else ()
        return tuple(dict.fromkeys((*self.output_names, *self.margin_names, *left_out)))

    def then(self, step: Transform | Graph) -> Graph:
        """The same model with its score mapped further.

        Parameters
        ----------
        step : Transform or Graph
            A transform such as a SmoothedECDF, which leaves the margin as it is; or the graph of another model, say
            `gigrad.import_model(isotonic)`, fitted on the columns of this model's score, whose outputs are then the
            result's.
        """
        score, _ = self.output()
        if isinstance(step, Transform):
            opposite = None if self.opposite is None else replace(self.opposite, score_total=None)
            return replace(self, score=step.apply(score), opposite=opposite)
        if isinstance(step, Graph):
            from .rewire import attach

            return attach(step, self, score)
        raise InputError(
            "then must be given a transform such as a SmoothedECDF, or a Graph (of another model: "
            f"gigrad.import_model(model)); got {kind_of(step)}."
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model as gigrad reads it to a .gig file: numbers and text, no code. See `Explainer.save`."""
        from ..portable import save_graph

        save_graph(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Graph:
        """The model in a .gig file; it has no witness, since the model's library is not used."""
        from ..portable import load_graph

        return load_graph(path)

    def with_columns(self, names: Sequence[str]) -> Graph:
        """The same model with names for its columns, in order: tables are then read by name."""
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise InputError(f"with_columns needs a list of names; got {names!r}.")
        names = tuple(map(str, names))
        if len(names) != len(self.columns) or len(set(names)) < len(names):
            raise InputError(
                f"with_columns needs {len(self.columns)} different names, one for each column of {self.label}; "
                f"got {len(set(names))}."
            )
        columns = tuple(replace(c, name=n) for c, n in zip(self.columns, names, strict=True))
        return replace(self, columns=columns, named=True)


class Transform:
    """A function of a score: `apply(node)` returns the node that maps the output of `node`."""

    def apply(self, source: Node) -> Node:
        raise NotImplementedError
