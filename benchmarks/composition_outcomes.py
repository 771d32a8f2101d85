"""Random compositions explained with constants from the environment, for accuracy_limits.py.

Apart from it, so that a process for one value of one constant does not load the benchmarks' competitors.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import gigrad as gig
from gigrad._explain.scorer import Scorer
from gigrad.engine import limits
from gigrad.testing import brute_force

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "tests/properties"), str(ROOT / "tests/helpers")]
FIRST_CASE = 700_000  # numbers that no other run of compositions uses


@dataclass
class Outcome:
    """What was found with one value of one constant.

    Attributes
    ----------
    values, gaps : list
        The credits of all rows, one array after the other.
    worst : float
        The largest ratio of a true error to `error` plus what the definition itself may be off by.
    above : int
        Rows whose true error is larger than that sum.
    warned : int
        Calls with a warning of accuracy.
    seconds : float
        Processor time of all calls.
    """

    values: list[float]
    worst: float
    above: int
    warned: int
    seconds: float


def wanted(cases: int) -> dict[int, np.ndarray]:
    """The credits of each case by the definition; cases that it does not cover are left out."""
    from compositions import composition

    out = {}
    for number in range(FIRST_CASE, FIRST_CASE + cases):
        try:
            case = composition(number)
            both = zip(case.starts, case.ends, strict=True)
            credits = np.stack([brute_force(case.graph, start, end)[:, 0] for start, end in both])
        except gig.InputError:  # the score overflows, or is too steep for the definition
            continue
        if np.isfinite(credits).all():
            out[number] = credits
    return out


def outcome(wants: dict[int, np.ndarray]) -> Outcome:
    """All cases explained with the constants of this process."""
    from compositions import ROUNDING, TOLERANCES, composition, explained

    found = Outcome([], 0.0, 0, 0, 0.0)
    for number, want in wants.items():
        case = composition(number)
        begun = time.process_time()
        scorer = Scorer.of(case.graph, None, None)
        answers = [explained(case, scorer, tol) for tol in TOLERANCES]
        found.seconds += time.process_time() - begun
        for e, warned in answers:
            found.warned += warned
            found.values += e.values.ravel().tolist()
            size = np.maximum(np.maximum(np.abs(e.predictions), np.abs(e.base_values)), np.abs(want).max(axis=1))
            lacks = np.abs(want.sum(axis=1) - (e.predictions - e.base_values))
            held = e.error + ROUNDING * np.maximum(size, 1.0) + lacks
            ratio = np.abs(e.values - want).max(axis=1) / held
            found.worst = max(found.worst, float(ratio.max()))
            found.above += int((ratio > 1.0).sum())
    return found


def in_this_process(file: Path, cases: int) -> None:
    """Explain the cases of a file with constants from the environment, or write the file; print what was found."""
    if not file.exists():
        file.write_bytes(pickle.dumps(wanted(cases)))
    for name in vars(limits).keys() & os.environ.keys():
        setattr(limits, name, float(os.environ[name]))
    print(json.dumps(asdict(outcome(pickle.loads(file.read_bytes())))))
