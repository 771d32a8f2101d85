"""Errors of sampled corners: they cover the truth as often as they say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from flag_trees import many_flags
from scipy import stats

from gigrad import kernels
from gigrad.engine import limits, sampling
from gigrad.engine.closed_form.links import quotas
from gigrad.kernels import Stage

SIGMOID = [Stage("sigmoid")]


def test_quantiles_of_students_t() -> None:
    freedom = np.array([2.0, 2.7, 4.0, 7.5, 30.0, 500.0])
    for level in (1e-3, 1e-5, 1e-7):
        np.testing.assert_allclose(sampling.student(level, freedom), stats.t.isf(level / 2, freedom), rtol=5e-4)


@dataclass(frozen=True, eq=False)
class Case:
    """One end against several starts, under several seeds, which count as rows."""

    forest: Any
    starts: np.ndarray
    weights: np.ndarray
    rows: int
    hashes: np.ndarray
    target: float

    @classmethod
    def made(cls, rng: np.random.Generator, rows: int) -> Case:
        k, n = int(rng.integers(16, 20)), int(rng.choice([1, 2, 3, 5, 12, 30]))
        trees = many_flags(k, seed=int(rng.integers(2**31)), size=float(rng.choice([0.1, 0.5, 2.0])))
        starts = (rng.random((n, k)) < 0.2).astype(float)
        hashes = rng.integers(2**63, size=rows * n).astype(np.uint64)
        target = float(rng.choice([1e-3, 1e-2, 3e-2, 1e-1]))
        return cls(trees.forest, starts, rng.dirichlet(np.ones(n)), rows, hashes, target)

    def draw(self, which: np.ndarray, count: np.ndarray, stage: int) -> sampling.Sums:
        row, start = np.divmod(which, len(self.starts))
        half, seeds = np.full(len(which), 0.5), self.hashes[which] + np.uint64(stage)
        corners = kernels.SampledCorners(row, start, 0 * which, half, self.weights[start], count, seeds)
        if stage == 0:
            known = np.zeros((self.rows, 1, 1))
            allowed, scale = quotas(row, self.weights[start], known, False, self.target)
            corners = corners._replace(allowed=allowed, scale=scale)
        end = np.ones((1, self.starts.shape[1]))
        return sampling.Sums(*kernels.sample_corners(self.forest, SIGMOID, self.starts, end, corners, self.rows, 1))

    def missed(self) -> tuple[int, int]:
        """In how many rows orders were drawn, and in how many of all a credit is farther off than the row's error."""
        columns = self.starts.shape[1]
        end, row = np.ones((1, columns)), np.repeat(np.arange(self.rows), len(self.starts))
        exact = kernels.linked_credits(self.forest, SIGMOID, self.starts, self.weights, end, target=0.0).values[0]
        weight, known = np.tile(self.weights, self.rows), np.zeros((self.rows, columns, 1))
        cost, whole = np.full(len(row), 1e4), np.full(len(row), np.inf)
        corners = sampling.Corners(row, weight, cost, whole, least=limits.LINK_PILOT_GROUPS)
        found, error = sampling.estimate(self.draw, corners, known, self.target, 1e-3)
        off = np.abs(found - exact).max(axis=1) > error + 1e-13
        return int((error > 0).any(axis=1).sum()), int(off.any(axis=1).sum())


def coverage(cases: int, seed: int) -> int:
    """How many rows are farther off than their error, until so many were sampled, for corners whose truth is known.

    Rows whose corners were all enumerated, about half of them, do not count as cases: they have nothing to cover.
    """
    rng, drawn, missed = np.random.default_rng(seed), 0, 0
    while drawn < cases:
        more = Case.made(rng, 50).missed()
        drawn, missed = drawn + more[0], missed + more[1]
    return missed


def test_error_covers_the_truth() -> None:
    """Some rows and seeds; `PYTHONPATH=tests/helpers python tests/kernels/test_sampled_errors.py 20000` does more."""
    cases = 500
    assert stats.binom.sf(coverage(cases, 0) - 1, cases, 1e-3) > 1e-4


if __name__ == "__main__":
    import sys

    cases = int(sys.argv[1])
    missed = coverage(cases, 1)
    chance = stats.binom.sf(missed - 1, cases, 1e-3)
    print(f"{missed} of about {cases} sampled rows were farther off than their error: p = {chance:.2g}")
