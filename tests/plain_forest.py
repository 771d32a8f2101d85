"""A forest as plain Python numbers, with the definition of credit written out: what the native walks must equal."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from gigrad import kernels

TYPES = {
    "feature": np.int32, "threshold": np.float64, "left": np.int32, "right": np.int32, "missing_left": np.bool_,
    "category_set": np.int32, "set_start": np.int32, "set_words": np.uint32, "value": np.int32, "values": np.float64,
    "roots": np.int32, "tree_output": np.int32, "base": np.float64,
}  # fmt: skip


@dataclass
class Plain:
    """A forest as plain Python numbers, with the routing rule and the definition of credit on it."""

    n_columns: int
    arrays: dict

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
        if self.arrays["category_set"][node] >= 0 or math.isnan(s) or math.isnan(e):
            return 0.5
        return min(1.0, max(0.0, (self.arrays["threshold"][node] - s) / (e - s)))

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
            if t is None or t > time + kernels.TIE:
                return self.left(node, s[j])
            return self.left(node, e[j] if t < time - kernels.TIE or j in past else s[j])

        return self.evaluate(goes_left)

    def corners(self, s, e):
        """(time, variables) of every corner, in order."""
        crossings = []
        for node, j in enumerate(self.arrays["feature"]):
            if j >= 0 and (t := self.time(node, s[j], e[j])) is not None:
                crossings.append((t, j))
        corners = []
        for t, j in sorted(crossings):
            if not corners or t > corners[-1][0] + kernels.TIE:
                corners.append((t, set()))
            corners[-1][1].add(j)
        return corners

    def credit(self, s, e, link=lambda m: m):
        """The definition: Shapley's value of each corner, by all subsets."""
        k = len(link(np.array(self.arrays["base"], float)))
        out = np.zeros((self.n_columns, k))
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


def random_forest(rng, n_columns=4, n_trees=3, max_depth=4, outputs=1, grid=4, categories=True, stop=0.15):
    """Trees over an integer grid (so that ties abound) with missing sides and category sets."""
    a = {k: [] for k in TYPES}
    a["set_start"], a["base"] = [0], list(rng.normal(size=outputs))
    for _ in range(n_trees):
        vector = outputs > 1 and rng.random() < 0.5
        a["tree_output"].append(-1 if vector else int(rng.integers(outputs)))
        a["roots"].append(len(a["feature"]))
        waiting = [(None, "", 0)]
        while waiting:
            parent, side, depth = waiting.pop()
            node = len(a["feature"])
            if parent is not None:
                a[side][parent] = node
            leaf = depth == max_depth or (depth > 0 and rng.random() < stop)
            a["feature"].append(-1 if leaf else int(rng.integers(n_columns)))
            a["threshold"].append(float(rng.integers(2 * grid)) / 2)
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


def random_rows(rng, n, plain, grid=4, missing=0.15):
    """Rows on the thresholds' own grid; column 0 holds codes, among them codes the trees never saw."""
    x = rng.integers(2 * grid, size=(n, plain.n_columns)) / 2.0
    x[:, 0] = rng.integers(-1, grid + 2, size=n)
    x[rng.random(x.shape) < missing] = np.nan
    return x


def case(seed, outputs, grid, missing, n_columns, n=4):
    rng = np.random.default_rng(seed)
    plain = random_forest(rng, n_columns=n_columns, outputs=outputs, grid=grid)
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
