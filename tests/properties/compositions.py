"""Random compositions of every kind of node, and what must hold of their credits.

In CI some hundreds of cases are drawn (`test_properties.py`); for a long run:

    OPENBLAS_NUM_THREADS=1 PYTHONPATH=tests/helpers \\
        python tests/properties/compositions.py --cases 100000 --processes 2 --log found.jsonl

which prints what did not hold, case by case, how far it is, and a summary; it fails if anything did not hold. A case is
known by its number alone. With a log a run that was stopped goes on where it was: every block of cases is one line of
it. At 20 to 30 cases per second and core it takes half an hour to three quarters.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
from composition_parts import columns, graph_of, model, pairs

import gigrad as gig
from gigrad._explain.scorer import Scorer
from gigrad.graph import Array, Graph, Input
from gigrad.testing import brute_force
from gigrad.testing.segments import LONGEST

TOLERANCES = (1e-3, 1e-6, 1e-9)
ROUNDING = 1e-9
"""What the definition's own bisection, and sums of numbers of size 1, may be off by."""


@dataclass
class Composition:
    """A model drawn at random, with pairs of rows."""

    graph: Graph
    starts: Array
    ends: Array


def composition(number: int, pair_count: int = 2) -> Composition:
    """The composition of that number."""
    rng = np.random.default_rng([18, number])
    of = columns(rng)
    source = Input(len(of))
    graph = graph_of(of, source, model(rng, of, source))
    return Composition(graph, *pairs(rng, of, pair_count))


# ------------------------------------------------------------ what must hold


@dataclass
class Verdict:
    """What was found of some rows: how many at each tolerance, and what did not hold."""

    rows: Counter[float] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    broken: list[tuple[str, int, float, float]] = field(default_factory=list)  # (law, case, tolerance, how badly)
    warned: Counter[float] = field(default_factory=Counter)
    seconds: float = 0.0  # of the processor

    def add(self, other: Verdict) -> None:
        self.rows += other.rows
        self.skipped += other.skipped
        self.broken += other.broken
        self.warned += other.warned
        self.seconds += other.seconds

    def as_line(self, first: int, cases: int) -> str:
        """The verdict on a block of cases as a line of the log."""
        found = {
            "rows": list(self.rows.items()), "skipped": self.skipped, "broken": self.broken,
            "warned": list(self.warned.items()), "seconds": self.seconds,
        }  # fmt: skip
        return json.dumps({"first": first, "cases": cases, **found})

    @staticmethod
    def of_line(line: dict[str, Any]) -> Verdict:
        broken = [(law, number, tol, much) for law, number, tol, much in line["broken"]]
        rows, warned = Counter(dict(line["rows"])), Counter(dict(line["warned"]))
        return Verdict(rows, Counter(line["skipped"]), broken, warned, line["seconds"])


