"""The normal quantile without SciPy: Python's own, SciPy's, and the distribution function say the same."""

from __future__ import annotations

import subprocess
import sys
from math import erfc, sqrt
from statistics import NormalDist

import numpy as np
import pytest

from gigrad.graph.normal_quantile import normal_quantile

RANKS = np.unique(np.concatenate([
    np.linspace(1e-7, 1 - 1e-7, 4001), np.geomspace(1e-10, 0.5, 500), 1 - np.geomspace(1e-10, 0.5, 500),
    0.5 + 0.425 * np.array([-1, 1]), np.nextafter(0.5 + 0.425 * np.array([-1, 1]), [-1, 2]), [0.5],
]))  # fmt: skip


def test_it_is_pythons() -> None:
    want = [NormalDist().inv_cdf(u) for u in RANKS]
    np.testing.assert_allclose(normal_quantile(RANKS), want, rtol=4e-15, atol=1e-16)


def test_it_is_scipys() -> None:
    special = pytest.importorskip("scipy.special")
    np.testing.assert_allclose(normal_quantile(RANKS), special.ndtri(RANKS), rtol=4e-15, atol=1e-15)


def test_it_inverts_the_distribution_function() -> None:
    """To rounding: one of z is 1 + z^2 times as large, at most, in the probability of its tail."""
    lower = RANKS[RANKS <= 0.5]
    z = normal_quantile(lower)
    back = np.array([0.5 * erfc(-x / sqrt(2.0)) for x in z])
    assert np.all(np.abs(back / lower - 1.0) <= 4.0 * np.spacing(1.0) * (1.0 + z * z))


def test_missing_stays_missing() -> None:
    got = normal_quantile(np.array([np.nan, 0.5]))
    assert np.isnan(got[0])
    assert got[1] == 0.0


def test_a_graph_needs_no_scipy() -> None:
    """The core needs NumPy and narwhals alone: a saved graph with normal scores asked for SciPy when it predicted."""
    code = (
        "import sys; sys.modules['scipy'] = None\n"
        "import numpy as np\n"
        "from gigrad.graph.functions import FUNCTIONS\n"
        "f = FUNCTIONS['normal_score']\n"
        "assert abs(f.value(np.array([0.975]), 0.0)[0] - 1.959963984540054) < 1e-15\n"
        "assert f.slope(np.array([0.5]), 0.0)[0] == np.sqrt(2 * np.pi)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
