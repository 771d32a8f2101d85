"""The path from the reference to a row over time: the score, its jumps, and the credit accumulated so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..graph.node import Array

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Paths:
    """The paths of some of an explanation's rows, averaged over the references.

    Attributes
    ----------
    rows : (r,) int64
        Which rows of the explanation these are.
    times : (t,)
        From 0, the reference, to 1, the row itself. A time may come twice: just before and just after a jump.
    score : (r, t) or (r, t, k)
        The score at these times.
    credit : (r, t, p) or (r, t, p, k)
        The credit that each feature has accumulated up to these times; at time 1 it is the feature's credit.
    jump_row : (j,) int64
        The largest jumps: which path, by position in `rows`, ...
    jump_time : (j,)
        ... when, ...
    jump_feature : (j,) int64
        ... which feature passed a threshold (-1 where it has been sliced away), ...
    jump_size : (j,) or (j, k)
        ... and by how much the score changed on its account.
    references : int
        How many references the mean was taken over.
    of : int
        How many there were; more than `references` where they were sampled.
    """

    rows: Ints
    times: Array
    score: Array
    credit: Array
    jump_row: Ints
    jump_time: Array
    jump_feature: Ints
    jump_size: Array
    references: int = 1
    of: int = 1

    def __post_init__(self) -> None:
        r, t = len(self.rows), len(self.times)
        if self.score.shape[:2] != (r, t) or self.credit.shape[:2] != (r, t):
            raise InputError(
                f"Paths of {r} rows at {t} times need a score and a credit of shape ({r}, {t}, ...); they have "
                f"{self.score.shape} and {self.credit.shape}."
            )
        j = len(self.jump_time)
        if not len(self.jump_row) == len(self.jump_feature) == len(self.jump_size) == j:
            raise InputError("Every jump of a path needs its row, time, feature and size.")

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def said(self) -> str:
        """The number of references that the paths are averaged over, in words."""
        if self.of == 1:
            return "from its own start"
        if self.references == self.of:
            return f"mean over {self.of:,} references"
        return f"mean over a sample of {self.references:,} of {self.of:,} references"

    def take_rows(self, index: Ints) -> Paths | None:
        """The paths of the rows `index` of the explanation, renumbered; None where none of them has a path."""
        position = {int(row): i for i, row in enumerate(self.rows)}
        pairs = [(new, position[old]) for new, old in enumerate(index.tolist()) if old in position]
        if not pairs:
            return None
        kept = np.array([old for _, old in pairs])
        jumps = [np.flatnonzero(self.jump_row == old) for old in kept]
        order = np.concatenate(jumps)
        return replace(
            self,
            rows=np.array([new for new, _ in pairs], np.int64),
            score=self.score[kept],
            credit=self.credit[kept],
            jump_row=np.repeat(np.arange(len(kept)), [len(j) for j in jumps]),
            jump_time=self.jump_time[order],
            jump_feature=self.jump_feature[order],
            jump_size=self.jump_size[order],
        )

    def take_outputs(self, index: int | Ints) -> Paths:
        """The paths for some of several outputs; a single number drops the outputs' axis."""
        return replace(
            self, score=self.score[..., index], credit=self.credit[..., index], jump_size=self.jump_size[..., index]
        )

    def merge_features(self, members: Sequence[Ints]) -> Paths:
        """The paths for new features, each the sum of some old ones; jumps of features in none get feature -1."""
        new = np.full(self.credit.shape[2], -1, np.int64)
        for position, old in enumerate(members):
            new[old] = position
        known = self.jump_feature >= 0
        feature = np.where(known, new[np.where(known, self.jump_feature, 0)], -1)
        credit = np.stack([self.credit[:, :, old].sum(axis=2) for old in members], axis=2)
        return replace(self, credit=credit, jump_feature=feature)
