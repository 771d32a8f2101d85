"""TreeEnsembleRegressor, TreeEnsembleClassifier and TreeEnsemble: all modes of nodes rewritten as `x <= threshold`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import CorruptModelError, UnsupportedModelError
from ...graph import Affine, Array, Concat, Elementwise, Node, Tree, TreeEnsemble, assemble
from ..common.thresholds import at_most_in_float32, less_in_float32
from .common import AS_A_STEP, post, post_transformed
from .proto import Operator, unsupported
from .values import Numbers

_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
_VERSION_5 = {0: "BRANCH_LEQ", 1: "BRANCH_LT", 2: "BRANCH_GTE", 3: "BRANCH_GT", 4: "BRANCH_EQ", 5: "BRANCH_NEQ"}


@dataclass(frozen=True, eq=False)
class Nodes:
    """The nodes of all trees, as arrays of equal length; children are indices into these arrays, -1 for a leaf."""

    tree: NDArray[np.int64]
    feature: NDArray[np.int64]
    value: Array
    mode: tuple[str, ...]
    true: NDArray[np.int64]
    false: NDArray[np.int64]
    missing_true: NDArray[np.bool_]
    leaves: Array  # (nodes, outputs)


def regressor(operator: Operator, source: Node, single: Sequence[bool]) -> Numbers:
    """TreeEnsembleRegressor."""
    outputs = int(operator.get("n_targets", 1))
    nodes = _nodes(operator, "target", outputs)
    if len(_numbers(operator, "base_values")) and set(operator.get("target_ids", [])) != set(range(outputs)):
        raise UnsupportedModelError(
            "TreeEnsembleRegressor must have leaves for each target that has base_values. onnxmltools writes XGBoost "
            "models of several targets so, with all trees in the first: explain the XGBoost model itself."
        )
    return Numbers(post(operator, _sum(operator, nodes, source, single, outputs)))


def classifier(operator: Operator, source: Node, single: Sequence[bool]) -> Numbers:
    """TreeEnsembleClassifier: the scores of its classes.

    If two classes have only one number in their leaves, that is the score of the second class.
    """
    labels = tuple(operator.get("classlabels_strings") or operator.get("classlabels_int64s") or ())
    if not labels:
        raise CorruptModelError(
            "TreeEnsembleClassifier must name its classes; this one names none. CatBoost writes regressors of several "
            "targets so, as if they were classes: explain the CatBoost model itself."
        )
    ids, base = operator.get("class_ids", []), _numbers(operator, "base_values")
    if len(labels) != 2 or set(ids) != {0} or len(base) == 2:
        nodes = _nodes(operator, "class", len(labels))
        if len(base) == len(labels) == 2 and np.any(base != base[0]):
            raise UnsupportedModelError(
                "TreeEnsembleClassifier of two classes with leaves and different base_values for both is not imported: "
                "onnxruntime confuses them, so that the file does not define its scores. Explain the model in the "
                "library that trained it."
            )
        if len(base) not in (0, len(labels)) or (len(base) and set(ids) != set(range(len(labels)))):
            raise UnsupportedModelError(
                "TreeEnsembleClassifier must have one of base_values for each class with leaves."
            )
        return Numbers(post(operator, _sum(operator, nodes, source, single, len(labels))), labels)
    margin = _sum(operator, _nodes(operator, "class", 1), source, single, 1)
    if operator.get("post_transform", "NONE") == "LOGISTIC":
        score: Node = Elementwise(margin, "sigmoid")
        other: Node = Affine(score, -np.eye(1), np.ones(1))
    else:  # onnxruntime treats numbers that are all positive as probabilities
        weights = _numbers(operator, "class_weights")
        score, other = margin, Affine(margin, -np.eye(1), np.full(1, float((weights >= 0).all())))
    return Numbers(Concat((other, score)), labels)


def ensemble(operator: Operator, source: Node, single: Sequence[bool]) -> Numbers:
    """TreeEnsemble of version 5: leaves apart from nodes."""
    how, link = (int(operator.get(k, v)) for k, v in (("aggregate_function", 1), ("post_transform", 0)))
    if how not in (0, 1) or link not in (0, 1, 2):
        raise UnsupportedModelError("TreeEnsemble must add its trees up, or average them, to be imported.")
    outputs = int(operator.get("n_targets", 1))
    nodes = _version_5(operator, outputs)
    share = 1.0 / len(operator.get("tree_roots")) if how == 0 else 1.0
    trees = assemble(source, _trees(nodes, share, single, outputs), np.zeros(outputs))
    return Numbers(post_transformed(("NONE", "LOGISTIC", "SOFTMAX")[link], trees, operator.kind))


TREES = {"TreeEnsembleRegressor": regressor, "TreeEnsembleClassifier": classifier, "TreeEnsemble": ensemble}


def _sum(operator: Operator, nodes: Nodes, source: Node, single: Sequence[bool], outputs: int) -> TreeEnsemble:
    """The sum or mean of trees, with the base values added."""
    how = operator.get("aggregate_function", "SUM")
    if how not in ("SUM", "AVERAGE"):
        raise UnsupportedModelError(f"Trees must be combined by SUM or AVERAGE; got {how}.")
    share = 1.0 / len(np.unique(nodes.tree)) if how == "AVERAGE" else 1.0
    base = _numbers(operator, "base_values")
    if not np.isfinite(base).all():
        raise CorruptModelError(
            "base_values must be finite numbers; one is not. onnxmltools writes rankings and survival models of "
            "XGBoost so, as classifiers with the logit of base_score: explain the XGBoost model itself."
        )
    if len(base) not in (0, outputs):
        raise CorruptModelError(f"base_values must be one for each of the {outputs} outputs; there are {len(base)}.")
    return assemble(source, _trees(nodes, share, single, outputs), base if len(base) else np.zeros(outputs))


def _numbers(operator: Operator, name: str) -> Array:
    found = operator.get(f"{name}_as_tensor")
    return np.asarray(operator.get(name, []) if found is None else found, np.float64).ravel()


def _nodes(operator: Operator, what: str, outputs: int) -> Nodes:
    """The nodes of versions 1 and 3, which are identified by tree number and node number."""
    get = operator.get
    tree, number = (np.asarray(get(f"nodes_{k}", []), np.int64) for k in ("treeids", "nodeids"))
    count = len(number)
    place = {key: i for i, key in enumerate(zip(tree.tolist(), number.tolist(), strict=True))}
    if not count or len(place) != count:
        raise CorruptModelError("The nodes of an ONNX tree must be numbered, each once.")
    modes = tuple(get("nodes_modes", []))
    leaf = np.array([m == "LEAF" for m in modes])

    def children(name: str) -> NDArray[np.int64]:
        numbers = get(f"nodes_{name}nodeids", [])
        return np.array([-1 if end else place[t, n] for t, n, end in zip(tree.tolist(), numbers, leaf, strict=True)])

    leaves = np.zeros((count, outputs))
    ids = get(f"{what}_ids", [])
    weights = _numbers(operator, f"{what}_weights")
    for t, n, i, w in zip(get(f"{what}_treeids"), get(f"{what}_nodeids"), ids, weights, strict=True):
        leaves[place[t, n], i] += w
    tracks = np.asarray(get("nodes_missing_value_tracks_true", []) or np.zeros(count), bool)
    return Nodes(
        tree, np.asarray(get("nodes_featureids"), np.int64), _numbers(operator, "nodes_values"), modes,
        children("true"), children("false"), tracks, leaves,
    )  # fmt: skip


def _version_5(operator: Operator, outputs: int) -> Nodes:
    """The nodes of version 5, with leaves in separate arrays: leaves follow the nodes, trees start at their roots."""
    get = operator.get
    count, targets = len(get("nodes_featureids")), np.asarray(get("leaf_targetids"), np.int64)
    total = count + len(targets)
    modes = tuple(_VERSION_5.get(int(m), "BRANCH_MEMBER") for m in np.asarray(get("nodes_modes")).ravel())
    if "BRANCH_MEMBER" in modes:
        raise unsupported("A TreeEnsemble node that tests membership of a set")
    ends = [np.asarray(get(f"nodes_{k}leafs"), bool) for k in ("true", "false")]
    ids = [np.asarray(get(f"nodes_{k}nodeids"), np.int64) for k in ("true", "false")]
    none = np.full(len(targets), -1)
    true, false = (np.append(np.where(e, i + count, i), none) for e, i in zip(ends, ids, strict=True))
    leaves = np.zeros((total, outputs))
    leaves[np.arange(count, total), targets] = np.asarray(get("leaf_weights"), np.float64).ravel()
    tree = np.full(total, -1)
    for t, root in enumerate(get("tree_roots")):
        waiting = [int(root)]
        while waiting:
            i = waiting.pop()
            if not 0 <= i < total or tree[i] >= 0:
                raise CorruptModelError("The trees of an ONNX TreeEnsemble must not share nodes or lead back.")
            tree[i] = t
            waiting += [int(c[i]) for c in (true, false) if c[i] >= 0]
    tracked = np.asarray(get("nodes_missing_value_tracks_true", np.zeros(count)), bool)
    tracks = np.append(tracked, np.zeros(len(targets), bool))
    padded = np.append(np.asarray(get("nodes_splits"), np.float64).ravel(), np.zeros(len(targets)))
    feature = np.append(np.asarray(get("nodes_featureids"), np.int64), np.zeros(len(targets), np.int64))
    return Nodes(tree, feature, padded, (*modes, *("LEAF",) * len(targets)), true, false, tracks, leaves)


def _trees(nodes: Nodes, share: float, single: Sequence[bool], outputs: int) -> Iterator[Tree]:
    """The trees one by one, with children numbered within each tree."""
    if np.isnan(nodes.value[[m != "LEAF" for m in nodes.mode]]).any():
        raise CorruptModelError("The thresholds of an ONNX tree must be numbers; one is NaN.")
    if (nodes.feature < 0).any() or (nodes.feature >= len(single)).any():
        raise CorruptModelError(
            f"An ONNX tree must split on one of the {len(single)} columns that it reads; one splits on column "
            f"{nodes.feature.max()}, counted from 0. {AS_A_STEP}"
        )
    order = np.argsort(nodes.tree, kind="stable")
    order = order[nodes.tree[order] >= 0]
    local = np.full(len(nodes.tree), -1)
    for some in np.split(order, np.nonzero(np.diff(nodes.tree[order]))[0] + 1):
        local[some] = np.arange(len(some))
        yield _tree(nodes, some, local, share, single, outputs)


def _tree(
    nodes: Nodes, some: NDArray[np.int64], local: NDArray[np.int64], share: float, single: Sequence[bool], outputs: int
) -> Tree:
    """One tree from `some` of the nodes, each with its number within the tree in `local`."""
    reads_single = np.asarray(single)[nodes.feature[some]]
    modes = np.array([nodes.mode[i] for i in some])
    unknown = set(modes.tolist()) - {*_MODES, "LEAF"}
    if unknown:
        raise unsupported(f"A tree node of the mode {min(unknown)}")
    leaf, strict = modes == "LEAF", np.isin(modes, ("BRANCH_LT", "BRANCH_GTE"))
    at_most, less = _folded(nodes.value[some], reads_single)
    threshold, low, high = (np.where(strict, b, a) for a, b in zip(at_most, less, strict=True))
    true, false = local[nodes.true[some]], local[nodes.false[some]]
    turned = np.isin(modes, ("BRANCH_GTE", "BRANCH_GT"))
    left, right = np.where(turned, false, true), np.where(turned, true, false)
    missing_left = nodes.missing_true[some] ^ turned
    feature = np.where(leaf, -1, nodes.feature[some])
    values = nodes.leaves[some] * share
    # x == t: not above it, and then not below it. NaN is never equal.
    equal = np.nonzero(np.isin(modes, ("BRANCH_EQ", "BRANCH_NEQ")))[0]
    if len(equal):
        extra = np.arange(len(some), len(some) + len(equal))
        is_equal = np.where(modes[equal] == "BRANCH_EQ", true[equal], false[equal])
        differs = np.where(modes[equal] == "BRANCH_EQ", false[equal], true[equal])
        to_true = np.where(modes[equal] == "BRANCH_EQ", nodes.missing_true[some][equal], True)
        left[equal], right[equal] = extra, differs
        missing_left[equal] = to_true == (modes[equal] == "BRANCH_EQ")
        left, right = np.append(left, differs), np.append(right, is_equal)
        threshold, low, high = (np.append(v, w[equal]) for v, w in zip((threshold, low, high), less, strict=True))
        feature, reads_single = np.append(feature, feature[equal]), np.append(reads_single, reads_single[equal])
        missing_left = np.append(missing_left, np.zeros(len(equal), bool))
        values = np.concatenate([values, np.zeros((len(equal), outputs))])
    return Tree(
        feature, threshold, left, right, missing_left, values if outputs > 1 else values[:, 0],
        -1 if outputs > 1 else 0, equal=(low, high), single=reads_single,
    )  # fmt: skip


def _folded(value: Array, single: NDArray[np.bool_]) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """For `x <= t`, then for `x < t`: the threshold, and the lowest and highest float64 that count as equal to t.

    Where `single` is set, x is rounded to float32 before it is compared.
    """
    below = np.nextafter(value, -np.inf)
    plain = (value, value, value), (below, value, value)
    folded = at_most_in_float32(value), less_in_float32(value)
    found = [
        tuple(np.where(single, a, b) for a, b in zip((f.threshold, *f.equal), p, strict=True))
        for f, p in zip(folded, plain, strict=True)
    ]
    return found[0], found[1]
