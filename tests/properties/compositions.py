"""Random compositions of every kind of node, and what must hold of their credits.

In CI some hundreds of cases are drawn (`test_properties.py`); for a long run:

    PYTHONPATH=tests/helpers python tests/properties/compositions.py --cases 100000 --processes 2 --log found.jsonl

which prints what did not hold, case by case, and a summary. A case is known by its number alone. With a log a run that
was stopped goes on where it was: every block of cases is one line of it.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
from forests import random_forest

import gigrad as gig
from gigrad._explain.scorer import Scorer
from gigrad.graph import (
    Affine,
    Array,
    Column,
    Concat,
    Elementwise,
    Factor,
    Fill,
    Graph,
    Input,
    IsMissing,
    KernelMachine,
    LogSoftmax,
    Lookup,
    Node,
    Opaque,
    PiecewiseLinear,
    PiecewisePolynomial,
    Product,
    Select,
    Shares,
    Softmax,
    Sum,
    TreeEnsemble,
    evaluate,
)
from gigrad.testing import brute_force
from gigrad.testing.segments import LONGEST

TOLERANCES = (1e-3, 1e-6, 1e-9)
ROUNDING = 1e-9
"""What the definition's own bisection, and sums of numbers of size 1, may be off by."""

Rng = np.random.Generator


@dataclass
class Composition:
    """A model drawn at random, with pairs of rows."""

    graph: Graph
    starts: Array
    ends: Array


# ------------------------------------------------------------ columns and rows


def columns(rng: Rng) -> tuple[Column, ...]:
    """Two to five columns, of which some are categories and some may be missing; at least two are numbers."""
    size = int(rng.integers(2, 6))
    kinds: list[Any] = ["category" if j >= 2 and rng.random() < 0.25 else "number" for j in range(size)]
    return tuple(Column(f"x{j}", kind, missing=bool(rng.random() < 0.3)) for j, kind in enumerate(kinds))


def rows(rng: Rng, of: tuple[Column, ...], n: int) -> Array:
    """Numbers on a grid, where thresholds lie, or between; flags; categories, one of them unknown; missing values."""
    out = np.empty((n, len(of)))
    for j, column in enumerate(of):
        grid = rng.integers(0, 7, n) / 2.0
        if column.kind == "category":
            out[:, j] = rng.integers(-1, 4, n)
        else:
            out[:, j] = [grid, rng.normal(1.5, 1.0, n), rng.integers(0, 2, n)][int(rng.choice(3, p=[0.4, 0.4, 0.2]))]
        if column.missing:
            out[rng.random(n) < 0.25, j] = np.nan
    return out


def pairs(rng: Rng, of: tuple[Column, ...], n: int) -> tuple[Array, Array]:
    """Starts and ends; some pairs are close, some share values."""
    starts, ends = rows(rng, of, n), rows(rng, of, n)
    for i in range(n):
        how = rng.random()
        if how < 0.2:  # close: the numbers have moved a little, the rest not at all
            moved = starts[i] + 10.0 ** rng.integers(-6, 0) * rng.normal(size=len(of))
            ends[i] = np.where([c.kind == "number" for c in of], moved, starts[i])
        elif how < 0.5:
            same = rng.random(len(of)) < 0.4
            ends[i, same] = starts[i, same]
    return starts, ends


# ------------------------------------------------------------ the parts


def numbers(rng: Rng, source: Input, of: tuple[Column, ...]) -> Node:
    """What smooth parts read: numbers with missing values filled in, categories looked up, indicators."""
    plain = [j for j, c in enumerate(of) if c.kind == "number"]
    kept = sorted(rng.choice(plain, int(rng.integers(min(2, len(plain)), len(plain) + 1)), replace=False).tolist())
    chosen = Select(source, tuple(kept))
    missing = any(of[j].missing for j in kept)
    parts: list[Node] = [Fill(chosen, rng.normal(1.0, 1.0, len(kept))) if missing else chosen]
    if missing and rng.random() < 0.5:
        parts.append(IsMissing(chosen))
    for j, column in enumerate(of):
        if column.kind == "category" and rng.random() < 0.7:
            parts.append(Lookup(source, j, rng.normal(size=(4, 2)), rng.normal(size=2), rng.normal(size=2)))
    return parts[0] if len(parts) == 1 else Concat(tuple(parts))


def affine(rng: Rng, source: Node, width: int, size: float = 1.0) -> Affine:
    weight = size * rng.normal(size=(width, source.width)) / np.sqrt(source.width)
    return Affine(source, weight, 0.5 * size * rng.normal(size=width))


