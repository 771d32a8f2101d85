"""The models and rows that are timed: made data, so that sizes can be chosen and anybody can repeat them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import lightgbm
import numpy as np
import xgboost
from sklearn.ensemble import RandomForestClassifier

import gigrad as gig


@dataclass(frozen=True, eq=False)
class Work:
    """A fitted model, the rows to explain and the reference."""

    model: Any
    rows: np.ndarray
    reference: np.ndarray


def table(rows: int, columns: int, binary: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Normal columns, the last `binary` of them 0 or 1, and a target that most of them matter to."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    if binary:
        X[:, -binary:] = X[:, -binary:] > 0
    signal = X @ rng.normal(size=columns) + 2 * X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2])
    return X, (signal + rng.normal(size=rows) > np.median(signal)).astype(int)


def boosted(
    trees: int, depth: int, rows: int, references: int, columns: int = 30, binary: int = 0, samples: int = 20_000
) -> Work:
    """XGBoost grown to full depth, so that a tree of depth 6 has nearly 64 leaves."""
    return _work(_boosted(trees, depth, columns, binary, samples), rows, references, columns, binary)


@cache
def _boosted(trees: int, depth: int, columns: int, binary: int, samples: int) -> xgboost.XGBClassifier:
    X, y = table(samples, columns, binary)
    return xgboost.XGBClassifier(
        n_estimators=trees,
        max_depth=depth,
        learning_rate=0.05,
        min_child_weight=0,
        reg_lambda=1,
        n_jobs=2,
        random_state=0,
    ).fit(X, y)


def classes(trees: int, depth: int, rows: int, references: int) -> Work:
    """Three classes, with as many trees for each."""
    X, y = table(20_000, 30, 0)
    model = xgboost.XGBClassifier(n_estimators=trees, max_depth=depth, learning_rate=0.05, n_jobs=2, random_state=0)
    return _work(model.fit(X, y + (X[:, 3] > 0.5)), rows, references, 30, 0)


def leafwise(trees: int, leaves: int, rows: int, references: int) -> Work:
    X, y = table(20_000, 30, 0)
    model = lightgbm.LGBMClassifier(n_estimators=trees, num_leaves=leaves, learning_rate=0.05, n_jobs=2, verbose=-1)
    return _work(model.fit(X, y), rows, references, 30, 0)


def forest(trees: int, depth: int, rows: int, references: int) -> Work:
    X, y = table(10_000, 30, 0)
    model = RandomForestClassifier(trees, max_depth=depth, n_jobs=2, random_state=0).fit(X, y)
    model.n_jobs = 1
    return _work(model, rows, references, 30, 0)


def _work(model: Any, rows: int, references: int, columns: int, binary: int) -> Work:
    X, _ = table(rows + references, columns, binary, seed=1)
    return Work(model, X[:rows], X[rows:])


def credits_only(work: Work, output: object = "margin", threads: int = 1) -> Callable[[], np.ndarray]:
    """Explains without the comparison with the model's own predictions, whose cost is the model's."""
    graph = gig.import_model(work.model)
    bare = gig.Graph(graph.columns, graph.input, graph.score, graph.margin, graph.output_names)
    explainer = gig.Explainer(bare, work.reference, output=output, n_threads=threads)
    return lambda: explainer(work.rows).values


def best_times(
    functions: Sequence[Callable[[], object]], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Best time of each, taken in turns so that a busy moment of the machine hits all alike."""
    best = [np.inf] * len(functions)
    for _ in range(repeats):
        for i, function in enumerate(functions):
            began = clock()
            function()
            best[i] = min(best[i], clock() - began)
    return best
