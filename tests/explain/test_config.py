"""`gig.config`: what holds for the whole process."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from plain_forest import random_forest, random_rows
from unchecked import unchecked

import gigrad as gig
from gigrad import kernels


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    used = gig.config.simd
    yield
    gig.config.simd = used


def test_the_fastest_walk_is_used_unless_another_is_chosen() -> None:
    assert gig.config.simd == gig.config.simd_choices[0]
    assert gig.config.simd_choices[-2:] == ("lanes", "portable")


def test_what_is_set_is_what_runs_and_changes_nothing_but_speed() -> None:
    rng = np.random.default_rng(3)
    plain = random_forest(rng, n_columns=5, n_trees=10, max_depth=4)
    starts, ends = random_rows(rng, 20, plain), random_rows(rng, 20, plain)
    found = []
    for name in gig.config.simd_choices:
        gig.config.simd = unchecked(name)
        assert kernels.get_simd() == gig.config.simd == name
        assert repr(gig.config) == f"Config(simd={name!r}, progress=None)"
        found.append(kernels.credits(plain.forest, starts, np.full(20, 0.05), ends))
    for credit in found:
        np.testing.assert_allclose(credit, found[-1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["sse9", "", None, 512])
def test_a_walk_that_cannot_run_is_refused_and_the_old_one_stays(name: object) -> None:
    used = gig.config.simd
    with pytest.raises(gig.InputError, match=r"config.simd must be one of .*portable.*; it is"):
        gig.config.simd = unchecked(name)
    assert gig.config.simd == used


def test_a_misspelt_setting_is_an_error() -> None:
    with pytest.raises(AttributeError):
        unchecked(gig.config).smid = "portable"
