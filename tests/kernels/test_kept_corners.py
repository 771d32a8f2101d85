"""Large corners are sampled alike whether their leaves were kept by the walk that met them or are walked to again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flag_trees import flag_trees, many_flags
from plain_forest import every_simd, random_forest, random_rows

from gigrad import kernels
from gigrad.kernels import Stage

FORESTS: dict[str, dict[str, Any]] = {
    "flags": {"grid": 1, "categories": False},
    "categories and numbers": {"grid": 2},
    "places": {"grid": 2, "places": True},
    "several outputs": {"grid": 2, "outputs": 3},
    "deep": {"grid": 2, "max_depth": 15, "n_trees": 8, "stop": 0.3},
}
SOME = 24  # starts


def made(name: str, seed: int) -> tuple[Any, list[Stage], np.ndarray, np.ndarray]:
    """Five of six columns have nothing between their values: they cross at one half, some others then too."""
    rng = np.random.default_rng(seed)
    plain = random_forest(rng, **{"n_columns": 30, "n_trees": 40, "max_depth": 5, **FORESTS[name]})
    place, feature = plain.arrays["place"], plain.arrays["feature"]
    plain.arrays["place"] = [np.nan if j % 6 else at for at, j in zip(place, feature, strict=True)]
    link = [Stage("sigmoid")]
    if FORESTS[name].get("outputs", 1) > 1:
        link = [Stage("softmax"), Stage("affine", rng.normal(size=(1, 3)), np.zeros(1))]
    return plain.forest, link, random_rows(rng, SOME, plain, 2), random_rows(rng, 2, plain, 2)


def drawn(found: kernels.Linked, forest: Any, link: list[Stage], starts: np.ndarray, ends: np.ndarray) -> list[bytes]:
    large = found.large
    ends = ends[np.arange(max(len(starts), len(ends))) % len(ends)]
    n = len(large.end)
    row = np.unique(large.end, return_inverse=True)[1]
    corners = kernels.SampledCorners(
        row, large.start, large.end, large.time, np.ones(n), np.full(n, 3), np.arange(n, dtype=np.uint64),
        found=found.found, number=np.arange(n),
    )  # fmt: skip
    return [x.tobytes() for x in kernels.sample_corners(forest, link, starts, ends, corners, row.max() + 1, 2)]


def of_pairs(forest: Any, link: list[Stage], starts: np.ndarray, ends: np.ndarray) -> kernels.Linked:
    return kernels.linked_credits_pairs(forest, link, starts, ends[np.arange(len(starts)) % len(ends)], target=30.0)


def of_population(forest: Any, link: list[Stage], starts: np.ndarray, ends: np.ndarray) -> kernels.Linked:
    return kernels.linked_credits(forest, link, starts, np.full(len(starts), 1 / len(starts)), ends, target=1.0)


@pytest.mark.parametrize("name", FORESTS)
@pytest.mark.parametrize("walk", [of_population, of_pairs])
def test_samples_are_the_same_bits_with_kept_leaves_and_without(name: str, walk: Any) -> None:
    met = 0
    forest, link, starts, ends = made(name, 0)
    for _ in every_simd():
        found = walk(forest, link, starts, ends)
        met += len(found.large.end)
        kept = drawn(found, forest, link, starts, ends)
        found.found.forget()
        assert drawn(found, forest, link, starts, ends) == kept
    assert met > 3


def test_without_what_was_found_samples_differ_by_rounding() -> None:
    trees = many_flags(24)
    starts, end = (np.random.default_rng(0).random((30, 24)) < 0.1).astype(float), np.ones((1, 24))
    link = [Stage("sigmoid")]
    found = of_population(trees.forest, link, starts, end)
    n = len(found.large.end)
    assert n > 10
    corners = kernels.SampledCorners(
        np.zeros(n, np.int64), found.large.start, found.large.end, found.large.time, np.ones(n), np.full(n, 3),
        np.arange(n, dtype=np.uint64),
    )  # fmt: skip
    one = kernels.sample_corners(trees.forest, link, starts, end, corners, 1)
    with_found = corners._replace(found=found.found, number=np.arange(n))
    other = kernels.sample_corners(trees.forest, link, starts, end, with_found, 1)
    np.testing.assert_allclose(one[0], other[0], rtol=0, atol=1e-12)


def test_corners_that_were_not_found_are_refused() -> None:
    trees, other = many_flags(24), flag_trees(24, 10, 3, seed=0, outputs=2)
    starts, end = np.zeros((30, 24)), np.ones((1, 24))
    link = [Stage("sigmoid")]
    found = of_population(trees.forest, link, starts, end)
    zero = np.zeros(1, np.int64)
    corners = kernels.SampledCorners(
        zero, zero, zero, np.full(1, 0.5), np.ones(1), np.full(1, 3), np.ones(1, np.uint64), found=found.found,
        number=np.array([len(found.large.end)]),
    )  # fmt: skip
    with pytest.raises(ValueError, match="none of those that were found"):
        kernels.sample_corners(trees.forest, link, starts, end, corners, 1)
    with pytest.raises(ValueError, match="a number for each corner"):
        kernels.sample_corners(trees.forest, link, starts, end, corners._replace(number=np.zeros(2, np.int64)), 1)
    with pytest.raises(ValueError, match="none of those that were found"):
        kernels.sample_corners(other.forest, [Stage("softmax")], starts, end, corners._replace(number=zero), 1)
