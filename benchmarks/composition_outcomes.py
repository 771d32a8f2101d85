"""Random compositions explained with constants from the environment, for accuracy_limits.py.

Apart from it, so that a process for one value of one constant does not load the benchmarks' competitors.
"""

from __future__ import annotations

import json
import os
import pickle
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from composition_parts import graph_of
from compositions import ROUNDING, TOLERANCES, Composition, composition, explained

import gigrad as gig
from gigrad._explain.scorer import Scorer
from gigrad.engine import limits
from gigrad.graph import Affine, Array, Column, Elementwise, Input, Node, Opaque, evaluate
from gigrad.testing import brute_force

FIRST_CASE = 700_000  # numbers that no other run of compositions uses


@dataclass
class Outcome:
    """What was found with one value of one constant.

    Attributes
    ----------
    values : list
        The credits and the errors of all rows, one array after the other.
    worst : float
        The largest ratio of a true error to `error` plus what the definition itself may be off by.
    above : int
        Rows whose true error is larger than that sum.
    warned : int
        Calls with a warning of accuracy.
    """

    values: list[float]
    worst: float
    above: int
    warned: int


def hidden_kinks(number: int, hidden: bool) -> Composition:
    """A net of two layers of 16 ReLU units under a sigmoid; `hidden` in a function whose kinks must be searched for."""
    rng = np.random.default_rng([19, number])
    of = tuple(Column(f"x{j}") for j in range(3))
    source, sizes = Input(3), [(16, 3), (16, 16), (1, 16)]
    layers = [(rng.normal(size=size) * np.sqrt(2 / size[1]), 0.5 * rng.normal(size=size[0])) for size in sizes]

    def slopes(x: Array, cotangent: Array) -> Array:
        signs = []
        for weights, bias in layers[:-1]:
            x = x @ weights.T + bias
            signs.append(x > 0.0)
            x = np.maximum(x, 0.0)
        for (weights, _), active in zip(reversed(layers), [*reversed(signs), None], strict=True):
            cotangent = cotangent @ weights if active is None else (cotangent @ weights) * active
        return cotangent

    score: Node = source
    for i, (weights, bias) in enumerate(layers):
        score = Affine(score if i == 0 else Elementwise(score, "relu"), weights, bias)
    if hidden:
        known = score
        score = Opaque(source, 1, lambda x: evaluate((known,), {source: x})[known], slopes)
    graph = graph_of(of, source, Elementwise(score, "sigmoid"))
    return Composition(graph, rng.normal(size=(2, 3)), rng.normal(size=(2, 3)))


def case_of(number: int) -> Composition:
    """A random composition or, with a negative number, a net with kinks in a function."""
    return composition(number) if number >= 0 else hidden_kinks(-number, True)


def wanted(cases: int) -> dict[int, np.ndarray]:
    """The credits of each case by the definition; cases that it does not cover are left out.

    Those of a net in a function are the ones of the same net as layers, whose kinks are known.
    """
    out = {}
    for number in range(-max(cases // 16, 1), 0):
        case = hidden_kinks(-number, False)
        out[number] = gig.explain_pairs(case.graph, case.starts, case.ends, discrete=(), tol=1e-11).values
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
    found = Outcome([], 0.0, 0, 0)
    for number, want in wants.items():
        case = case_of(number)
        scorer = Scorer.of(case.graph, None, None)
        answers = [explained(case, scorer, tol) for tol in TOLERANCES]
        for e, warned in answers:
            found.warned += warned
            found.values += [*e.values.ravel().tolist(), *e.error.tolist()]
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