ACTIVATIONS = ("relu", "leaky_relu", "elu", "tanh", "sigmoid", "softplus", "gelu", "gelu_tanh", "silu", "abs")


def elementwise(source: Node, name: str) -> Elementwise:
    return Elementwise(source, name, {"leaky_relu": 0.1, "elu": 1.0}.get(name, 0.0))


def net(rng: Rng, source: Node) -> Node:
    for _ in range(int(rng.integers(1, 3))):
        source = elementwise(affine(rng, source, int(rng.integers(2, 7)), 1.5), str(rng.choice(ACTIVATIONS)))
    return affine(rng, source, 1)


def line(rng: Rng, source: Node) -> Node:
    return affine(rng, source, 1)


def kernel(rng: Rng, source: Node) -> Node:
    width, count = source.width, int(rng.integers(3, 12))
    profile = str(rng.choice(["gaussian", "exponential", "matern32", "matern52", "rational", "polynomial", "tanh"]))
    scale = np.full(width, 10.0 ** rng.uniform(-1.0, 1.0 if profile in ("gaussian", "rational") else 0.3))
    if profile in ("polynomial", "tanh"):
        scale = np.full(width, 0.2)
    factors = [Factor(profile, scale, 0.5, {"polynomial": 3.0, "rational": 1.5}.get(profile, 0.0))]
    if rng.random() < 0.2:
        factors.append(Factor("gaussian", np.full(width, 0.5)))
    support = rng.normal(1.5, 1.0, (count, width))
    return KernelMachine(source, support, rng.normal(size=(1, count)), rng.normal(size=1), tuple(factors))


def spline(rng: Rng, source: Node) -> Node:
    """Curves that are continuous, with or without kinks, of one number."""
    one = affine(rng, source, 1) if rng.random() < 0.5 else Select(source, (int(rng.integers(source.width)),))
    breaks = np.sort(rng.choice(np.arange(-2.0, 6.0, 0.5), int(rng.integers(2, 5)), replace=False))
    if rng.random() < 0.5:
        return PiecewiseLinear(one, breaks, rng.normal(size=len(breaks)))
    coefficients = [np.array([rng.normal(), 0.3 * rng.normal(), 0.0, 0.0])]
    for i, at in enumerate(breaks):
        begin = breaks[max(i - 1, 0)]
        value = np.polyval(coefficients[-1][::-1], at - begin)
        coefficients.append(np.array([value, *(0.3 * rng.normal(size=3))]))
    coefficients[-1][2:] = 0.0
    return PiecewisePolynomial(one, breaks, np.concatenate(coefficients)[:, None])


def opaque(rng: Rng, source: Node) -> Node:
    """A wave of what it reads, known by value and gradient alone."""
    weight, shift = rng.normal(size=source.width) / np.sqrt(source.width), rng.normal()

    def value(x: Array) -> Array:
        return np.sin(x @ weight + shift)[:, None]

    def gradient(x: Array, cotangent: Array) -> Array:
        return cotangent * np.cos(x @ weight + shift)[:, None] * weight

    return Opaque(source, 1, value, gradient)


def product(rng: Rng, source: Node) -> Node:
    return Product(affine(rng, source, 1), elementwise(affine(rng, source, 1), str(rng.choice(ACTIVATIONS))))


def classes(rng: Rng, source: Node) -> Node:
    several = affine(rng, source, 3, 1.5)
    if rng.random() < 0.3:
        positive = Elementwise(several, "exp")
        return Select(Shares(positive, affine(rng, Elementwise(Select(several, (0,)), "softplus"), 1, 0.0)), (1,))
    return Select(Softmax(several) if rng.random() < 0.6 else LogSoftmax(several), (int(rng.integers(3)),))


def scalar(rng: Rng, source: Node) -> Node:
    """The functions of one number that need a positive one, or one between 0 and 1."""
    name = str(rng.choice(["log", "log1p", "sqrt", "reciprocal", "box_cox", "square", "signed_square", "yeo_johnson",
                           "expm1", "logit", "normal_score"]))  # fmt: skip
    inner = affine(rng, source, 1)
    if name in ("logit", "normal_score"):
        inside = Affine(Elementwise(inner, "sigmoid"), np.array([[0.9]]), np.array([0.05]))
        return Elementwise(inside, name)
    if name in ("square", "signed_square", "yeo_johnson", "expm1"):
        return Elementwise(inner, name, 0.4)
    positive = Affine(Elementwise(inner, "softplus"), np.eye(1), np.array([0.1]))
    return Elementwise(positive, name, 0.4)


SMOOTH: tuple[Callable[[Rng, Node], Node], ...] = (
    net, net, net, line, kernel, spline, opaque, product, classes, scalar,
)  # fmt: skip


