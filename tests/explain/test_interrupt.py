"""Ctrl-C: a call of minutes ends at once, whichever kernel runs, and the next call works."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forests import graph_of, random_forest

import gigrad as gig
from gigrad.graph import Column, Elementwise, Graph, Input

TASKS = Path("/proc/self/task")


def large(link: str | None) -> Graph:
    """A graph whose explanation of 20,000 rows against 20,000 references would take an hour or more."""
    columns = tuple(Column(f"x{j}") for j in range(12))
    source = Input(12)
    trees = random_forest(np.random.default_rng(3), columns, source, trees=60, depth=7)
    return graph_of(columns, source, trees if link is None else Elementwise(trees, link), trees)


def interrupted(call: Callable[[], Any], after: float) -> None:
    """Run a call and press Ctrl-C while it runs."""
    timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        call()
    timer.join()


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill sends no SIGINT there")
@pytest.mark.parametrize("simd", ["fastest", "lanes", "portable"])
@pytest.mark.parametrize("link", [None, "sigmoid"])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_long_call_ends_at_once(link: str | None, simd: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if simd != "fastest":
        monkeypatch.setattr(gig.config, "simd", simd)
    graph, rows = large(link), np.random.default_rng(0).normal(size=(20_000, 12))
    short = gig.explain(graph, rows[:2], rows[2:6])
    before = len(list(TASKS.iterdir())) if TASKS.exists() else 0
    explainer = gig.Explainer(graph, rows, n_threads=threads)
    interrupted(lambda: explainer(rows), 0.4)
    assert not TASKS.exists() or len(list(TASKS.iterdir())) <= before + 1  # but for the one that pressed the key
    np.testing.assert_array_equal(gig.explain(graph, rows[:2], rows[2:6]).values, short.values)


def test_pairs_end_at_once() -> None:
    graph, rows = large(None), np.random.default_rng(0).normal(size=(2_000_000, 12))
    interrupted(lambda: gig.explain_pairs(graph, rows[::-1], rows), 1.0)
