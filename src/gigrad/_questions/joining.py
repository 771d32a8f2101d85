"""Several scores side by side as one graph: one table, one choice of discrete columns, each model's own witnesses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import InputError, kind_of
from ..graph import Concat, Graph, Transform
from ..importers import import_model


def one_score(model: Any, output: Any, target: Any, what: str) -> Graph:
    """A model as a graph whose only output is the score that `output` and `target` name; `what` is for messages."""
    graph = import_model(model)
    transform = output if _maps(output) else None
    node, names = graph.output(None if transform is not None else output, target)
    if node.width != 1:
        shown = ", ".join(map(repr, names[:8]))
        raise InputError(f"{what} must give one score; {graph.label} has the outputs {shown}. Pick one with target=.")
    alone = replace(graph, score=node, margin=node, output_names=names, margin_names=names, no_score="", opposite=None)
    return alone if transform is None else mapped(alone, transform, what)


def mapped(graph: Graph, step: Any, what: str) -> Graph:
    """The graph with a transform or a fitted calibrator applied to its score; unchanged if `step` is None."""
    if step is None:
        return graph
    if not isinstance(step, Transform) and isinstance(step, (str, bytes, int, float, Sequence, Mapping)):
        raise InputError(
            f"{what}: scores are mapped by a transform such as a SmoothedECDF, or a calibrator; got {kind_of(step)}."
        )
    above = graph.then(step if isinstance(step, Transform) else import_model(step))
    if above.score.width != 1:
        raise InputError(f"{what} must map a score to one number; {above.label} gives {above.score.width}.")
    return replace(above, margin=above.score, margin_names=above.output_names, opposite=None)


def side_by_side(graphs: Mapping[str, Graph]) -> Graph:
    """Graphs over one shared input as one graph with an output for each, called by its key."""
    first = next(iter(graphs.values()))
    score = Concat(tuple(g.score for g in graphs.values())) if len(graphs) > 1 else first.score
    witnesses = tuple(dict.fromkeys(w for g in graphs.values() for w in g.witnesses))
    names = tuple(graphs)
    return Graph(
        first.columns, first.input, score, score, names, names, witnesses, first.named,
        label=" and ".join(dict.fromkeys(g.label for g in graphs.values())),
    )  # fmt: skip


def _maps(output: Any) -> bool:
    return output is not None and not isinstance(output, str)
