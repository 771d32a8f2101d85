"""One-vs-one voting: each decision between two classes is a vote for one of them, which jumps where it is zero."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ...graph import Affine, Elementwise, Node, Product, Sum, assemble
from ...graph.growing import stump


def counted(confidences: Node, classes: int, threshold: float) -> Node:
    """Votes for each class, plus the sum of its confidences, scaled to less than a third of a vote.

    As in scikit-learn's `_ovr_decision_function`: a confidence above the threshold is a vote for the second class.
    """
    pairs = list(combinations(range(classes), 2))
    total = np.zeros((classes, len(pairs)))
    trees = []
    for k, (i, j) in enumerate(pairs):
        total[i, k], total[j, k] = -1.0, 1.0
        trees.append(stump(k, threshold, np.eye(classes)[i], np.eye(classes)[j]))
    votes = assemble(confidences, trees, np.zeros(classes))
    each, one = np.eye(classes), np.ones(classes)
    added = Affine(confidences, total, np.zeros(classes))
    squeezed = Elementwise(Affine(Elementwise(added, "abs"), 3.0 * each, 3.0 * one), "reciprocal")
    return Sum((votes, Product(added, squeezed)))
