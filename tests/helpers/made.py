"""Explanations made up of chosen numbers, for tests of what comes after the engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gigrad import Explanation
from gigrad._explain.paths import Paths

LABELS = np.array(["rent", "own", "free", None], dtype=object)


def made(
    n: int = 7,
    p: int = 4,
    k: int | None = None,
    kind: str = "pandas",
    *,
    names: tuple[str, ...] | None = None,
    paths: bool = False,
    seed: int = 0,
) -> Explanation:
    """n rows of p features: the first is a category in frames, the second misses a value in row 2."""
    rng = np.random.default_rng(seed)
    outputs = () if k is None else (k,)
    names = names or tuple(f"f{i}" for i in range(p))
    X = np.round(rng.normal(size=(n, p)) * 10, 2)
    X[2 % n, 1 % p] = np.nan
    values = rng.normal(size=(n, p, *outputs)) * np.exp(-0.3 * np.arange(p)).reshape(1, p, *(1 for _ in outputs))
    base = np.full((n, *outputs), 0.3)
    gap = np.asarray(rng.normal(size=base.shape) * 1e-13)
    return Explanation(
        values=values,
        base_values=base,
        predictions=base + values.sum(axis=1) + gap,
        gap=gap,
        error=np.abs(gap),
        data=table(X, names, kind, rng),
        feature_names=names,
        output_names=("score",) if k is None else tuple(f"class {i}" for i in range(k)),
        provenance={"model": {"label": "made up"}, "reference": {"kind": "population", "rows": 30}},
        paths=made_paths(values, base, rng) if paths else None,
    )


def made_pairs() -> Explanation:
    """Two pairs of four features: f0 from rent to own and f1 from 42 to 50 in the first, nothing in the second."""
    import pandas as pd

    start = pd.DataFrame({"f0": ["rent", "own"], "f1": [42, 7], "f2": [1.5, np.nan], "f3": [None, "x"]})
    end = start.assign(f0=["own", "own"], f1=[50, 7])
    values = np.array([[0.3, -0.1, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    base, none = np.array([0.4, 0.2]), np.zeros(2)
    rng = np.random.default_rng(0)
    paths = made_paths(values, base, rng)
    return Explanation(
        values=values,
        base_values=base,
        predictions=base + values.sum(axis=1),
        gap=none,
        error=none,
        data=end,
        feature_names=tuple(start.columns),
        output_names=("score",),
        provenance={"model": {"label": "made up"}, "reference": {"kind": "pairs", "rows": 2}},
        paths=replace(paths, references=1, of=1),
        starts=start,
    )


def table(X: Any, names: tuple[str, ...], kind: str, rng: Any) -> Any:
    if kind == "numpy":
        return X
    columns: dict[str, Any] = {name: X[:, j] for j, name in enumerate(names)}
    columns[names[0]] = LABELS[rng.integers(0, 4, len(X))]
    if kind == "pandas":
        import pandas as pd

        return pd.DataFrame(columns, index=[f"loan {i}" for i in range(len(X))])
    import polars as pl

    frame = pl.DataFrame(columns)
    return frame if kind == "polars" else frame.to_arrow()


def made_paths(values: Any, base: Any, rng: Any) -> Paths:
    """Rows 0 and 2: half of every credit on a straight line, half in one jump of the feature's own."""
    rows, times = np.array([0, min(2, len(values) - 1)]), np.linspace(0, 1, 41)
    p, outputs = values.shape[1], values.shape[2:]
    moment = rng.uniform(0.1, 0.9, size=(2, p))
    so_far = 0.5 * times[None, :, None] + 0.5 * (times[None, :, None] >= moment[:, None, :])
    credit = values[rows][:, None] * so_far.reshape(2, 41, p, *(1 for _ in outputs))
    return Paths(
        rows=rows,
        times=times,
        score=base[rows][:, None] + credit.sum(axis=2),
        credit=credit,
        jump_row=np.repeat([0, 1], p),
        jump_time=moment.ravel(),
        jump_feature=np.tile(np.arange(p), 2),
        jump_size=0.5 * values[rows].reshape(2 * p, *outputs),
        references=30,
        of=30,
    )
