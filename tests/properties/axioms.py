"""The axioms, held by random compositions of every kind of node (`compositions`).

By the definition, for a fixed choice of discrete and nominal columns (here none is discrete, categories are nominal):

- linear, reflexive, null, symmetric: on all paths;
- zero for a column that does not move: on all paths, exactly, to the last bit, like the null column;
- additive along a split path: where no column changes at once. One that does, since a value is missing or a category,
  changes in the middle of every path, which is another place on each of its parts.

Numbers are compared up to the sum of the errors that come with them, and rounding. For a long run:

    PYTHONPATH=tests/helpers python tests/properties/axioms.py --cases 10000
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from composition_parts import Rng, columns, graph_of, model, pairs
from compositions import ROUNDING
from numpy.typing import NDArray

import gigrad as gig
from gigrad.graph import (
    Affine,
    Array,
    Column,
    Input,
    IsMissing,
    Lookup,
    Node,
    Product,
    Select,
    Sum,
    TreeEnsemble,
    topological,
)
from gigrad.graph.rewire import rewire

PAIRS = 2

Ints = NDArray[np.int64]


class Credits:
    """Credits (n, p), and what they may be off by, (n,)."""

    def __init__(self, values: Array, error: Array, size: Array) -> None:
        self.values, self.error, self.size = values, error, size

    def __add__(self, other: Credits) -> Credits:
        return Credits(self.values + other.values, self.error + other.error, np.maximum(self.size, other.size))

    def times(self, factor: float) -> Credits:
        return Credits(factor * self.values, abs(factor) * self.error, abs(factor) * self.size)

    def by(self, order: Ints) -> Credits:
        return Credits(self.values[:, order], self.error, self.size)

    def excess(self, other: Credits) -> float:
        """How much farther apart two answers are than their errors and rounding let them be; at most 0 if they are one
        and the same."""
        rounding = ROUNDING * np.maximum(np.maximum(self.size, other.size), 1.0)
        apart = np.abs(self.values - other.values).max(axis=1)
        return float((apart - self.error - other.error - rounding).max())


Credit = Callable[..., Credits]


def credits_of(of: tuple[Column, ...], source: Input, node: Node, starts: Array, ends: Array, tol: float) -> Credits:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gig.AccuracyWarning)  # `error` tells what is missing
        e = gig.explain_pairs(graph_of(of, source, node), starts, ends, discrete=(), tol=tol, n_threads=1)
    size = np.maximum(np.maximum(np.abs(e.predictions), np.abs(e.base_values)), np.abs(e.values).max(axis=1))
    return Credits(e.values, e.error, size)


def permuted(node: Node, source: Input, order: Ints) -> Node:
    """The same model of rows whose column `order[j]` is the old column j."""
    new: dict[Node, Node] = {}
    for below in topological(node):
        if source in below.parents:
            if isinstance(below, Select):
                new[below] = Select(source, tuple(int(order[j]) for j in below.columns))
            elif isinstance(below, Lookup):
                new[below] = replace(below, column=int(order[below.column]))
            elif isinstance(below, TreeEnsemble):
                feature = np.where(below.feature >= 0, order[np.maximum(below.feature, 0)], -1)
                new[below] = replace(below, feature=feature.astype(below.feature.dtype))
            else:
                raise TypeError(f"{type(below).__name__} reads the rows")
    return rewire((node,), new)[node]


def constant(source: Input, value: float) -> Node:
    """A number that does not depend on the rows, missing or not."""
    return Affine(IsMissing(Select(source, (0,))), np.zeros((1, 1)), np.array([value]))


def whole(source: Input, node: Node) -> Node:
    """The same model, not to be taken apart: credits of a plain sum are added up by the engine itself."""
    return Product(node, constant(source, 1.0))


def broken_axioms(number: int, tol: float = 1e-6) -> Iterator[tuple[str, float]]:
    """The axioms that do not hold of the models of that number, and by how much."""
    rng = np.random.default_rng([81, number])
    of = columns(rng)
    spare = Column("spare", missing=bool(rng.random() < 0.5))
    source = Input(len(of) + 1)
    f, g = (model(rng, of, source) for _ in range(2))
    of = (*of, spare)
    starts, ends = pairs(rng, of, PAIRS)

    def credit(node: Node, a: Array = starts, b: Array = ends) -> Credits:
        return credits_of(of, source, node, a, b, tol)

    still = (starts == ends) | (np.isnan(starts) & np.isnan(ends))
    of_f, back = credit(f), credit(f, ends, starts)
    checks = {
        "linear": _linear(rng, source, f, g, credit, of_f),
        "reflexive": of_f.excess(back.times(-1.0)),
        "null": float(np.abs(of_f.values[:, -1]).max()),
        "does not move": float(np.abs(of_f.values[still]).max(initial=0.0)),
        "relabelled": _relabelled(rng, of, source, f, starts, ends, tol, of_f),
        "symmetric": _symmetric(of, source, f, starts, ends, tol),
        "additive": _additive(rng, of, f, starts, ends, credit),
    }
    for axiom, excess in checks.items():
        if not excess <= 0.0:
            yield axiom, excess


def _linear(rng: Rng, source: Input, f: Node, g: Node, credit: Credit, of_f: Credits) -> float:
    a, b = rng.normal(size=2)
    both = Sum((Product(f, constant(source, a)), Product(g, constant(source, b))))
    return credit(whole(source, both)).excess(of_f.times(a) + credit(g).times(b))


def _relabelled(
    rng: Rng, of: tuple[Column, ...], source: Input, f: Node, starts: Array, ends: Array, tol: float, of_f: Credits
) -> float:
    """Columns that change places in the model and in the rows change places in the credits."""
    order = rng.permutation(len(of))
    old = np.argsort(order)  # the column that stands at each place now
    moved = tuple(of[j] for j in old)
    new = credits_of(moved, source, permuted(f, source, order), starts[:, old], ends[:, old], tol)
    return new.excess(of_f.by(old))


def _symmetric(of: tuple[Column, ...], source: Input, f: Node, starts: Array, ends: Array, tol: float) -> float:
    """Two columns of one kind that a model treats alike, and that move alike, earn the same."""
    alike = np.arange(len(of))
    alike[:2] = 1, 0  # the first two are numbers
    missing = of[0].missing and of[1].missing
    of = (replace(of[0], missing=missing), replace(of[1], missing=missing), *of[2:])
    starts, ends = starts.copy(), ends.copy()
    kept = np.flatnonzero(~np.isnan(starts[:, 0]) & ~np.isnan(ends[:, 0])) if not missing else np.arange(len(starts))
    if not len(kept):
        return 0.0
    starts, ends = starts[kept], ends[kept]
    starts[:, 1], ends[:, 1] = starts[:, 0], ends[:, 0]
    node = Product(f, permuted(f, source, alike))
    found = credits_of(of, source, node, starts, ends, tol)
    return found.excess(found.by(alike))


def _additive(rng: Rng, of: tuple[Column, ...], f: Node, starts: Array, ends: Array, credit: Credit) -> float:
    starts, ends = starts.copy(), ends.copy()
    at_once = np.isnan(starts) | np.isnan(ends) | np.array([c.kind == "category" for c in of])
    ends[at_once] = starts[at_once]
    part = rng.uniform(0.1, 0.9)
    middle = np.where(starts == ends, starts, (1.0 - part) * starts + part * ends)
    return credit(f, starts, ends).excess(credit(f, starts, middle) + credit(f, middle, ends))


def main() -> None:
    parser = argparse.ArgumentParser(description="Hold random compositions to the axioms.")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    count = 0
    for number in range(asked.first, asked.first + asked.cases):
        for axiom, excess in broken_axioms(number):
            count += 1
            print(f"case {number}: {axiom} by {excess:.3g}", flush=True)
    print(f"{asked.cases} cases; {count} broken")


if __name__ == "__main__":
    main()
