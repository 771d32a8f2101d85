"""LightGBM's text format, checked before LightGBM reads it: its own reader trusts every number in the file."""

from __future__ import annotations

import math
from itertools import pairwise

from ...errors import CorruptModelError

_OF_SPLITS = (
    "split_feature", "split_gain", "threshold", "decision_type", "left_child", "right_child", "internal_value",
    "internal_weight", "internal_count",
)  # fmt: skip
_OF_LEAVES = ("leaf_value", "leaf_weight", "leaf_count", "leaf_const", "num_features")
_NEEDED = ("split_feature", "threshold", "decision_type", "left_child", "right_child")
_WHOLE = {"split_feature", "decision_type", "left_child", "right_child", "num_features", "cat_boundaries"}
_HEADER = ("num_class", "num_tree_per_iteration", "max_feature_idx", "feature_names", "feature_infos", "tree_sizes")


def check_lightgbm(data: bytes) -> None:
    """Raise CorruptModelError where sizes, lengths or indices do not fit together."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise CorruptModelError(f"It is not text in UTF-8 (byte {error.start}).") from None
    begin, end = data.find(b"\nTree=0\n") + 1, data.find(b"end of trees")
    if begin <= 0 or end < begin:
        raise CorruptModelError("It must hold trees between 'Tree=0' and 'end of trees'; it was cut short or changed.")
    tail = data[end:]
    if b"\nparameters:\n" in tail and b"\nend of parameters\n" not in tail:
        raise CorruptModelError("Its parameters must end with 'end of parameters'; it was cut short or changed.")
    # LightGBM's own program writes no labels; a model with category splits from Python always has some.
    if b"\npandas_categorical:" not in tail and b"\ncat_threshold=" in data[:end]:
        raise CorruptModelError("It must end with 'pandas_categorical:'; it was cut short, or has no labels.")
    header = _fields(data[:begin].decode(), "its header")
    absent = [name for name in _HEADER if name not in header]
    if absent:
        raise CorruptModelError(f"Its header must have {absent[0]!r}.")
    columns = int(_numbers(header, "max_feature_idx", 1, whole=True)[0]) + 1
    per_round = int(_numbers(header, "num_tree_per_iteration", 1, whole=True)[0])
    _numbers(header, "num_class", 1, whole=True)
    for name in ("feature_names", "feature_infos"):
        if len(header[name].split(" ")) != columns:
            raise CorruptModelError(f"It must have {columns} {name}; it has {len(header[name].split(' '))}.")
    sizes = [int(v) for v in _numbers(header, "tree_sizes", len(header["tree_sizes"].split()), whole=True)]
    if sum(sizes) != end - begin or any(size < 1 for size in sizes) or not 0 < per_round <= len(sizes):
        raise CorruptModelError("Its tree_sizes must add up to the size of its trees.")
    for number, size in enumerate(sizes):
        block = data[begin : begin + size]
        if not block.startswith(f"Tree={number}\n".encode()):
            raise CorruptModelError(f"Its tree_sizes must say where tree {number} begins.")
        # a wrong size may split a UTF-8 character; the next tree then does not begin where it should
        _check_tree(_fields(block.decode(errors="replace"), f"tree {number}"), columns)
        begin += size


def _check_tree(tree: dict[str, str], columns: int) -> None:
    """Refuse a tree whose fields are missing, of the wrong length, or refer to what does not exist."""
    leaves = int(_numbers(tree, "num_leaves", 1, whole=True)[0])
    sets = int(_numbers(tree, "num_cat", 1, whole=True)[0])
    if leaves < 1 or sets < 0:
        raise CorruptModelError("A tree must have at least one leaf, and 0 or more category splits.")
    splits = leaves - 1
    for name in ("num_leaves", "num_cat", "leaf_value", *(_NEEDED if splits else ())):
        if name not in tree:
            raise CorruptModelError(f"A tree must have {name!r}.")
    for names, count in ((_OF_SPLITS, splits), (_OF_LEAVES, leaves)):
        for name in names:
            if tree.get(name):
                _numbers(tree, name, count, whole=name in _WHOLE)
    if splits:
        _within(tree, "split_feature", splits, 0, columns)
        _within(tree, "left_child", splits, -leaves, splits)
        _within(tree, "right_child", splits, -leaves, splits)
    if sets:
        edges = _numbers(tree, "cat_boundaries", sets + 1, whole=True)
        if edges[0] != 0 or any(b < a for a, b in pairwise(edges)):
            raise CorruptModelError("The category sets of a tree must follow each other.")
        _numbers(tree, "cat_threshold", int(edges[-1]), whole=True)
        kinds, thresholds = (_numbers(tree, name, splits) for name in ("decision_type", "threshold"))
        if any(int(k) & 1 and not 0 <= t < sets for k, t in zip(kinds, thresholds, strict=True)):
            raise CorruptModelError(f"A category split must use one of the tree's {sets} sets.")
    elif any(int(k) & 1 for k in _numbers(tree, "decision_type", splits)):
        raise CorruptModelError("A category split must use one of the tree's 0 sets.")


def _within(tree: dict[str, str], name: str, count: int, low: int, high: int) -> None:
    if any(not low <= v < high for v in _numbers(tree, name, count, whole=True)):
        raise CorruptModelError(f"The numbers of {name} must lie from {low} to {high - 1}.")


def _numbers(fields: dict[str, str], name: str, count: int, whole: bool = False) -> list[float]:
    """The numbers of a field; a CorruptModelError unless there are `count` of them, integers if `whole`."""
    words = fields.get(name, "").split()
    if len(words) != count:
        raise CorruptModelError(f"There must be {count} numbers of {name}; there are {len(words)}.")
    try:
        values = [int(w) if whole else float(w) for w in words]
    except ValueError:
        raise CorruptModelError(f"The field {name} must hold {'whole ' if whole else ''}numbers.") from None
    if any(math.isinf(v) and name != "threshold" for v in values):
        raise CorruptModelError(f"The numbers of {name} must be finite.")
    return [float(v) for v in values]


def _fields(block: str, what: str) -> dict[str, str]:
    """The `name=value` lines of a block, each name once."""
    found: dict[str, str] = {}
    for line in block.splitlines():
        name, _, value = line.partition("=")
        if name in found:
            raise CorruptModelError(f"The field {name!r} of {what} must come once.")
        if name:
            found[name] = value
    return found
