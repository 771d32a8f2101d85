"""Which nodes, functions and kernels the files of the golden corpus hold, and a graph of those that none holds yet."""

from __future__ import annotations

from typing import Any

import numpy as np
from node_table import smooth_nodes

from gigrad.graph import (
    Affine,
    Column,
    Concat,
    Elementwise,
    Fill,
    Graph,
    Input,
    IsMissing,
    Lookup,
    Node,
    PiecewiseLinear,
    Select,
    Smooth,
    Switch,
    topological,
)
from gigrad.graph.functions import FUNCTIONS
from gigrad.graph.kernel_machine import PROFILES
from gigrad.portable.nodes import NODES

KINDS = {*NODES, *(f"function {name}" for name in FUNCTIONS), *(f"kernel {name}" for name in PROFILES)}


def kinds_in(nodes: list[dict[str, Any]]) -> set[str]:
    """What the nodes of a file are, as their fields in it say."""
    return {
        *(node["type"] for node in nodes),
        *(f"function {node['name']}" for node in nodes if node["type"] == "Elementwise"),
        *(f"kernel {factor['profile']}" for node in nodes for factor in node.get("factors", ())),
    }


def kinds_of(node: Node) -> set[str]:
    """The same of a node that is not saved."""
    return {
        type(node).__name__,
        *([f"function {node.name}"] if isinstance(node, Elementwise) else []),
        *(f"kernel {factor.profile}" for factor in getattr(node, "factors", ())),
    }


def graph_of(wanted: set[str]) -> Graph:
    """A sum of wanted nodes, over a label and three numbers between 0 and 1, where all functions are defined."""
    rng = np.random.default_rng(0)
    columns = (Column("a"), Column("b"), Column("c"), Column("label", "category", (0.0, 1.0, 2.0)))
    source = Input(4)
    numbers = Select(source, (0, 1, 2))
    x = PiecewiseLinear(Fill(numbers, np.full(3, 0.5)), np.array([0.1, 0.9]), np.array([0.1, 0.9]))
    y = Lookup(source, 3, rng.uniform(-1, 1, (3, 3)), rng.uniform(-1, 1, 3), rng.uniform(-1, 1, 3))
    every: dict[str, Smooth] = smooth_nodes(x, y)
    every["switch"] = Switch(IsMissing(Select(source, (0,))), (x, y))  # in place of one by a number that moves
    every |= {f"function {name}": Elementwise(x, name, 0.3) for name in FUNCTIONS}
    chosen = [node for node in every.values() if any(kinds_of(n) & wanted for n in topological(node))]
    wide = Concat(tuple(chosen))
    weights = rng.normal(size=(1, wide.width)) / wide.width
    score = Affine(wide, weights, np.zeros(1))
    return Graph(columns, source, score, score, ("score",), ("score",), label="every node")
