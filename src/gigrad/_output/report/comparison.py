"""The section about drift: a result of `gigrad.monitor` as tables with intervals drawn to scale."""

from __future__ import annotations

from typing import Any

from ..._common import display
from ...errors import InputError, kind_of

MOST = 100


def comparison(found: Any) -> dict[str, Any] | None:
    """The template's values for a `Drift`; None if there is none."""
    if found is None:
        return None
    if not all(hasattr(found, name) for name in ("reasons", "credits", "changed", "rows")):
        raise InputError(f"drift must be a result of gigrad.monitor; got {kind_of(found)}.")
    far = max((abs(end) for r in found.reasons for end in (r.low, r.high)), default=0.0) or 1.0
    most = max((end for c in found.credits for end in (c.high, c.chance)), default=0.0) or 1.0
    shifted = [sum(line.shifted for line in lines) for lines in (found.reasons, found.credits)]
    return {
        "this": found.this,
        "that": found.that,
        "rows": [f"{n:,}" for n in found.rows],
        "shifted": shifted,
        "counts": [len(found.reasons), len(found.credits)],
        "left": max(len(found.reasons), len(found.credits)) - MOST,
        "reasons": [
            {
                "name": r.feature,
                "cells": [f"{r.this:.1%}", f"{r.that:.1%}", f"{100 * r.difference:+.1f}"],
                "said": f"{100 * r.low:+.1f} to {100 * r.high:+.1f}",
                "colour": "other" if not r.shifted else "up" if r.difference > 0 else "down",
                "low": _at(r.low, -far, far), "mark": _at(r.difference, -far, far), "high": _at(r.high, -far, far),
                "tick": _at(0.0, -far, far),
            }
            for r in found.reasons[:MOST]
        ],
        "credits": [
            {
                "name": c.feature,
                "cells": [f"{c.psi:.4f}", f"{c.chance:.4f}", display.number(c.mean_this), display.number(c.mean_that)],
                "said": f"{c.low:.4f} to {c.high:.4f}",
                "colour": "up" if c.shifted else "other",
                "low": _at(c.low, 0.0, most), "mark": _at(c.psi, 0.0, most), "high": _at(c.high, 0.0, most),
                "tick": _at(c.chance, 0.0, most),
            }
            for c in found.credits[:MOST]
        ],
        "changed": _changed(found.changed),
    }  # fmt: skip


def _changed(found: Any) -> dict[str, Any] | None:
    """What a report shows about applicants whose reasons changed; None without such a comparison."""
    if found is None:
        return None
    examples = [(str(row), ", ".join(before), ", ".join(now)) for row, before, now in found.examples]
    counts = {name: f"{getattr(found, name):,}" for name in ("matched", "same_data", "changed")}
    return {**counts, "examples": examples, "more": found.changed - len(examples)}


def _at(value: float, low: float, high: float) -> str:
    """The position of a number on an axis of 200 units, with margins at the ends, as text."""
    return f"{5 + 190 * (value - low) / (high - low):.1f}"
