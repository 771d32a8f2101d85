"""Explanations with given credits, for the tests of reasons."""

from __future__ import annotations

from typing import Any

import numpy as np

import gigrad as gig


def made(values: Any, data: Any = None, names: Any = None, **more: Any) -> gig.Explanation:
    """An explanation with given credits, of a score where higher is better; base 0."""
    values = np.asarray(values, dtype=float)
    n, p = values.shape
    names = tuple(names or "abcdefgh"[:p])
    data = np.zeros((n, p)) if data is None else data
    zero = np.zeros(n)
    facts = {"reference": {"higher_is_better": True, "typical": dict.fromkeys(names, 0.5), "note": "made up"}}
    return gig.Explanation(values, zero, values.sum(axis=1), zero, zero, data, names, ("points",), facts, **more)


def listed(found: Any, i: int = 0) -> list[str]:
    return [r.feature for r in found[i].reasons]
