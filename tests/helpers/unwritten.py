"""Memory that NumPy allocates and does not write, filled with NaN: what reads it before writing to it gives NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest


def with_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let np.empty and np.empty_like give NaN, and true for booleans, until the test ends or the patch is undone."""
    for name in ("empty", "empty_like"):
        monkeypatch.setattr(np, name, _filled(getattr(np, name)))


def _filled(made: Callable[..., Any]) -> Callable[..., Any]:
    def filled(*shape: Any, **options: Any) -> Any:
        out = made(*shape, **options)
        if out.dtype.kind in "fb":
            out.fill(np.nan if out.dtype.kind == "f" else True)
        return out

    return filled
