"""scikit-learn pipelines, explained on their raw columns.

The model at the end is imported over the transformed columns; then these are replaced by functions of the raw ones.
Trees are rewritten as trees on the raw columns, everything else reads the steps as nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import NotFittedError, UnsupportedModelError
from ...graph import Column, Concat, Graph, Input, Node, TreeEnsemble, Witness, topological
from ...graph.ranks import over_ranks
from ...graph.rewire import columns_of, with_parents
from .. import import_model
from ..common.estimator import require_fitted
from . import prediction_steps, require_known
from .compose import column_positions, through
from .labels import Encode
from .nodes import Values
from .own_predictions import STEPS_ATOL, STEPS_RTOL, InDouble, Prepare, score_witness
from .raw import Use, looked_at, raw_columns, uses
from .steps import AsMissing, Step
from .table import Blend, Constant, Derived, Feature, Table
from .tabulated import of_module
from .trees import TooManyWaysError, on_raw


def import_pipeline(model: Any) -> Graph:
    """The graph of a fitted sklearn Pipeline that ends in a model."""
    *steps, last = prediction_steps(model.steps)
    if last is None or isinstance(last, str):
        raise UnsupportedModelError(f"A pipeline must end in a model to be explained; this one ends in {last!r}.")
    require_fitted(model)
    steps = [s for s in steps if s is not None and s != "passthrough"]
    for step in _all_steps(steps):
        require_known(step)
    inner = import_model(last)
    label = f"Pipeline({', '.join([*(type(step).__name__ for step in _all_steps(steps)), inner.label])})"
    if not steps:
        return replace(inner, label=label)
    names, named, needed = _raw_names(steps[0])
    kept = [j for j in range(len(names)) if needed[j]]
    places = {j: i for i, j in enumerate(kept)}
    raw = Table(tuple(Derived(places[j]) if j in places else Constant(np.nan) for j in range(len(names))))
    table = through(steps, raw)
    features = _matched(inner, table, steps)
    dropped = list(looked_at(table.dropped))
    graph = behind(inner, features, _absent(table, last), [names[j] for j in kept], named, steps, dropped)
    return replace(graph, label=label)


def _all_steps(steps: Sequence[Any]) -> Iterator[Any]:
    """The steps, with nested pipelines replaced by their steps."""
    for step in steps:
        if type(step).__name__ == "Pipeline":
            yield from _all_steps([s for s in prediction_steps(step.steps) if s is not None and s != "passthrough"])
        else:
            yield step


def _raw_names(first: Any) -> tuple[list[str], bool, list[bool]]:
    """The raw columns' names, whether the pipeline was fitted on names, and which columns a table must have.

    A ColumnTransformer with names needs only the columns that it reads; every other step needs all.
    """
    named = getattr(first, "feature_names_in_", None)
    if named is None:
        named = getattr(next(_all_steps([first])), "variable_names", None)  # optbinning's BinningProcess
    if named is None:
        size = getattr(first, "n_features_in_", None)
        if size is None and require_known(inner := next(_all_steps([first]))).startswith("columnwise:"):
            raise UnsupportedModelError(
                f"The step {of_module(inner)} cannot be imported as the first of a pipeline: it does not store the "
                "number of its columns (n_features_in_ or feature_names_in_). Apply it before the pipeline, so that "
                "its output columns are the variables."
            )
        if size is None:
            raise NotFittedError(
                f"The step {type(first).__name__} of this Pipeline has not been fitted; fit the whole pipeline."
            )
        return [f"x{j}" for j in range(size)], False, [True] * size
    names = [str(n) for n in named]
    needed = [True] * len(names)
    if type(first).__name__ == "ColumnTransformer":
        read = {
            j
            for _, step, columns in first.transformers_
            if not (isinstance(step, str) and step == "drop")
            for j in column_positions(first, columns)
        }
        needed = [j in read for j in range(len(names))]
    return names, True, needed


def _matched(inner: Graph, table: Table, steps: Sequence[Any]) -> list[Feature]:
    """For each column of the model at the end, the transformed column that it reads."""
    if len(table) == len(inner.columns):
        return list(table.features)
    if not inner.named:
        raise UnsupportedModelError(
            f"{inner.label} at the end of the pipeline must have the columns of the steps before it, {len(table)}; it "
            f"has {len(inner.columns)}. Fit them together."
        )
    names: list[str] = []
    for step in steps:
        names = [str(n) for n in (step.get_feature_names_out(names) if names else step.get_feature_names_out())]
    return [table.features[names.index(c.name)] for c in inner.columns]


def _absent(table: Table, last: Any) -> bool:
    """Whether the model treats the zeros of a sparse table as missing values, as XGBoost does."""
    if not table.sparse:
        return False
    if type(last).__module__.split(".")[0] == "xgboost":
        return True
    inside = [v for v in last.get_params(deep=True).values() if type(v).__module__.split(".")[0] == "xgboost"]
    if inside:
        raise UnsupportedModelError(
            f"The steps give a sparse matrix to a {type(last).__name__} with XGBoost inside, which treats its zeros as "
            "missing values. Use OneHotEncoder(sparse_output=False), or ColumnTransformer(sparse_threshold=0)."
        )
    return False


# ---------------------------------------------------------------- a graph over raw columns


def behind(
    inner: Graph, features: Sequence[Feature], absent: bool, names: Sequence[str], named: bool, steps: Sequence[Any],
    dropped: Sequence[Use],
) -> Graph:  # fmt: skip
    """A model over transformed columns as a model over the raw ones."""
    readers = Counter(f.column for f in features if isinstance(f, Derived))
    ready = [
        f if c.kind == "category" and isinstance(f, Derived) and not f.steps and readers[f.column] == 1
        else _as_read(f, c, absent)
        for f, c in zip(features, inner.columns, strict=True)
    ]  # fmt: skip
    columns = raw_columns(names, [*uses(ready, inner.columns), *dropped])
    move = _Move(inner, ready, Values(Input(len(columns)), columns))
    prepare = Prepare(tuple(steps), inner, columns, named, absent)
    own = tuple(_witness(w, move, prepare) for w in inner.witnesses)
    witnesses = (
        *(score_witness(node, read, prepare, move.source, inner.label) for node, read in move.scores.items()),
        *own,
    )
    return replace(
        inner, columns=columns, input=move.source, score=move.node(inner.score), margin=move.node(inner.margin),
        witnesses=witnesses, named=named,
    )  # fmt: skip


def _as_read(feature: Feature, column: Column, absent: bool) -> Feature:
    """The feature, then the model's own preprocessing: sentinels (and zeros if `absent`) missing, labels coded."""
    steps: list[Step] = []
    if absent:
        steps.append(AsMissing(0.0, 0.0))
    if column.missing_value is not None:
        steps.append(_sentinel(column.missing_value, column.compared_in))
    if column.known_as != "label":
        raise UnsupportedModelError(
            f"The model at the end of the pipeline stores only hashes of the categories of its column {column.name!r}, "
            "so steps before it cannot be imported. Pass that column to it unchanged, and only once."
        )
    if column.labels is not None:
        codes = np.arange(float(len(column.labels)))
        unknown = {"other": -1.0, "missing": np.nan, "refuse": None}[column.unknown]
        steps.append(Encode(column.labels, codes, unknown, np.nan))
    for step in steps:
        feature = Table((feature,)).then([step], "the model").features[0]
    return feature


