"""Models used as steps: stacks and votes, whose parts' predictions are columns, and embeddings by leaves."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import UnsupportedModelError
from ...graph import Graph, Input, Node, assemble
from ..common.meta import joined, output_of, probabilities, side_by_side
from ..sklearn.trees import read_tree, tree_columns
from .table import Blend, ModelBlock, Table


def stacking(model: Any, table: Table) -> Table:
    """The predictions of the parts of a stack; with passthrough followed by the columns themselves."""
    parts = joined(model, model.estimators_)
    methods = [m for m in model.stack_method_ if m is not None]
    scores = [output_of(e, g, m) for e, g, m in zip(model.estimators_, parts, methods, strict=True)]
    out = _behind(model, parts[0], side_by_side(scores), table)
    return table.become((*out.features, *table.features)) if model.passthrough else out


def voting(model: Any, table: Table) -> Table:
    """The predictions of the parts of a vote: numbers, or the probabilities of all classes, part after part."""
    parts = joined(model, model.estimators_)
    own = [g.output(None)[0] for g in parts]
    if "VotingClassifier" in {cls.__name__ for cls in type(model).__mro__}:
        if model.voting != "soft" or not model.flatten_transform:
            raise UnsupportedModelError(
                'VotingClassifier as a step must have voting="soft" and flatten_transform=True; this one outputs '
                "predicted classes or a table of three dimensions."
            )
        own = [probabilities(node, len(model.classes_)) for node in own]
    return _behind(model, parts[0], side_by_side(own), table)


def random_trees(model: Any, table: Table) -> Table:
    """RandomTreesEmbedding: a flag for every leaf of every tree."""
    leaves = [np.nonzero(e.tree_.children_left < 0)[0] for e in model.estimators_]
    width = sum(map(len, leaves))
    known = [list(c) for c in model.one_hot_encoder_.categories_]
    if [list(map(int, k)) for k in known] != [list(map(int, own)) for own in leaves]:
        raise UnsupportedModelError(
            "RandomTreesEmbedding has leaves that no training row reached; fit it on all of its rows."
        )
    trees, first = [], 0
    for estimator, own in zip(model.estimators_, leaves, strict=True):
        values = np.zeros((estimator.tree_.node_count, width))
        values[own, first + np.arange(len(own))] = 1.0
        trees.append(read_tree(estimator.tree_, values))
        first += len(own)
    source = Input(model.n_features_in_)
    score = assemble(source, trees, np.zeros(width))
    names = tuple(str(i) for i in range(width))
    graph = Graph(tree_columns(model, missing=False), source, score, score, names)
    return _behind(model, graph, score, table)


def _behind(model: Any, graph: Graph, node: Node, table: Table) -> Table:
    """The outputs of a model as columns of the table."""
    if len(graph.columns) != len(table):
        raise UnsupportedModelError(
            f"{type(model).__name__} as a step reads {len(graph.columns)} of the {len(table)} columns that it was "
            "fitted on; leave the others out before it (ColumnTransformer)."
        )
    block = ModelBlock(type(model).__name__, table.features, lambda source: source, graph=graph, node=node)
    return table.become([Blend(block, i) for i in range(node.width)])
