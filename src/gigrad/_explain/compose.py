"""Functions that combine models: stacks, averages, and an ECDF for rank space."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._common import checks
from .._io.durable import replacing
from ..errors import CorruptModelError, InputError, kind_of
from ..graph import (
    Affine,
    Array,
    Column,
    Concat,
    Graph,
    Input,
    Node,
    Opposite,
    PiecewiseLinear,
    Transform,
    attach,
    merge,
)
from ..importers import import_model


def stack(models: Sequence[Any], head: Any, *, passthrough: bool = False, output: Any = None) -> Graph:
    """Models joined by a head that reads their scores.

    Parameters
    ----------
    models : sequence of fitted models or Graphs
        Each gives the head one column for each of its outputs: the positive class alone when it is binary.
    head : fitted model, Graph or weights
        Reads the models' columns in the order of the list. Weights are numbers, one for each column (or a row of them
        for each output), and are used as they are.
    passthrough : bool
        Whether the head also reads x, after the scores: by name where the head has column names, else all columns of
        the models, in the order in which the models first name them.
    output : None or "margin"
        What each model gives to the head: the number it itself gives, or its raw score.

    Returns
    -------
    Graph
        With the head's outputs, over the union of the columns.

    Notes
    -----
    A library that adds up in float32 (XGBoost) gives scores that are off in the seventh digit. Under a head of trees, a
    row whose score lies that close to one of the head's thresholds may fall on the other side of it; its `gap` shows.

    Examples
    --------
    >>> import gigrad as gig
    >>> from sklearn.linear_model import LinearRegression
    >>> line = LinearRegression().fit([[0, 0], [0, 1], [1, 0]], [0, 1, 2])
    >>> f = gig.stack([tree, line], head=[0.5, 0.5])
    >>> gig.explain_pairs(f, [[0, 0]], [[1, 1]]).values.round(9)
    array([[2. , 1.5]])
    """
    graphs = _imported(models, "stack")
    parts = [g.output(output)[0].width for g in graphs]
    top = _head(head)
    _check_width(top, parts, graphs, passthrough)
    readers = [*graphs, _the_rows_of(top, sum(parts))] if passthrough else graphs
    joined = merge(readers)
    scores = [g.output(output)[0] for g in joined[: len(graphs)]] + [g.score for g in joined[len(graphs) :]]
    below = replace(joined[0], witnesses=_witnesses(joined))
    out = attach(top, below, _side_by_side(scores))
    return replace(out, label=f"{top.label} over {_listed(graphs)}")


def average(models: Sequence[Any], weights: Any = None, *, output: Any = None) -> Graph:
    """The weighted mean of models that give the same outputs.

    Parameters
    ----------
    models : sequence of fitted models or Graphs
    weights : sequence of float, optional
        One for each model, not negative; they are scaled to sum to 1. Equal by default. (For weights that are used as
        they are, give them to `stack` as its head.)
    output : None or "margin"
        Whether to average the numbers the models give or their raw scores.

    Examples
    --------
    >>> import gigrad as gig
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> other = DecisionTreeRegressor(max_depth=1).fit([[0, 0], [1, 0]], [0, 2])
    >>> f = gig.average([tree, other], weights=[3, 1])
    >>> f.predict([[1, 1]])
    array([3.5])
    """
    graphs = _imported(models, "average")
    names = [g.output(output)[1] for g in graphs]
    for graph, own in zip(graphs, names, strict=True):
        if len(own) != len(names[0]) or (own != names[0] and set(own) == set(names[0])):
            raise InputError(
                f"average needs models with the same outputs in the same order; {graphs[0].label} gives "
                f"{', '.join(names[0])} and {graph.label} {', '.join(own)}."
            )
    share = checks.weights(weights, len(graphs), "model")
    joined = merge(graphs)
    width = len(names[0])
    source = _side_by_side([g.output(output)[0] for g in joined])
    weight: Array = np.concatenate([w * np.eye(width) for w in share], axis=1)
    mean = Affine(source, weight, np.zeros(width))
    return replace(
        joined[0], score=mean, margin=mean, output_names=names[0], margin_names=names[0],
        witnesses=_witnesses(joined), no_score="", label=f"average of {_listed(graphs)}",
        opposite=_left_out(graphs, len(names[0]), output == "margin"),
    )  # fmt: skip


def _left_out(graphs: Sequence[Graph], width: int, margin: bool) -> Opposite | None:
    """The class that a binary average does not output; its score is unknown where the models disagree about it."""
    found = [g.opposite for g in graphs]
    known = [o for o in found if o is not None and len(o.names) == width]
    if not known:
        return None
    totals = {None if o is None else o.margin_total if margin else o.score_total for o in found}
    same = len(totals) == 1 and len({o.names for o in known}) == 1 and len(known) == len(found)
    total = totals.pop() if same else None
    return Opposite(known[0].names, total, total)


def _imported(models: Sequence[Any], what: str) -> list[Graph]:
    """The graphs of a list of models; an InputError if it is none."""
    if not isinstance(models, (list, tuple)) or not models:
        given = "an empty one" if isinstance(models, (list, tuple)) else kind_of(models)
        raise InputError(f"{what} must be given a list of one or more models; got {given}.")
    return [import_model(m) for m in models]


def _head(head: Any) -> Graph:
    """The head of a stack: a model, or weights of a sum (a row for each output)."""
    if not isinstance(head, (list, tuple, np.ndarray)):
        return import_model(head)
    try:
        weight = np.atleast_2d(np.asarray(head, dtype=np.float64))
    except (TypeError, ValueError):
        weight = np.zeros((0, 0))
    if weight.ndim != 2 or not weight.size or not np.isfinite(weight).all():
        raise InputError("A head of weights must be finite numbers, one for each column, or a row of them an output.")
    source = Input(weight.shape[1])
    node = Affine(source, weight, np.zeros(len(weight)))
    names = ("prediction",) if len(weight) == 1 else tuple(str(k) for k in range(len(weight)))
    columns = tuple(Column(f"x{j}", missing=False) for j in range(source.width))
    return Graph(columns, source, node, node, names, label="weighted sum")


def _check_width(head: Graph, parts: Sequence[int], graphs: Sequence[Graph], passthrough: bool) -> None:
    """Refuse a head that does not read as many columns as the models give scores."""
    wanted, given = head.input.width, sum(parts)
    if (wanted > given) if passthrough else (wanted == given):
        if any(c.kind == "category" for c in head.columns[:given]):
            raise InputError(f"{head.label} must read the models' scores as numbers; it reads a category among them.")
        return
    each = ", ".join(f"{n} from {g.label}" for n, g in zip(parts, graphs, strict=True))
    if passthrough:
        raise InputError(
            f"With passthrough the head must read the {given} scores ({each}) and then columns of x; {head.label} "
            f"reads {wanted} columns in all."
        )
    hint = " If it also reads x, pass passthrough=True." if wanted > given else ""
    raise InputError(f"The head must read the {given} scores ({each}); {head.label} reads {wanted} columns.{hint}")


def _the_rows_of(head: Graph, skip: int) -> Graph:
    """The columns of x that the head reads, as a graph of their own, so that they are shared with the models'."""
    columns = head.columns[skip:]
    source = Input(len(columns))
    names = tuple(c.name for c in columns)
    return Graph(columns, source, source, source, names, named=head.named, label=head.label)


