"""Thresholds and places on raw columns: sides of splits follow from the former, times of crossings from the latter.

A step that compares with a stored number has its cut at that number or just before it; behind other steps, the cut is
where they map a raw number onto the stored one. The place is mapped back like the threshold, by bisection over the
ordered floats, in the transformers' own arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from ...graph import Array
from ...graph.places import MIDPOINT_DIGITS, between, of_pair
from .pieces import LARGEST, Changes, Function, Test, changes, stretch
from .steps import NO_CUTS, Single, Step
from .table import numbers

Bools = NDArray[np.bool_]
Which = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Edges:
    """Thresholds on a raw column, (n,) each, with the names of the corresponding arrays of a TreeEnsemble."""

    threshold: Array
    equal_low: Array
    equal_high: Array
    single: Bools
    place: Array

    @classmethod
    def at(cls, threshold: Array) -> Edges:
        """Edges with known thresholds only: the place is taken from the threshold and the next float."""
        place = of_pair(threshold)
        return cls(threshold, place, place, np.zeros(len(place), bool), place)

    def __len__(self) -> int:
        return len(self.threshold)

    def __getitem__(self, which: Which | Bools | slice) -> Edges:
        return Edges(*(getattr(self, f.name)[which] for f in fields(self)))

    def where(self, chosen: Bools, other: Edges) -> Edges:
        """These where `chosen`, the other's elsewhere; the thresholds are the same."""
        return Edges(*(np.where(chosen, getattr(self, f.name), getattr(other, f.name)) for f in fields(self)))

    @classmethod
    def joined(cls, parts: Sequence[Edges]) -> Edges:
        return cls(*(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(cls)))


FAR = 1e300  # an interval that goes beyond it counts as unbounded
NO_EDGES = Edges.at(np.zeros(0))
ONLY_MISSING = Edges(*(np.array([v]) for v in (LARGEST, LARGEST, LARGEST, False, LARGEST)))
"""A threshold above every number, so that only missing values are on the other side."""


@dataclass(frozen=True, eq=False)
class Stands:
    """The raw numbers between which a chain of steps is monotone, and the places of these cuts.

    `ends` are the raw numbers at which unbounded flat pieces begin.
    """

    cuts: Edges
    ends: Array

    def known(self, thresholds: Array) -> Edges:
        """Edges at thresholds, with the place of the cut that each equals; else between two floats."""
        cuts = self.cuts.threshold
        if not len(cuts):
            return Edges.at(thresholds)
        at = np.minimum(np.searchsorted(cuts, thresholds), len(cuts) - 1)
        return self.cuts[at].where(cuts[at] == thresholds, Edges.at(thresholds))


def cuts(steps: Sequence[Step]) -> Array:
    """The raw numbers between which a chain of steps is monotone."""
    return stands(steps).cuts.threshold


def stands(steps: Sequence[Step]) -> Stands:
    """The cuts of a chain of steps on the raw column, with their places; the first step decides for a shared cut."""
    found, ends = NO_EDGES, NO_CUTS
    for k, step in enumerate(steps):
        before, known = numbers(steps[:k]), found.threshold
        far = step.ends()
        if len(far):
            ends = np.append(ends, far if k == 0 else of_pair(changes(before, known, _at_most(far), len(far)).edges))
        own, places = step.cuts(), step.places()
        if not len(own):
            continue
        if k == 0:
            found = Edges(own, places, places, np.zeros(len(own), bool), places)
            continue
        single = any(isinstance(s, Single) for s in steps[:k])
        if isinstance(steps[k - 1], Single):
            places = steps[k - 1](places)
        moved = changes(before, known, _at_most(own), len(own))
        both = Edges.joined([found, _nearest(moved, *_pulled_back(before, known, places, single))])
        found = both[np.unique(both.threshold, return_index=True)[1]]
    return Stands(found, np.sort(ends))


def pulled_back(
    steps: Sequence[Step], cuts_of: Stands, split: Edges, which: Which, thresholds: Array, flat: bool
) -> Edges:
    """Edges on the raw column for splits on a transformed one, with the places that the stored numbers imply.

    Parameters
    ----------
    split : the splits, in terms of the transformed column
    which, thresholds : (n,)
        The split that each raw threshold belongs to, and the threshold.
    flat : bool
        Whether the steps jump at every one of them, across the stored number; the place is then that of the jump. Else
        it lies among the raw numbers that the steps map onto the stored one, if there are any.
    """
    plain = cuts_of.known(thresholds)
    if flat or not len(thresholds):
        return plain

    def stored(z: Array, of: Which) -> Bools:
        return (z >= split.equal_low[of]) & (z <= split.equal_high[of])

    low, high, found = stretch(numbers(steps), cuts_of.cuts.threshold, stored, which, thresholds)
    single = split.single[which]
    place = _from_ends(low, high, between(low, high, single, MIDPOINT_DIGITS), cuts_of.ends)
    # A decimal chosen near the interval remains the place of all numbers that the steps map onto the stored one.
    low, high = np.minimum(low, place), np.maximum(high, place)
    return Edges(thresholds, low, high, single, place).where(found, plain)


def _from_ends(low: Array, high: Array, place: Array, ends: Array) -> Array:
    """The places, replaced on unbounded flat pieces by the beginning of the piece, if a step gives it.

    In the precision of the comparison the piece begins earlier: numbers just below 1 are 1 in float32.
    """
    if not len(ends):
        return place
    first = ends[np.minimum(np.searchsorted(ends, low), len(ends) - 1)]
    last = ends[np.maximum(np.searchsorted(ends, high, side="right") - 1, 0)]
    place = np.where((high > FAR) & (first >= low) & (first <= high), first, place)
    return np.where((low < -FAR) & (last >= low) & (last <= high), last, place)


def _at_most(edges: Array) -> Test:
    """A test for each edge: whether a value is at most the edge."""
    return lambda z, which: z <= edges[which]


def _pulled_back(before: Function, cuts: Array, places: Array, single: bool) -> tuple[Changes, Edges]:
    """The raw numbers that `before` maps onto each place, at each raw threshold of `<= place`."""
    flips = changes(before, cuts, _at_most(places), len(places))
    low, high, found = stretch(before, cuts, lambda z, which: z == places[which], flips.owners, flips.edges)
    short = np.full(len(low), single)
    pulled = Edges(flips.edges, low, high, short, between(low, high, short))
    return flips, pulled.where(found, Edges.at(flips.edges))


def _nearest(moved: Changes, flips: Changes, pulled: Edges) -> Edges:
    """Edges at the moved cuts, each with the nearest place that its own stored number was mapped back to."""
    chosen = np.arange(len(moved.edges))
    for i in range(len(moved.first)):
        begin, end = flips.offsets[i : i + 2]
        mine = slice(moved.offsets[i], moved.offsets[i + 1])
        if end > begin:
            apart = np.abs(moved.of(i)[:, None] - flips.of(i)[None, :])
            chosen[mine] = len(moved.edges) + begin + np.argmin(apart, axis=1)
    both = Edges.joined([Edges.at(moved.edges), pulled])[chosen]
    return replace(both, threshold=moved.edges)
