"""Ctrl-C: a call of minutes ends at once, whichever kernel runs, and the next call works."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HELPERS = Path(__file__).parents[1] / "helpers"
PROGRAM = """
import os, signal, sys, threading
import numpy as np
from forests import graph_of, random_forest
import gigrad as gig
from gigrad.graph import Column, Elementwise, Input

link, threads, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]
signal.signal(signal.SIGINT, signal.default_int_handler)
columns, source = tuple(Column(f"x{j}") for j in range(12)), Input(12)
trees = random_forest(np.random.default_rng(3), columns, source, trees=60, depth=7)
graph = graph_of(columns, source, trees if link == "none" else Elementwise(trees, link), trees)
rows = np.random.default_rng(0).normal(size=(20_000, 12))
many = np.tile(rows, (60, 1))
for walk in gig.config.simd_choices:
    gig.config.simd = walk
    explainer = gig.Explainer(graph, rows, n_threads=threads)
    before = gig.explain(graph, rows[:2], rows[2:6]).values
    tasks = len(os.listdir("/proc/self/task")) if os.path.exists("/proc/self/task") else 0
    timer = threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:  # an hour of work, or some
        explainer(rows) if kind == "population" else gig.explain_pairs(graph, many[::-1], many, n_threads=threads)
    except KeyboardInterrupt:
        timer.join()
        left = len(os.listdir("/proc/self/task")) - tasks if tasks else 0
        assert left <= 0, left
        assert (gig.explain(graph, rows[:2], rows[2:6]).values == before).all()
        print("stopped")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill sends no SIGINT there")
@pytest.mark.parametrize(
    ("link", "threads", "kind"),
    [("none", 1, "population"), ("none", 3, "population"), ("sigmoid", 1, "population"), ("sigmoid", 3, "population"),
     ("none", 2, "pairs")],
)  # fmt: skip
def test_a_long_call_ends_at_once(link: str, threads: int, kind: str) -> None:
    """In a process of its own, whose main thread gets the signal: one for every walk that this processor can run."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, link, str(threads), kind],
        capture_output=True, text=True, timeout=120, cwd=HELPERS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == {"stopped"}
    assert len(done.stdout.split()) >= 2  # at least the plain walks
