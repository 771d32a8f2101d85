"""Random compositions of every kind of node: the axioms, and credits no farther off than `error` says.

A few of the cases that `python tests/properties/compositions.py` and `python tests/properties/axioms.py` draw by the
thousand.
"""

from __future__ import annotations

import numpy as np
import pytest
from axioms import broken_axioms
from compositions import composition, explained, judge
from unwritten import with_nan

from gigrad._explain.scorer import Scorer

CASES = 300
AXIOM_CASES = 120
UNWRITTEN_CASES = 60

FOUND = (
    424, 952, 2567, 2674, 4568, 7611, 16275, 16567, 37147, 55172, 103322, 304982, 325455, 343320, 345930, 380102,
    900071, 900194, 2001398, 2004107, 2019755, 2020697,
)  # fmt: skip
"""Cases whose error was too small once: a kink in the slope of a slope, columns that move a line to and fro, a sum of
which more was missing than the estimate said; one with a dip that the definition itself overlooked; a knot passed and
passed back on a long segment; a score that rests on a threshold; derivatives of a head that few nodes miss, by as much
as cancels between columns or between lines, in the core and in Python; trees over a score above a layer that is
followed row by row; a gap that is smaller than what a column lacks. A sum of trees that was taken for a straight score
below other trees: its jumps were lost, without a gap where they cancel. A batch of segments of which none was left. A
tanh over one line, without a head, whose columns move it to and fro; curves below an ECDF, and lines that meet in one
piece of a path, with columns like that. A kernel with a root of the distance, whose coefficients fall more slowly than
the first of them."""


@pytest.mark.parametrize("first", range(0, CASES, 25))
def test_credits_of_random_compositions_keep_their_word(first: int) -> None:
    for number in range(first, first + 25):
        assert not judge(number).broken


@pytest.mark.parametrize("number", FOUND)
def test_errors_that_were_too_small(number: int) -> None:
    assert not judge(number).broken


@pytest.mark.parametrize("first", range(0, AXIOM_CASES, 20))
def test_axioms_of_random_compositions(first: int) -> None:
    """See `axioms` for which of them hold on which paths."""
    for number in range(first, first + 20):
        assert not list(broken_axioms(number))


@pytest.mark.parametrize("first", range(0, UNWRITTEN_CASES, 20))
def test_credits_do_not_depend_on_what_memory_held(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(first, first + 20):
        case = composition(number)
        scorer = Scorer.of(case.graph, None, None)
        want, _ = explained(case, scorer, 1e-6)
        with monkeypatch.context() as patch:
            with_nan(patch)
            got, _ = explained(case, scorer, 1e-6)
        np.testing.assert_array_equal(got.values, want.values, err_msg=f"case {number}")
        np.testing.assert_array_equal(got.error, want.error, err_msg=f"case {number}")
