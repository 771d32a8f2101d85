"""The statistics (CTRs) of a CatBoost model: the numbers that replace labels, or combinations of values.

A table is indexed by hashes alone. The hash of a combination is `sum of value * M^(k - i + 2)` modulo 2^64 over its k
elements: labels by their own hashes (as signed 32-bit numbers), tests (`x > border`, "is this label") as 0 or 1. The
values that a bucket represents are found by trying those that occur. If a column occurs in combinations only, its
labels are derived from the buckets: given all other elements, its hash is the remainder, and must have 32 bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import CorruptModelError, UnsupportedModelError

Hashes = dict[int, tuple[int, ...]]
"""For every category, by its index among the categories, the hashes of the labels that the model stores."""
Words = NDArray[np.uint64]
Ints = NDArray[np.int64]

_SIZE = 1 << 64
_MIX = 0x4906BA494954CB65  # CatBoost's multiplier of hashes; odd, so that mixing can be undone
_UNMIX = pow(_MIX * _MIX, -1, _SIZE)
_EMPTY = _SIZE - 1  # marks an empty slot of a hash map
_COUNTERS = ("Counter", "FeatureFreq")
_MEANS = ("BinarizedTargetMeanValue", "FloatTargetMeanValue")

_FRONT = 1 << 21  # combinations of values that are held at once
_MOST = 1 << 31  # tries for one table: some minutes


def known_hashes(dump: dict[str, Any]) -> Hashes:
    """For every category, the hashes of the labels that a model stores."""
    info = dump["features_info"]
    found: dict[int, dict[int, None]] = {}
    for feature in info.get("categorical_features", ()):
        values = found.setdefault(feature["feature_index"], {})
        values.update(dict.fromkeys(v & 0xFFFFFFFF for v in feature.get("values", ())))
    tables: dict[str, dict[str, Any]] = {}
    for ctr in info.get("ctrs", ()):
        if (category := only_category(ctr)) is not None:
            found.setdefault(category, {}).update(dict.fromkeys(u & 0xFFFFFFFF for u in _buckets(dump, ctr)))
        else:
            tables.setdefault(ctr["identifier"], ctr)
            for e in ctr["elements"]:
                if e["combination_element"] == "cat_feature_exact_value":
                    found.setdefault(e["cat_feature_index"], {})[e["value"] & 0xFFFFFFFF] = None
    _learn_from_combinations(dump, list(tables.values()), found)
    return {feature: tuple(values) for feature, values in found.items()}


def only_category(ctr: dict[str, Any]) -> int | None:
    """The one category a statistic is about; None for a combination."""
    elements = ctr["elements"]
    if len(elements) != 1 or elements[0]["combination_element"] != "cat_feature_value":
        return None
    return int(elements[0]["cat_feature_index"])


def label_values(dump: dict[str, Any], ctr: dict[str, Any]) -> tuple[dict[int, np.float32], np.float32]:
    """The statistic of every label, by its hash, and that of an unknown label."""
    values, unknown = _values(dump, ctr)
    return {u & 0xFFFFFFFF: value for u, value in values.items()}, unknown


@dataclass(frozen=True, eq=False)
class Combinations:
    """The combinations of values that a table of statistics holds.

    Attributes
    ----------
    codes : (n, elements)
        A label by its code, its index in the known hashes; a test by 0 or 1.
    bucket : (n,)
        The table's bucket for each.
    count : (n,)
        The number of training rows in the bucket.
    """

    codes: Ints
    bucket: Ints
    count: Ints

    @classmethod
    def of(cls, dump: dict[str, Any], ctr: dict[str, Any], hashes: Hashes) -> Combinations:
        """The combinations of the table that a statistic uses."""
        buckets = _buckets(dump, ctr)
        bucket, codes = _decoded(ctr, np.array(list(buckets), np.uint64), hashes)
        means = ctr["ctr_type"] in _MEANS
        counts = np.array([c[1] if means else sum(c) for c in buckets.values()], np.int64)
        return cls(codes, bucket, counts[bucket])

    def values(self, dump: dict[str, Any], ctr: dict[str, Any]) -> tuple[NDArray[np.float32], np.float32]:
        """The values of a statistic for each combination of the table, (n,), and for all others."""
        values, unknown = _values(dump, ctr)
        return np.array(list(values.values()), np.float32)[self.bucket], unknown


# ---------------------------------------------------------------- counts


def _buckets(dump: dict[str, Any], ctr: dict[str, Any]) -> dict[int, list[Any]]:
    """Counts by hash, without the last two multiplications: for a single label its own hash, as 64 bits."""
    table = dump["ctr_data"][ctr["identifier"]]
    flat, stride = table["hash_map"], int(table["hash_stride"])
    if stride < 2 or len(flat) % stride:
        raise CorruptModelError("A CatBoost hash map does not have whole rows.")
    out: dict[int, list[Any]] = {}
    for begin in range(0, len(flat), stride):
        mixed = int(flat[begin])
        if mixed != _EMPTY:
            out[mixed * _UNMIX % _SIZE] = flat[begin + 1 : begin + stride]
    return out


def _values(dump: dict[str, Any], ctr: dict[str, Any]) -> tuple[dict[int, np.float32], np.float32]:
    """The statistic of every bucket, and that of values without one; in float32, as in CatBoost."""
    kind, border = ctr["ctr_type"], int(ctr["target_border_idx"])
    denominator = int(dump["ctr_data"][ctr["identifier"]]["counter_denominator"])
    prior, weight = np.float32(ctr["prior_numerator"]), np.float32(ctr["prior_denomerator"])
    shift, scale = np.float32(ctr["shift"]), np.float32(ctr["scale"])

    def value(good: float, total: float) -> np.float32:
        ratio = (np.float32(good) + prior) / (np.float32(total) + weight)
        return np.float32((ratio + shift) * scale)

    def of(counts: list[Any]) -> np.float32:
        if kind in _MEANS:
            return value(counts[0], counts[1])
        if kind in _COUNTERS:
            return value(counts[0], denominator)
        return value(counts[border] if kind == "Buckets" else sum(counts[border + 1 :]), sum(counts))

    unknown = value(0, denominator if kind in _COUNTERS else 0)
    return {u: of(counts) for u, counts in _buckets(dump, ctr).items()}, unknown


# ---------------------------------------------------------------- from buckets to combinations


def _learn_from_combinations(
    dump: dict[str, Any], tables: Sequence[dict[str, Any]], found: dict[int, dict[int, None]]
) -> None:
    """Add labels that occur only in combinations to `found`, until every bucket belongs to some combination."""
    waiting = sorted(tables, key=lambda ctr: len(ctr["elements"]))
    while waiting:
        left: list[dict[str, Any]] = []
        learnt = False
        for ctr in waiting:
            rest = _unresolved(dump, ctr, found)
            if len(rest):
                learnt |= _learn(ctr, rest, found)
                left.append(ctr)
        if left and not learnt:
            names = [f["feature_id"] or f["flat_feature_index"] for f in dump["features_info"]["categorical_features"]]
            columns = ", ".join(repr(names[c]) for c in _categories(left[0]))
            raise UnsupportedModelError(
                "This CatBoost model must determine the labels of its statistics of combined columns; it does not for "
                f"a combination of {columns}. Train it with store_all_simple_ctr=True, or max_ctr_complexity=1."
            )
        waiting = left


def _unresolved(dump: dict[str, Any], ctr: dict[str, Any], found: dict[int, dict[int, None]]) -> Words:
    """The buckets that belong to no combination of the labels found so far."""
    buckets = np.array(list(_buckets(dump, ctr)), np.uint64)
    bucket, _ = _decoded(ctr, buckets, {c: tuple(v) for c, v in found.items()})
    known = np.zeros(len(buckets), np.bool_)
    known[bucket] = True
    return buckets[~known]


def _learn(ctr: dict[str, Any], buckets: Words, found: dict[int, dict[int, None]]) -> bool:
    """Find labels of one column at a time, given those of all others; returns whether any were found.

    A 32-bit number found by chance, one in 2^32, is harmless: CatBoost too would count a row whose label had that hash
    with the bucket.
    """
    learnt = False
    elements = _elements(ctr, {c: tuple(v) for c, v in found.items()})
    weights = _weights(len(elements))
    for position, e in enumerate(ctr["elements"]):
        if e["combination_element"] != "cat_feature_value":
            continue
        others = [(w, v) for i, (w, v) in enumerate(zip(weights, elements, strict=True)) if i != position]
        inverse = np.uint64(pow(weights[position], -1, _SIZE))
        mine = found.setdefault(e["cat_feature_index"], {})
        for _, rest in _sums(others, len(buckets)):
            label = ((buckets[:, None] - rest) * inverse).view(np.int64)
            fits = label[(label >= -(1 << 31)) & (label < 1 << 31)]
            new = [int(h) & 0xFFFFFFFF for h in np.unique(fits)]
            learnt |= any(h not in mine for h in new)
            mine.update(dict.fromkeys(new))
    return learnt


def _decoded(ctr: dict[str, Any], buckets: Words, hashes: Hashes) -> tuple[Ints, Ints]:
    """The combinations that have a bucket: which bucket (n,), and the codes of the elements (n, elements)."""
    elements = _elements(ctr, hashes)
    sizes = [len(v) for v in elements]
    front = list(np.argsort(sizes, kind="stable")[::-1])  # largest first; those that do not fit are tried one by one
    back: list[int] = []
    while len(front) > 1 and np.prod([float(sizes[i]) for i in front]) > _FRONT:
        back.append(int(front.pop()))
    weights = _weights(len(elements))
    ((_, held),) = _sums([(weights[i], elements[i]) for i in front], 1, whole=True)
    order = np.argsort(held)
    held = held[order]
    hits: list[tuple[Ints, Ints, Ints]] = []
    for first, rest in _sums([(weights[i], elements[i]) for i in back], len(buckets)):
        wanted = buckets[:, None] - rest
        at = np.minimum(np.searchsorted(held, wanted), max(len(held) - 1, 0))
        bucket, tried = np.nonzero(held[at] == wanted) if len(held) else (np.zeros(0, np.int64),) * 2
        hits.append((bucket, order[at[bucket, tried]], first + tried))
    bucket, inside, outside = (np.concatenate([h[k] for h in hits] or [np.zeros(0, np.int64)]) for k in range(3))
    codes = np.zeros((len(bucket), len(elements)), np.int64)
    for places, which in ((front, inside), (back, outside)):
        for i, code in zip(places, np.unravel_index(which, [sizes[i] for i in places] or [1]), strict=False):
            codes[:, i] = code
    return bucket, codes


def _sums(parts: Sequence[tuple[int, Words]], buckets: int, whole: bool = False) -> Iterator[tuple[int, Words]]:
    """The sums of `weight * value` over every combination of one value a part, in blocks with their first number.

    The last part varies fastest. A block has so many combinations that a number for each of them and each bucket fits
    in memory; with `whole` there is one block.
    """
    sizes = [len(values) for _, values in parts]
    total = int(np.prod([float(n) for n in sizes]))
    if total * buckets > _MOST:
        raise UnsupportedModelError(
            f"This CatBoost model has a statistic of combined columns with {buckets} entries, each with {total} "
            "possible combinations of values, too many to try. Train it with max_ctr_complexity=1, or on fewer labels."
        )
    step = max(total, 1) if whole else max((1 << 22) // max(buckets, 1), 1)
    for first in range(0, total, step):
        index = np.arange(first, min(first + step, total))
        out = np.zeros(len(index), np.uint64)
        for (weight, values), code in zip(parts, np.unravel_index(index, sizes or [1]), strict=False):
            out += np.uint64(weight) * values[code]
        yield first, out
    if whole and not total:
        yield 0, np.zeros(0, np.uint64)


def _weights(elements: int) -> list[int]:
    return [pow(_MIX, elements - 1 - i, _SIZE) for i in range(elements)]


def _elements(ctr: dict[str, Any], hashes: Hashes) -> list[Words]:
    """The possible values of each element of a combination, as they enter the hash."""
    tests = np.array([0, 1], np.uint64)
    out: list[Words] = []
    for e in ctr["elements"]:
        if e["combination_element"] == "cat_feature_value":
            labels = np.array(hashes.get(e["cat_feature_index"], ()), np.uint32)
            out.append(labels.view(np.int32).astype(np.int64).view(np.uint64))
        else:
            out.append(tests)
    return out


def _categories(ctr: dict[str, Any]) -> list[int]:
    return [e["cat_feature_index"] for e in ctr["elements"] if e["combination_element"] == "cat_feature_value"]
