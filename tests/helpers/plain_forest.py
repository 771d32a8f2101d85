"""A forest as plain Python numbers, with the definition of credit written out: what the native walks must equal."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gigrad import kernels

TYPES = {
    "feature": np.int32, "threshold": np.float64, "equal_low": np.float64, "equal_high": np.float64,
    "single": np.bool_, "place": np.float64, "left": np.int32, "right": np.int32, "missing_left": np.bool_,
    "category_set": np.int32, "set_start": np.int32, "set_words": np.uint32, "value": np.int32, "values": np.float64,
    "roots": np.int32, "tree_output": np.int32, "base": np.float64, "variable": np.int32,
}  # fmt: skip
TIMES = 2**30  # times are multiples of 1 / TIMES


@dataclass
class Plain:
    """A forest as plain Python numbers, with the routing rule and the definition of credit on it."""

    n_columns: int
    arrays: dict

    def __post_init__(self):
        """What was not given: thresholds in float64 that stand where they are stored, every column for itself."""
        a = self.arrays
        for name in ("equal_low", "equal_high", "place"):
            a.setdefault(name, list(a["threshold"]))
        a.setdefault("single", [False] * len(a["threshold"]))
        a.setdefault("variable", [])

    @property
    def n_variables(self):
        return max(self.arrays["variable"], default=self.n_columns - 1) + 1

    def variable(self, column):
        return self.arrays["variable"][column] if self.arrays["variable"] else column

    @property
    def forest(self):
        return kernels.Forest(self.n_columns, *[np.asarray(self.arrays[k], t) for k, t in TYPES.items()])

    def left(self, node, x):
        a = self.arrays
        if math.isnan(x):
            return bool(a["missing_left"][node])
        if a["category_set"][node] < 0:
            return x <= a["threshold"][node]
        begin, end = a["set_start"][a["category_set"][node]], a["set_start"][a["category_set"][node] + 1]
        code = int(x)
        return 0 <= code < 32 * (end - begin) and bool(a["set_words"][begin + code // 32] >> (code % 32) & 1)

    def time(self, node, s, e):
        """When the path crosses the split, or None."""
        if self.left(node, s) == self.left(node, e):
            return None
        a = self.arrays
        place = a["place"][node]
        if a["category_set"][node] >= 0 or math.isnan(place) or not math.isfinite(s) or not math.isfinite(e):
            return 0.5
        if self.stored(node, s):
            return 0.5 if self.stored(node, e) else 0.0
        if self.stored(node, e):
            return 1.0
        if a["single"][node]:
            s, e = (float(str(np.float32(x))) for x in (s, e))
        share = min(1.0, max(0.0, (place - s) / (e - s)))
        return round(share * TIMES) / TIMES

    def stored(self, node, x):
        """Whether x is the stored threshold to the library, where decimals of float32 do not say it anyway."""
        a = self.arrays
        low, high, threshold = (a[name][node] for name in ("equal_low", "equal_high", "threshold"))
        edge = np.float32(threshold) != np.float32(np.nextafter(threshold, np.inf))
        return not (a["single"][node] and edge) and low < high and low <= a["place"][node] <= high and low <= x <= high

    def evaluate(self, goes_left):
        a = self.arrays
        out = np.array(a["base"], float)
        for root, output in zip(a["roots"], a["tree_output"], strict=True):
            node = root
            while a["feature"][node] >= 0:
                node = a["left"][node] if goes_left(node) else a["right"][node]
            if output < 0:
                out += a["values"][a["value"][node] : a["value"][node] + len(out)]
            else:
                out[output] += a["values"][a["value"][node]]
        return out

    def cell(self, s, e, time, past):
        """The outputs at the corner at `time` with the variables of `past` past it."""

        def goes_left(node):
            j = self.arrays["feature"][node]
            t = self.time(node, s[j], e[j])
            if t is None or t > time:
                return self.left(node, s[j])
            return self.left(node, e[j] if t < time or self.variable(j) in past else s[j])

        return self.evaluate(goes_left)

    def corners(self, s, e):
        """(time, variables) of every corner, in order."""
        crossings = []
        for node, j in enumerate(self.arrays["feature"]):
            if j >= 0 and (t := self.time(node, s[j], e[j])) is not None:
                crossings.append((t, self.variable(j)))
        corners: dict[Any, Any] = {}
        for t, variable in sorted(crossings):
            corners.setdefault(t, set()).add(variable)
        return list(corners.items())

    def credit(self, s, e, link=lambda m: m):
        """The definition: Shapley's value of each corner, by all subsets."""
        k = len(link(np.array(self.arrays["base"], float)))
        out = np.zeros((self.n_variables, k))
        for time, players in self.corners(s, e):
            n = len(players)
            for i in players:
                others = sorted(players - {i})
                for size in range(n):
                    weight = math.factorial(size) * math.factorial(n - size - 1) / math.factorial(n)
                    for chosen in itertools.combinations(others, size):
                        after, before = (self.cell(s, e, time, {*chosen, *more}) for more in ((i,), ()))
                        out[i] += weight * (link(after) - link(before))
        return out


