"""A warning about the time that a large reference will take, given before the work starts."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from .._common.progress import span
from ..engine import Population, Settings
from ..errors import CostWarning, warn
from ..graph import Array
from .scorer import Scorer

LARGE = 100_000
"""References of this many rows or more are warned about: each explained row takes seconds."""

TRIED, ENDS = 200, 4
"""Rows of the reference, and rows explained, that the cost is measured on: some milliseconds for trees."""


def warn_of_cost(scorer: Scorer, reference: Array, settings: Settings) -> None:
    """Warn of a large reference (m, p), with the time that each explained row will take against it."""
    if len(reference) < LARGE:
        return
    some = reference[np.linspace(0, len(reference) - 1, TRIED).astype(np.int64)]
    population = Population(some, np.full(TRIED, 1.0 / TRIED), some[:ENDS])
    took = []
    for _ in range(2):  # the first time includes work that is done only once
        began = time.perf_counter()
        scorer.credit(population, replace(settings, quiet=True))
        took.append(time.perf_counter() - began)
    seconds = min(took) / (TRIED * ENDS) * len(reference)
    warn(
        f"The reference has {len(reference):,} rows, and each explained row will take about {span(seconds)}, "
        f"as measured on {TRIED} of them. A smaller one gives nearly the same credits: with "
        "r = gigrad.references.all_applicants(reference), gigrad.references.sample(r, 1000) draws some rows and "
        "gigrad.references.distill(r, 100) finds weighted ones that stand for all.",
        CostWarning,
    )