def _side_by_side(nodes: Sequence[Node]) -> Node:
    return nodes[0] if len(nodes) == 1 else Concat(tuple(nodes))


def _witnesses(graphs: Sequence[Graph]) -> tuple[Any, ...]:
    return tuple(w for g in dict.fromkeys(graphs) for w in g.witnesses)


def _listed(graphs: Sequence[Graph]) -> str:
    return ", ".join(g.label for g in graphs)


_ROUNDINGS = 64.0  # two sums of the same numbers may differ by this many units of roundoff


class SmoothedECDF(Transform):
    """A strictly increasing piecewise-linear approximation of the distribution of scores: maps a score to its rank.

    Linear between its knots, 0 below the first and 1 above the last. Build it with `fit`.

    Attributes
    ----------
    x : (knots,)
        Scores, strictly increasing.
    u : (knots,)
        Ranks, strictly increasing from 0 to 1.

    Examples
    --------
    >>> import gigrad as gig
    >>> rank = gig.SmoothedECDF.fit([300, 500, 600, 640, 700])
    >>> rank([300, 550, 900])
    array([0.   , 0.375, 1.   ])
    >>> rank.inverse(0.5)
    array(600.)
    """

    def __init__(self, x: Any, u: Any) -> None:
        self.x: Array = _numbers(x, "scores").copy()
        self.u: Array = _numbers(u, "ranks").copy()
        if self.x.ndim != 1 or self.x.shape != self.u.shape or len(self.x) < 2:
            raise InputError("SmoothedECDF needs two or more knots, as many scores as ranks.")
        if not all(np.isfinite(v).all() and (np.diff(v) > 0).all() for v in (self.x, self.u)):
            raise InputError("SmoothedECDF needs finite knots, strictly increasing in both score and rank.")
        self.x.setflags(write=False)
        self.u.setflags(write=False)

    @classmethod
    def fit(cls, scores: Any, knots: int = 100) -> SmoothedECDF:
        """Smooth the empirical distribution of `scores` with about `knots` knots at equal ranks.

        Tied scores make one knot at the middle of their ranks; the ends are rank 0 and 1. Scores that differ by no more
        than the rounding of a model's sums are tied: which of them a row gets depends only on the order of summation.
        """
        values = np.sort(_numbers(scores, "scores").ravel())
        knots = checks.whole(knots, "knots", least=2)
        if not np.isfinite(values).all():
            raise InputError("scores must be finite; some are NaN or infinite.")
        distinct, first = _apart(*np.unique(values, return_index=True))
        if len(distinct) < 2:
            raise InputError(f"scores must have at least two distinct values to rank; got {len(distinct)}.")
        last = np.append(first[1:], len(values))
        rank = (first + last - 1) / 2.0 / (len(values) - 1)
        rank[0], rank[-1] = 0.0, 1.0
        keep = _nearest(rank, np.linspace(0.0, 1.0, knots)) if len(distinct) > knots else np.arange(len(rank))
        return cls(distinct[keep], rank[keep])

    def __call__(self, scores: Any) -> NDArray[np.float64]:
        """The rank, in [0, 1], of every score."""
        return np.asarray(np.interp(_numbers(scores, "scores"), self.x, self.u))

    def inverse(self, ranks: Any) -> NDArray[np.float64]:
        """The score of every rank in [0, 1]."""
        ranks = _numbers(ranks, "ranks")
        if not ((ranks >= 0) & (ranks <= 1)).all():
            raise InputError("ranks must lie in [0, 1].")
        return np.asarray(np.interp(ranks, self.u, self.x))

    def apply(self, source: Node) -> Node:
        return PiecewiseLinear(source, self.x, self.u)

    def save(self, path: Any) -> None:
        """Write the knots to a JSON file, to the last bit."""
        content = json.dumps({"format": "gigrad-ecdf-1", "x": self.x.tolist(), "u": self.u.tolist()})
        with replacing(Path(path)) as aside:
            aside.write_text(content, encoding="utf-8")

    @classmethod
    def load(cls, path: Any) -> SmoothedECDF:
        """Read what `save` wrote."""
        try:
            found = json.loads(Path(path).read_text(encoding="utf-8"))
            if found["format"] != "gigrad-ecdf-1":
                raise KeyError("format")
            return cls(found["x"], found["u"])
        except OSError as error:
            raise InputError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}.") from None
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise CorruptModelError(
                f"{path} must be a file written by SmoothedECDF.save; it is not ({error})."
            ) from None

    def __repr__(self) -> str:
        return f"SmoothedECDF({len(self.x)} knots from {self.x[0]:.6g} to {self.x[-1]:.6g})"


