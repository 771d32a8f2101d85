"""Trees over flags: on the path from all 0 to all 1 every column crosses at one half, which makes one large corner."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gigrad.graph import Input, Tree, TreeEnsemble, assemble


def flag_trees(
    columns: int, trees: int, depth: int, seed: int, outputs: int = 1, size: float = 0.3, missing: bool = False
) -> TreeEnsemble:
    """Trees over flags, each split at one half, so that all columns of (0, ..., 0) to (1, ..., 1) cross at once."""
    rng = np.random.default_rng(seed)
    grown = []
    for number in range(trees):
        splits = 2**depth - 1
        nodes = 2 * splits + 1
        feature = np.full(nodes, -1)
        feature[:splits] = rng.integers(columns, size=splits)
        left, right = (np.where(np.arange(nodes) < splits, 2 * np.arange(nodes) + side, -1) for side in (1, 2))
        value = np.where(np.arange(nodes) < splits, 0.0, rng.normal(size=nodes) * size)
        threshold = np.where(np.arange(nodes) < splits, 0.5, 0.0)
        to_left = rng.random(nodes) < 0.5 if missing else np.zeros(nodes, bool)
        grown.append(Tree(feature, threshold, left, right, to_left, value, output=number % outputs))
    return assemble(Input(columns), grown, np.zeros(outputs))


def many_flags(columns: int, seed: int = 0, size: float = 0.25) -> TreeEnsemble:
    """Trees on some of many flags, the first more often: strong and weak players, as in real models."""
    rng = np.random.default_rng(seed)
    trees = flag_trees(columns, 60, 4, seed=seed, size=size)
    split = trees.feature >= 0
    chance = np.exp(-np.arange(columns) / 8.0)
    feature = trees.feature.copy()
    feature[split] = rng.choice(columns, size=split.sum(), p=chance / chance.sum())
    return replace(trees, feature=feature)