def explained(case: Composition, scorer: Scorer, tol: float) -> tuple[gig.Explanation, bool]:
    """The credits of all pairs, and whether there was a warning about their accuracy."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        e = gig.explain_pairs(scorer, case.starts, case.ends, discrete=(), tol=tol, n_threads=1)
    return e, any(issubclass(w.category, gig.AccuracyWarning) for w in said)


SECOND_LOOK = 1 / 480
"""The pieces that the definition starts from where something did not hold: twice in 100,000 cases it had overlooked a
dip of the score under an isotonic step."""


def judge(number: int) -> Verdict:
    """Hold one composition to the definition and to its own word."""
    try:
        case = composition(number)  # an ECDF cannot be fitted to scores that overflow
        found = compared(number, case, LONGEST)
    except gig.InputError as error:
        return Verdict(skipped=Counter([str(error)[:60]]))
    if not found.broken:
        return found
    try:
        return compared(number, case, SECOND_LOOK)
    except gig.InputError:  # too steep for so many pieces: what was found stands
        return found


def compared(number: int, case: Composition, longest: float) -> Verdict:
    """One composition beside the definition, whose integration starts from pieces of that length."""
    found = Verdict()
    both = zip(case.starts, case.ends, strict=True)
    want = np.stack([brute_force(case.graph, start, end, longest=longest)[:, 0] for start, end in both])
    if not np.isfinite(want).all():
        found.skipped["the score is no finite number"] += 1
        return found
    scorer = Scorer.of(case.graph, None, None)  # the model is looked at once for all tolerances
    for tol in TOLERANCES:
        e, warned = explained(case, scorer, tol)
        size = np.maximum(np.maximum(np.abs(e.predictions), np.abs(e.base_values)), np.abs(want).max(axis=1))
        # The definition's credits do not add up either where a steep link magnifies the rounding of scores.
        lacks = np.abs(want.sum(axis=1) - (e.predictions - e.base_values))
        noise = ROUNDING * np.maximum(size, 1.0) + lacks
        scale = np.maximum(np.abs(e.predictions), np.abs(e.base_values))
        found.rows[tol] += len(want)
        found.warned[tol] += warned
        if not warned and (np.abs(e.gap) > tol * scale + noise).any():
            found.broken.append(("gap", number, tol, float(np.abs(e.gap).max())))
        true = np.abs(e.values - want).max(axis=1)
        for off, claimed, rounding in zip(true.tolist(), e.error.tolist(), noise.tolist(), strict=True):
            if not off <= claimed + rounding:  # neither where a credit is no number
                found.broken.append(("error", number, tol, (off - rounding) / max(claimed, 1e-300)))
        if not warned and (true > tol * scale + noise).any():
            found.broken.append(("tolerance", number, tol, float((true / np.maximum(tol * scale, noise)).max())))
    return found


BLOCK = 100
"""Cases of one line of the log."""


def judge_block(block: tuple[int, int]) -> tuple[tuple[int, int], Verdict]:
    """Some cases, from a first one."""
    first, cases = block
    begun, total = time.process_time(), Verdict()
    for number in range(first, first + cases):
        try:
            total.add(judge(number))
        except Exception as error:  # is found, too: the run goes on
            total.broken.append((f"{type(error).__name__}", number, 0.0, np.inf))
    total.seconds = time.process_time() - begun
    return block, total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--log", type=Path, help="file to write what was found to, and to go on from")
    asked = parser.parse_args()
    last = asked.first + asked.cases
    blocks = {first: min(BLOCK, last - first) for first in range(asked.first, last, BLOCK)}
    total, done, told, begun = Verdict(), 0, 0.0, time.monotonic()
    for line in logged(asked.log):
        if blocks.get(line["first"]) == line["cases"]:
            done += blocks.pop(line["first"])
            total.add(Verdict.of_line(line))
    before = done
    with Pool(asked.processes) as pool:
        for (first, cases), verdict in pool.imap_unordered(judge_block, blocks.items()):
            total.add(verdict)
            done += cases
            for law, number, tol, much in verdict.broken:
                print(f"case {number}: {law} at tol {tol:g} by {much:.3g}", flush=True)
            if asked.log is not None:
                with asked.log.open("a") as log:
                    log.write(verdict.as_line(first, cases) + "\n")
            took = time.monotonic() - begun
            if took - told > PROGRESS_SECONDS:
                told, rate = took, (done - before) / took
                left = (asked.cases - done) / rate / 60
                print(
                    f"{done} of {asked.cases} cases, {rate:.1f} per second, {left:.0f} minutes left; "
                    f"{len(total.broken)} broken",
                    flush=True,
                )
    summary(total, done)
    return 1 if total.broken else 0


PROGRESS_SECONDS = 30.0
"""The time between two lines of progress."""


def logged(log: Path | None) -> Iterator[dict[str, Any]]:
    """The lines of a log, of which one is incomplete where the run was stopped while it was written."""
    if log is None or not log.exists():
        return
    text = log.read_text()
    if text and not text.endswith("\n"):
        with log.open("a") as file:
            file.write("\n")
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            print(f"skipped an incomplete line of the log: {line:.60}", flush=True)


LAWS = {
    "gap": "gap without warning",
    "error": "error too small",
    "tolerance": "off by more than tol without warning",
}


def summary(total: Verdict, cases: int) -> None:
    failed = [number for law, number, _, _ in total.broken if law not in LAWS]
    print(
        f"{cases} cases, {sum(total.rows.values())} rows, {total.seconds:.0f} s of the processor; "
        f"skipped {dict(total.skipped)}; {len(failed)} exceptions {failed[:20]}"
    )
    for tol in TOLERANCES:
        n = total.rows[tol]
        print(f"tol {tol:g}: {n} rows, {total.warned[tol]} cases with a warning")
        for law, words in LAWS.items():
            bad = [much for what, _, at, much in total.broken if what == law and at == tol]
            print(f"    {words}: {len(bad)} rows ({len(bad) / max(n, 1):.4%}), worst {max(bad, default=0.0):.3g}")


if __name__ == "__main__":
    sys.exit(main())
