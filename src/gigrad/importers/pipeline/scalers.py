"""Scalers: the number shifted and scaled, each operation rounded as in scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from .steps import Clip, Linear, Step
from .table import Table


def standard_scaler(scaler: Any, table: Table) -> Table:
    minus = scaler.mean_ if scaler.with_mean else None
    return _shift_and_divide(minus, scaler.scale_ if scaler.with_std else None, table, "StandardScaler")


def robust_scaler(scaler: Any, table: Table) -> Table:
    minus = scaler.center_ if scaler.with_centering else None
    return _shift_and_divide(minus, scaler.scale_ if scaler.with_scaling else None, table, "RobustScaler")


def max_abs_scaler(scaler: Any, table: Table) -> Table:
    scaled = _shift_and_divide(None, scaler.scale_, table, "MaxAbsScaler")
    clip = scaler.get_params().get("clip", False)  # an option of newer versions
    return scaled.then([Clip(-1.0, 1.0)] * len(table), "MaxAbsScaler") if clip else scaled


def min_max_scaler(scaler: Any, table: Table) -> Table:
    """Columns scaled to an interval, and limited to it with `clip`."""
    steps: list[Step | None] = [
        Linear(times=float(s), plus=float(m)) for s, m in zip(scaler.scale_, scaler.min_, strict=True)
    ]
    scaled = table.then(steps, "MinMaxScaler")
    if not scaler.clip:
        return scaled
    low, high = (float(v) for v in scaler.feature_range)
    return scaled.then([Clip(low, high)] * len(table), "MinMaxScaler")


def _shift_and_divide(minus: Any, over: Any, table: Table, name: str) -> Table:
    """`(x - minus) / over`; a sparse matrix is multiplied by 1 / over instead, which rounds differently."""
    shifts = [None] * len(table) if minus is None else [float(v) for v in minus]
    scales = [None] * len(table) if over is None else np.asarray(over, np.float64).tolist()
    steps: list[Step | None] = [
        Linear(minus=m, times=None if s is None else 1.0 / s) if table.sparse else Linear(minus=m, over=s)
        for m, s in zip(shifts, scales, strict=True)
    ]
    return table.then(steps, name)
