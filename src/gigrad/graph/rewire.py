"""Graphs attached to other nodes: nodes whose inputs change are rebuilt, the others kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from ..errors import InputError
from .columns import Column
from .model import Graph
from .node import Concat, Node, Select, topological
from .ranks import over_ranks
from .trees import TreeEnsemble
from .witness import Witness


def rewire(outputs: tuple[Node, ...], new: Mapping[Node, Node]) -> dict[Node, Node]:
    """Old node -> new node for all below `outputs` if some are replaced: nodes that read a replaced one are rebuilt."""
    changed: dict[Node, Node] = dict(new)
    for node in topological(*outputs):
        if node not in changed:
            changed[node] = with_parents(node, changed)
    return changed


def with_parents(node: Node, changed: Mapping[Node, Node]) -> Node:
    """A copy of the node that reads the changed parents; the node itself if none has changed."""
    swapped: dict[str, Any] = {}
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, Node):
            if changed[value] is not value:
                swapped[field.name] = changed[value]
        elif isinstance(value, tuple) and any(isinstance(v, Node) for v in value):
            moved = tuple(changed[v] if isinstance(v, Node) else v for v in value)
            if any(a is not b for a, b in zip(moved, value, strict=True)):
                swapped[field.name] = moved
    return replace(node, **swapped) if swapped else node


def attach(head: Graph, over: Graph, node: Node) -> Graph:
    """The model `head` reading `node`, a node of the graph `over`, in place of rows.

    The result has the columns of `over` and the outputs of `head`. Trees of `head` become trees over `node`, in which
    raw columns are replaced by their ranks among the thresholds (see `ranks`). Its witnesses predict from the values of
    `node`; those of `over` stay.
    """
    if node.width != head.input.width:
        raise InputError(
            f"{head.label} must get the {head.input.width} columns it was fitted on; the scores below it give "
            f"{node.width}."
        )
    outputs = (head.score, head.margin, *(w.node for w in head.witnesses))
    new: dict[Node, Node] = {head.input: node}
    for tree in topological(*outputs):
        if isinstance(tree, TreeEnsemble) and tree.source is head.input:
            new[tree] = over_ranks(replace(tree, source=node), over.input, over.columns)
    moved = rewire(outputs, new)
    return Graph(
        columns=over.columns,
        input=over.input,
        score=moved[head.score],
        margin=moved[head.margin],
        output_names=head.output_names,
        margin_names=head.margin_names,
        witnesses=(*over.witnesses, *(_above(w, moved, node, head.columns) for w in head.witnesses)),
        named=over.named,
        label=head.label,
        no_score=head.no_score,
        opposite=head.opposite,
        times=head.times,
    )


def _above(witness: Witness, moved: Mapping[Node, Node], node: Node, columns: tuple[Column, ...]) -> Witness:
    if witness.source is None:
        return replace(witness, node=moved[witness.node], source=node, columns=columns)
    return replace(witness, node=moved[witness.node], source=moved[witness.source])


def columns_of(node: Node) -> list[tuple[Node, int]]:
    """For each column of a node, the node and column that it is a copy of, through selections and concatenations."""
    if isinstance(node, Select):
        below = columns_of(node.source)
        return [below[i] for i in node.columns]
    if isinstance(node, Concat):
        return [column for source in node.sources for column in columns_of(source)]
    return [(node, k) for k in range(node.width)]