def _numbers(values: Any, what: str) -> Array:
    """An array of float64, or an InputError that names what it should be."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be numbers; got {values!r:.60}.") from None


def _apart(values: Array, first: NDArray[np.int64]) -> tuple[Array, NDArray[np.int64]]:
    """The increasing scores without near-ties: each is farther from the last one kept than a model's rounding error."""
    if len(values) < 2:
        return values, first
    with np.errstate(over="ignore"):
        single = np.array_equal(values, values.astype(np.float32))  # a library that adds up in float32
    unit = 2.0**-24 if single else 2.0**-53
    # The rounding error of a sigmoid is relative to its value, that of a sum to its largest possible value. A sigmoid
    # is never 0, so numbers from 0 to 1 of which one is 0 are means of leaves.
    sigmoid = values.min() > 0 and values.max() <= 1
    sizes = np.abs(values) if sigmoid else np.full(len(values), np.abs(values).max())
    near = _ROUNDINGS * unit * sizes
    if (np.diff(values) > near[1:]).all():
        return values, first
    kept = [0]
    for i in range(1, len(values)):
        if values[i] - values[kept[-1]] > near[i]:
            kept.append(i)
    return values[kept], first[kept]


def _nearest(sorted_values: Array, wanted: Array) -> NDArray[np.int64]:
    """Positions of the values nearest to the wanted ones, each once."""
    right = np.searchsorted(sorted_values, wanted).clip(1, len(sorted_values) - 1)
    nearer_left = wanted - sorted_values[right - 1] <= sorted_values[right] - wanted
    return np.unique(right - nearer_left)
