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


AT_RANDOM = """
import os, random, signal, sys, tempfile, threading, time, warnings
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from forests import graph_of, random_forest
import gigrad as gig
from gigrad.graph import Column, Elementwise, Input

kind, threads = sys.argv[1], 2
warnings.simplefilter("ignore")
signal.signal(signal.SIGINT, signal.default_int_handler)
columns, source = tuple(Column(f"x{j}") for j in range(12)), Input(12)
trees = random_forest(np.random.default_rng(3), columns, source, trees=60, depth=7)
linked = graph_of(columns, source, Elementwise(trees, "sigmoid"), trees)
rows = np.random.default_rng(0).normal(size=(20_000, 12))
many = np.tile(rows, (60, 1))
folder = tempfile.mkdtemp()

def mixed():
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.svm import SVC
    X, y = rows[:400], rows[:400, 0] * rows[:400, 1] > 0
    parts = [MLPClassifier((60, 60), max_iter=3, random_state=0), GradientBoostingClassifier(n_estimators=30), SVC()]
    for part in parts:
        part.fit(X, y)
    scores = [parts[0].predict_proba(X)[:, 1], parts[1].predict_proba(X)[:, 1], parts[2].decision_function(X)]
    return gig.stack(parts, LogisticRegression().fit(np.column_stack(scores), y))

def prepared():
    if kind == "trees":
        explainer = gig.Explainer(graph_of(columns, source, trees), rows, n_threads=threads)
        return lambda: explainer(rows)
    if kind == "linked":
        explainer = gig.Explainer(linked, rows, n_threads=threads)
        return lambda: explainer(rows)
    if kind == "mixed":
        explainer = gig.Explainer(mixed(), rows[:500], n_threads=threads)
        return lambda: explainer(rows[:1000])
    if kind == "pairs":
        return lambda: gig.explain_pairs(linked, many[::-1], many, n_threads=threads)
    if kind == "batch":
        explainer = gig.Explainer(linked, rows, n_threads=threads)
        pq.write_table(pa.table({f"x{j}": rows[:, j] for j in range(12)}), folder + "/in.parquet")
        return lambda: gig.batch.run(explainer, folder + "/in.parquet", folder + "/out.parquet")
    if kind in ("settle", "interactions"):
        explainer = gig.Explainer(linked, rows, n_threads=threads)
        if kind == "interactions":
            return lambda: gig.interactions(explainer, rows[:500])
        return lambda: gig.settle(explainer, rows, higher_is_better=True)
    return lambda: gig.reason_stability(linked, rows[:3000], rows[:3000], higher_is_better=True, n_threads=threads,
                                        measurement_error={"x0": 0.1})

call, moments = prepared(), random.Random(int(sys.argv[2]))
before = gig.explain(linked, rows[:2], rows[2:6]).values

def tasks():
    return len(os.listdir("/proc/self/task")) if os.path.exists("/proc/self/task") else threading.active_count()

for _ in range(3):
    sent = []
    def send():
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)
    there = tasks()
    timer = threading.Timer(moments.uniform(0.0, 2.0), send)
    timer.start()
    try:
        call()
    except KeyboardInterrupt:
        took = time.process_time() - sent[0]
        timer.join()
        patience = time.monotonic() + 5.0
        while tasks() > there and time.monotonic() < patience:  # a thread that was joined is gone a moment later
            time.sleep(0.01)
        assert tasks() <= there, (tasks(), there)
        assert (gig.explain(linked, rows[:2], rows[2:6]).values == before).all()
        print("stopped", took)
"""

AT_MOST = 0.3
"""Seconds from Ctrl-C to the prompt, of every core that works: others on the machine do not count."""


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill sends no SIGINT there")
@pytest.mark.parametrize("kind", ["trees", "linked", "mixed", "pairs", "batch", "stability", "settle", "interactions"])
def test_every_engine_ends_at_any_moment(kind: str) -> None:
    """Three random moments, from before the work has begun; a call that ends by itself first is not expected to."""
    done = subprocess.run(
        [sys.executable, "-c", AT_RANDOM, kind, "5"],
        capture_output=True, text=True, timeout=180, cwd=HELPERS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    took = [float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("stopped")]
    assert len(took) == 3, done.stdout
    assert max(took) <= 2 * AT_MOST, took  # two threads