def random_forest(
    rng, n_columns=4, n_trees=3, max_depth=4, outputs=1, grid=4, categories=True, stop=0.15, places=False
):
    """Trees over an integer grid (so that ties abound) with missing sides and category sets.

    With `places`, splits stand half-way between whole numbers or nowhere, are read in float32, have intervals of stored
    thresholds, and some columns are one variable.
    """
    a: dict[str, list[Any]] = {
        k: [] for k in TYPES if places or k not in ("equal_low", "equal_high", "single", "place", "variable")
    }
    kinds = rng.integers(5, size=n_columns)  # of columns: continuous, discrete, nominal, stored in intervals, any
    if places and rng.random() < 0.5:
        a["variable"] = np.unique(rng.integers(n_columns, size=n_columns), return_inverse=True)[1].tolist()
    a["set_start"], a["base"] = [0], list(rng.normal(size=outputs))
    for _ in range(n_trees):
        vector = outputs > 1 and rng.random() < 0.5
        a["tree_output"].append(-1 if vector else int(rng.integers(outputs)))
        a["roots"].append(len(a["feature"]))
        waiting: list[tuple[int | None, str, int]] = [(None, "", 0)]
        while waiting:
            parent, side, depth = waiting.pop()
            node = len(a["feature"])
            if parent is not None:
                a[side][parent] = node
            leaf = depth == max_depth or (depth > 0 and rng.random() < stop)
            a["feature"].append(-1 if leaf else int(rng.integers(n_columns)))
            a["threshold"].append(float(rng.integers(2 * grid)) / 2)
            if places:
                add_place(rng, a, int(kinds[a["feature"][node]]))
            a["missing_left"].append(bool(rng.random() < 0.5))
            a["left"].append(-1)
            a["right"].append(-1)
            a["value"].append(-1)
            a["category_set"].append(-1)
            if leaf:
                a["value"][node] = len(a["values"])
                a["values"] += list(rng.normal(size=outputs if vector else 1))
                continue
            if categories and a["feature"][node] == 0:  # column 0 holds categories
                a["category_set"][node] = len(a["set_start"]) - 1
                a["set_words"].append(int(rng.integers(1, 2**grid)))
                a["set_start"].append(len(a["set_words"]))
            waiting += [(node, "left", depth + 1), (node, "right", depth + 1)]
    return Plain(n_columns, a)


def add_place(rng, a, kind):
    """Where the last split stands."""
    t = a["threshold"][-1]
    kind = int(rng.integers(4)) if kind == 4 else kind
    below, above = (0.5 * (kind == 3 and rng.random() < 0.5) for _ in range(2))  # stored numbers lie on one side
    a["equal_low"].append(float(np.nextafter(t, np.inf)) if above else t - below)
    a["equal_high"].append(t + above)
    stands = t + 0.5 * above if above else t - 0.5 * below
    a["place"].append({1: math.floor(t) + 0.5, 2: math.nan}.get(kind, stands))
    a["single"].append(bool(rng.random() < 0.5))


def random_rows(rng, n, plain, grid=4, missing=0.15):
    """Rows on the thresholds' own grid; column 0 holds codes, among them codes the trees never saw."""
    x = rng.integers(2 * grid, size=(n, plain.n_columns)) / 2.0
    x[:, 0] = rng.integers(-1, grid + 2, size=n)
    x[rng.random(x.shape) < missing] = np.nan
    return x


def case(seed, outputs, grid, missing, n_columns, n=4, places=False):
    rng = np.random.default_rng(seed)
    plain = random_forest(rng, n_columns=n_columns, outputs=outputs, grid=grid, places=places)
    return rng, plain, random_rows(rng, n, plain, grid, missing), random_rows(rng, n, plain, grid, missing)


def single_tree(n):
    """What is the same for every forest of one tree of `n` nodes without categories."""
    return {"missing_left": [True] * n, "category_set": [-1] * n, "set_start": [0], "set_words": [], "roots": [0],
            "tree_output": [0], "base": [0.0]}  # fmt: skip


def every_simd():
    """Each walk that this machine can run, one after the other; the one that was in use is restored."""
    used = kernels.get_simd()
    try:
        for name in kernels.simd_choices():
            kernels.set_simd(name)
            yield name
    finally:
        kernels.set_simd(used)