def _sentinel(value: float, compared_in: str) -> AsMissing:
    """The step for a sentinel: the float64 numbers that equal `value` in the precision of the comparison."""
    if compared_in == "float64":
        return AsMissing(value, value, value)
    single = np.float32(value)
    low, high = (float(np.nextafter(single, np.float32(d))) for d in (-np.inf, np.inf))
    edges = [(float(single) + side) / 2 for side in (low, high)]
    inside = [e if np.float32(e) == single else float(np.nextafter(e, float(single))) for e in edges]
    return AsMissing(inside[0], inside[1], value)


def moved(inner: Graph, node: Node, features: Sequence[Feature], values: Values) -> Node:
    """A node of a model that is a step of the pipeline, rebuilt over the raw rows."""
    ready = [_as_read(f, c, False) for f, c in zip(features, inner.columns, strict=True)]
    return _Move(inner, ready, values).node(node)


class _Move:
    """Rebuilds the nodes of a model over the raw rows."""

    def __init__(self, inner: Graph, features: Sequence[Feature], values: Values) -> None:
        self.old, self.wanted, self.source = inner.input, inner.columns, values.source
        self.columns, self.features, self.values = values.columns, features, values
        self.scores: dict[Node, tuple[int, ...]] = {}  # nodes that trees read as scores, and which columns
        self._done: dict[Node, Node] = {}

    def node(self, node: Node) -> Node:
        if node not in self._done:
            self._done[node] = self._moved(node)
        return self._done[node]

    def reads_values(self, node: Node) -> bool:
        """Whether a rebuilt node reads the steps as nodes, rather than through rewritten trees alone."""
        return self.old in self._done and self._done[self.old] in topological(node)

    def _moved(self, node: Node) -> Node:
        """A node that reads the raw columns in place of the transformed ones."""
        if node is self.old:
            return self.values.node(self.features)
        if isinstance(node, TreeEnsemble):
            read = columns_of(node.source)
            if any(base is self.old for base, _ in read):
                return self._trees(node, read)
        return with_parents(node, {p: self.node(p) for p in node.parents})

    def _trees(self, trees: TreeEnsemble, read: Sequence[tuple[Node, int]]) -> TreeEnsemble:
        """Trees that read transformed columns, maybe beside other models' scores.

        Columns that a step makes from several are read as scores, with oblique boundaries. If trees are so deep that
        replacing steps by chains of splits would create too many paths, columns that are step functions stay nodes,
        which the trees read like the scores of other trees.
        """
        takes = [base is self.old and self.wanted[k].may_be_missing for base, k in read]
        made_of: list[Feature] = [self.features[k] if base is self.old else Constant(0.0) for base, k in read]
        others = [None if base is self.old else (self.node(base), k) for base, k in read]
        blends = [i for i, f in enumerate(made_of) if isinstance(f, Blend) and (trees.feature == i).any()]
        if blends:
            scores = self.values.node([made_of[i] for i in blends])
            self.scores[scores] = tuple(read[i][1] for i in blends)
            for place, i in enumerate(blends):
                others[i] = (scores, place)
        try:
            return self._over(trees, made_of, others, takes)
        except TooManyWaysError:
            steps = [i for i, f in enumerate(made_of) if isinstance(f, Derived) and f.flat and self._is_number(f)]
            node = self.values.node([self.features[read[i][1]] for i in steps])
            for place, i in enumerate(steps):
                others[i] = (node, place)
        try:
            return self._over(trees, made_of, others, takes)
        except TooManyWaysError:
            raise UnsupportedModelError(
                "The trees at the end of the pipeline are too deep for steps that are not monotone, such as squares: "
                "every split on one becomes several. Limit their depth (max_depth=10), or leave the step out."
            ) from None

    def _over(
        self,
        trees: TreeEnsemble,
        made_of: Sequence[Feature],
        others: Sequence[tuple[Node, int] | None],
        takes: Sequence[bool],
    ) -> TreeEnsemble:
        """The trees over the raw rows, and over other nodes where a column is one of `others`."""
        nodes = list(dict.fromkeys(o[0] for o in others if o is not None))
        starts = dict(zip(nodes, np.cumsum([0, *(n.width for n in nodes)]).tolist(), strict=False))
        places = [f if o is None else starts[o[0]] + o[1] for f, o in zip(made_of, others, strict=True)]
        source = Concat((*nodes, self.source)) if nodes else self.source
        moved = on_raw(trees, source, places, takes, self.columns, source.width - self.source.width)
        return over_ranks(moved, self.source, self.columns) if nodes else moved

    def _is_number(self, feature: Derived) -> bool:
        return self.columns[feature.column].kind == "number"


# ---------------------------------------------------------------- the model's own predictions


def _witness(witness: Witness, move: _Move, prepare: Prepare) -> Witness:
    """A model's witness, which is given the rows that the steps before it make."""
    node = move.node(witness.node)
    if witness.source is not None:
        return replace(witness, node=node, source=move.node(witness.source))
    moved = replace(witness.behind(node, prepare), exact=InDouble(witness.predict, witness.exact, prepare))
    if any(score in topological(node) for score in move.scores):
        # a score may equal a threshold up to rounding: then the steps' own rounding decides the side
        moved = replace(moved, lower=True)
    if not move.reads_values(node):
        return moved  # trees read the raw columns themselves, so the steps' rounding does not matter
    return replace(moved, rtol=max(witness.rtol, STEPS_RTOL), atol=max(witness.atol, STEPS_ATOL))