def trees(rng: Rng, source: Input, of: tuple[Column, ...]) -> TreeEnsemble:
    return random_forest(rng, of, source, trees=int(rng.integers(1, 5)), depth=int(rng.integers(1, 4)))


def over_scores(rng: Rng, source: Node) -> Node:
    """Trees that read what another part gives."""
    read = tuple(Column(f"s{j}", missing=False) for j in range(source.width))
    return random_forest(rng, read, source, trees=2, depth=2)


def link(rng: Rng, node: Node, sample: Array, source: Input) -> Node:
    """A function of one score: a probability, a count, a rank."""
    name = str(rng.choice(["sigmoid", "softplus", "exp", "tanh", "rank", "isotonic", "none"]))
    if name == "none":
        return node
    if name == "exp":
        return Elementwise(Affine(node, 0.3 * np.eye(1), np.zeros(1)), "exp")
    if name in ("rank", "isotonic"):
        scores = evaluate((node,), {source: sample})[node][:, 0]
        if len(np.unique(np.round(scores, 6))) < 5:
            return node
        rank = gig.SmoothedECDF.fit(scores, knots=int(rng.integers(4, 12)))
        height = rank.u if name == "rank" else np.round(rank.u * 3) / 3  # flat pieces and steep ones
        return PiecewiseLinear(node, rank.x, np.asarray(height))
    return Elementwise(node, name)


def joined(rng: Rng, parts: list[Node]) -> Node:
    """Several scores made into one: a sum, a product, a weighted mean, a net or trees on top."""
    how = rng.random()
    if len(parts) == 1:
        return parts[0]
    if how < 0.3:
        return Sum(tuple(parts))
    if how < 0.45:
        return Product(parts[0], Sum(tuple(parts[1:])) if len(parts) > 2 else parts[1])
    every = Concat(tuple(parts))
    if how < 0.6:
        return affine(rng, every, 1)
    return net(rng, every)


def model(rng: Rng, of: tuple[Column, ...], source: Input) -> Node:
    """A model over rows of columns `of`; any further columns of `source` are not read."""
    sample = np.zeros((60, source.width))
    sample[:, : len(of)] = rows(rng, of, 60)

    def part(depth: int) -> Node:
        draw = rng.random()
        if draw < 0.35:
            node: Node = trees(rng, source, of)
        else:
            node = SMOOTH[int(rng.integers(len(SMOOTH)))](rng, numbers(rng, source, of))
        if depth and rng.random() < 0.5:
            node = joined(rng, [node, *(part(depth - 1) for _ in range(int(rng.integers(1, 3))))])
        return link(rng, node, sample, source) if rng.random() < 0.4 else node

    node = part(2)
    if rng.random() < 0.05:
        node = over_scores(rng, node)
    return link(rng, node, sample, source)


def graph_of(of: tuple[Column, ...], source: Input, node: Node) -> Graph:
    return Graph(of, source, node, node, ("score",))


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--log", type=Path, help="file to write what was found to, and to go on from")
    asked = parser.parse_args()
    last = asked.first + asked.cases
    blocks = {first: min(BLOCK, last - first) for first in range(asked.first, last, BLOCK)}
    total = Verdict()
    if asked.log is not None and asked.log.exists():
        for line in map(json.loads, asked.log.read_text().splitlines()):
            if blocks.get(line["first"]) == line["cases"]:
                del blocks[line["first"]]
                total.add(Verdict.of_line(line))
    with Pool(asked.processes) as pool:
        for (first, cases), verdict in pool.imap_unordered(judge_block, blocks.items()):
            total.add(verdict)
            for law, number, tol, much in verdict.broken:
                print(f"case {number}: {law} at tol {tol:g} by {much:.3g}", flush=True)
            if asked.log is not None:
                with asked.log.open("a") as log:
                    log.write(verdict.as_line(first, cases) + "\n")
    summary(total)


def summary(total: Verdict) -> None:
    print(f"{sum(total.rows.values())} rows in {total.seconds:.0f} s of the processor; skipped {dict(total.skipped)}")
    for tol in TOLERANCES:
        bad: dict[str, Any] = {
            law: sorted(much for what, _, at, much in total.broken if what == law and at == tol)
            for law in ("gap", "error", "tolerance")
        }
        n = max(total.rows[tol], 1)
        told = ", ".join(f"{law} {len(v)} ({len(v) / n:.2%}, worst {max(v, default=0):.3g})" for law, v in bad.items())
        print(f"tol {tol:g}: {n} rows, {total.warned[tol]} cases warned; broken: {told}")


if __name__ == "__main__":
    main()
