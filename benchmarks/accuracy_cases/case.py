"""What a case is: something computed that a constant changes, and something independent that it is compared with."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import gigrad as gig
from gigrad.graph import Array, Column, Graph, Input, Node

NOISE = 1e-13
"""What sums and closed forms may be off by, relative to the largest number on a path."""


@dataclass(frozen=True)
class Found:
    """What a case gives.

    Attributes
    ----------
    values : list
        Credits, errors and messages: what is compared bit by bit.
    ratio : float
        The largest true error of a credit, as a multiple of `error` and what the closed form may be off by.
    wrong : str
        What else is wrong in a few words, such as a warning that is missing; empty if nothing is.
    """

    values: list[Any]
    ratio: float = 0.0
    wrong: str = ""

    @property
    def holds(self) -> bool:
        return self.ratio <= 1.0 and not self.wrong


Case = Callable[[], Found]

CASES: dict[str, list[Case]] = {}
"""Constant -> its cases; the first line of the docstring of a case is its name in the table."""


def matters_to(*constants: str) -> Callable[[Case], Case]:
    """Mark a case as one that these constants matter to."""

    def marked(case: Case) -> Case:
        for name in constants:
            CASES.setdefault(name, []).append(case)
        return case

    return marked


def graph_over(source: Input, node: Node) -> Graph:
    return Graph(tuple(Column(f"x{j}") for j in range(source.width)), source, node, node, ("score",))


def said_by(call: Callable[[], Any]) -> tuple[Any, list[str]]:
    """What a call gives, and its warnings of accuracy; a refusal is a warning, too, with None as the result."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            result = call()
        except gig.UnsupportedModelError as error:
            return None, [f"refused: {error}"]
    return result, [str(w.message) for w in said if issubclass(w.category, gig.AccuracyWarning)]


def explained(graph: Graph, starts: Any, ends: Any, **options: Any) -> tuple[gig.Explanation | None, list[str]]:
    return said_by(lambda: gig.explain_pairs(graph, starts, ends, discrete=(), n_threads=1, **options))


def compared(
    graph: Graph, starts: Any, ends: Any, want: Any, says: str | None = "", noise: float = NOISE, **options: Any
) -> Found:
    """A graph explained, beside its true credits (n, p).

    Parameters
    ----------
    says : str, optional
        What the warnings must match, as a regular expression; none may be given if empty, and None allows all.
    noise : float
        What the true credits may be off by, relative to the largest score and credit.
    """
    e, said = explained(graph, starts, ends, **options)
    wrong = misstated(said, says)
    if e is None:
        return Found(list(said), 0.0, wrong)
    tall = np.maximum(np.maximum(np.abs(e.predictions), np.abs(e.base_values)), np.abs(want).max(axis=1))
    held = e.error + noise * tall
    ratio = np.abs(e.values - want).max(axis=1) / held
    return Found([*e.values.ravel().tolist(), *e.error.tolist(), *said], float(ratio.max()), wrong)


def worst(found: list[Found]) -> Found:
    """Several findings as one."""
    wrong = next((f.wrong for f in found if f.wrong), "")
    return Found([v for f in found for v in f.values], max(f.ratio for f in found), wrong)


def misstated(said: list[str], says: str | None) -> str:
    """What is wrong with warnings that should match `says`."""
    if says is None:
        return ""
    if not says:
        return f"false warning: {said[0]:.60}" if said else ""
    if any(re.search(says, one) for one in said):
        return ""
    return f"other warning: {said[0]:.60}" if said else "no warning"


def array(*rows: Any) -> Array:
    """Numbers, or rows of numbers."""
    return np.array(rows, np.float64)
