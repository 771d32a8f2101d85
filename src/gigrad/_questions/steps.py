"""The steps from one score to another, taken in every order: the effect of each, and its split over the variables.

A score has a state: which rows, model and transform it uses (0 before, 1 after). A step changes one of them. The effect
of a step depends on what was changed before it, so every order is computed, and the mean over all orders is the Shapley
value of the steps; the steps of each order add up to the difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from ..graph import Array

DATA, MODEL, TRANSFORM, CUTOFF = "data", "model", "transform", "cutoff"
AXES = (DATA, MODEL, TRANSFORM)

State = tuple[int, int, int]
Order = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Step:
    """The effect of one step, taken from one state, on the score of every customer.

    Attributes
    ----------
    values : (n, p)
    level : (n,)
        The part of the effect that belongs to no variable.
    total : (n,)
        The whole effect, by the models' own scores.
    error : (n,)
    """

    values: Array
    level: Array
    total: Array
    error: Array


@dataclass(frozen=True, eq=False)
class Scored:
    """The scores and credits in all states; `which[model, transform]` is the position of a score among the k outputs.

    Attributes
    ----------
    own : two of (n, k)
        The scores of the rows before and after.
    pairs, pairs_error : (n, p, k), (n, k)
        Credits from the rows before to the rows after.
    against, against_error : two of (n, p, k), two of (n, k), or None
        Credits of the rows before and after against the reference.
    base : (k,)
        The mean scores of the reference.
    """

    which: Mapping[tuple[int, int], int]
    own: tuple[Array, Array]
    pairs: Array
    pairs_error: Array
    against: tuple[Array, Array] | None
    against_error: tuple[Array, Array] | None
    base: Array | None

    def step(self, axis: str, state: State) -> Step:
        """The step that changes `axis` from before to after, in a state in which it is still before."""
        data, model, transform = state
        if axis == DATA:
            k = self.which[model, transform]
            total = self.own[1][:, k] - self.own[0][:, k]
            return Step(self.pairs[:, :, k], np.zeros(len(total)), total, self.pairs_error[:, k])
        old = self.which[model, transform]
        new = self.which[(1, transform) if axis == MODEL else (model, 1)]
        total = self.own[data][:, new] - self.own[data][:, old]
        if self.against is None or self.against_error is None or self.base is None:
            return Step(np.zeros(self.pairs.shape[:2]), total, total, np.zeros(len(total)))
        credit, error = self.against[data], self.against_error[data]
        level = np.full(len(total), self.base[new] - self.base[old])
        return Step(credit[:, :, new] - credit[:, :, old], level, total, error[:, new] + error[:, old])


def constant_step(size: float, shape: tuple[int, ...]) -> Step:
    """A step with the same effect on all customers that belongs to no variable, such as a new cutoff's."""
    moved = np.full(shape[0], size)
    return Step(np.zeros(shape), moved, moved, np.zeros(shape[0]))


def walk(scored: Scored, order: Order) -> dict[str, Step]:
    """The steps taken in one order, by name."""
    state, out = [0, 0, 0], {}
    for axis in order:
        out[axis] = scored.step(axis, (state[0], state[1], state[2]))
        state[AXES.index(axis)] = 1
    return out


def orders_of(axes: Sequence[str]) -> list[Order]:
    """Every order of some steps."""
    return list(permutations(axes))


def mean(steps: Sequence[Step]) -> Step:
    """The mean of one step over several orders."""
    parts = ([getattr(s, name) for s in steps] for name in ("values", "level", "total", "error"))
    return Step(*(np.mean(part, axis=0) for part in parts))
