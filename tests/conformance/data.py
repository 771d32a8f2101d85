"""Small made-up tables for the conformance table: many ties, zeros, missing values, categories. Built once each."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

N = 240


@cache
def numbers() -> Any:
    """(N, 4) numbers on a coarse grid, so that thresholds are met exactly; the last column is often zero."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(N, 4)).round(1)
    X[:, 3] = np.where(rng.random(N) < 0.5, 0.0, X[:, 3])
    return X


@cache
def with_missing() -> Any:
    """The same with a tenth of the values missing."""
    X = numbers().copy()
    X[np.random.default_rng(8).random(X.shape) < 0.1] = np.nan
    return X


@cache
def target() -> Any:
    """A number to predict, with an interaction and something about zero."""
    X = numbers()
    return X[:, 0] * X[:, 1] + (X[:, 3] == 0) + np.random.default_rng(9).normal(size=N) * 0.1


def binary() -> Any:
    return (target() > 0.4).astype(int)


def classes() -> Any:
    """Three classes, by name."""
    return np.array(["high", "low", "middle"])[np.digitize(target(), [0.0, 0.8])]


def class_codes() -> Any:
    return np.digitize(target(), [0.0, 0.8])


def positive() -> Any:
    """A target above zero, for losses with a logarithm."""
    return np.abs(target()) + 0.1


def two_targets() -> Any:
    return np.stack([target(), numbers()[:, 2] - target()], axis=1)


@cache
def coded() -> Any:
    """(N, 3): a column of 40 category codes, some missing, and two of numbers."""
    rng = np.random.default_rng(10)
    X = np.column_stack([rng.integers(0, 40, N), numbers()[:, :2]]).astype(float)
    X[:6, 0] = np.nan
    return X


def coded_target() -> Any:
    return np.where(coded()[:, 0] % 3 == 0, 1, 0) ^ binary()


@cache
def frame() -> Any:
    """A pandas table: categories of strings and of integers, a boolean, integers, and numbers, some missing."""
    import pandas as pd

    rng = np.random.default_rng(11)
    purpose = rng.choice(["car", "house", "boat", "school", "other"], N).astype(object)
    purpose[3:9] = None
    return pd.DataFrame(
        {
            "amount": with_missing()[:, 0],
            "purpose": pd.Categorical(purpose),
            "owner": rng.random(N) > 0.5,
            "grade": pd.Categorical(rng.choice([10, 20, 35], N)),
            "children": rng.integers(0, 4, N),
        }
    )


def frame_target() -> Any:
    table = frame()
    return ((table["purpose"] == "car").to_numpy() ^ (table["grade"] == 20).to_numpy() ^ (binary() == 1)).astype(int)


def named() -> Any:
    """The numbers as a pandas table."""
    import pandas as pd

    return pd.DataFrame(numbers(), columns=["age", "income", "debt", "arrears"])


def classes_of_two() -> Any:
    """Two classes, by name."""
    return np.array(["bad", "good"])[binary()]
