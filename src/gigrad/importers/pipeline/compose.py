"""Composite steps: ColumnTransformer, FeatureUnion, pipelines of transformers; and selectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..common.estimator import takes_missing
from . import prediction_steps, transform
from .steps import Linear, Present
from .table import Feature, Table


def pipeline(steps: Any, table: Table) -> Table:
    """A pipeline used as a transformer: all of its steps."""
    return through(prediction_steps(steps.steps), table)


def through(steps: Sequence[Any], table: Table) -> Table:
    for step in steps:
        table = transform(step, table)
    return table


def frozen(wrapper: Any, table: Table) -> Table:
    return transform(wrapper.estimator, table)


def column_transformer(transformer: Any, table: Table) -> Table:
    """ColumnTransformer: its blocks of output columns in order; a column may be read by several blocks, or by none."""
    weights = transformer.transformer_weights or {}
    dropped = list(table.dropped)
    out: list[Feature | None] = [None] * max((s.stop for s in transformer.output_indices_.values()), default=0)
    for name, step, columns in transformer.transformers_:
        place = transformer.output_indices_[name]
        if place.start == place.stop:
            continue
        chosen = table.take(column_positions(transformer, columns))
        part = _weighted(transform(step, chosen), weights.get(name))
        out[place] = part.features
        dropped += part.dropped[len(table.dropped) :]
    kept = tuple(f for f in out if f is not None)
    return Table(kept, bool(transformer.sparse_output_), tuple(dropped))


def column_positions(transformer: Any, columns: Any) -> list[int]:
    """The positions of the columns that a block of a fitted ColumnTransformer reads."""
    size = transformer.n_features_in_
    if isinstance(columns, slice):
        if isinstance(columns.start, str) or isinstance(columns.stop, str):
            names = transformer.feature_names_in_.tolist()
            start = None if columns.start is None else names.index(columns.start)
            stop = None if columns.stop is None else names.index(columns.stop) + 1  # labels include their end
            return list(range(size))[slice(start, stop, columns.step)]
        return list(range(size))[columns]
    chosen = np.atleast_1d(np.asarray(columns))
    if chosen.dtype == bool:
        return np.nonzero(chosen)[0].tolist()
    if chosen.dtype.kind in "iu":
        return [int(j) for j in chosen % size]
    names = transformer.feature_names_in_.tolist()
    return [names.index(name) for name in chosen.tolist()]


def feature_union(union: Any, table: Table) -> Table:
    """The columns that several transformers make of the same table, side by side."""
    weights = union.transformer_weights or {}
    parts = [
        _weighted(transform(step, table), weights.get(name)) for name, step in union.transformer_list if step != "drop"
    ]
    dropped = [f for p in parts for f in p.dropped[len(table.dropped) :]]
    features = tuple(f for p in parts for f in p.features)
    return Table(features, any(p.sparse for p in parts), (*table.dropped, *dropped))


def _weighted(part: Table, weight: float | None) -> Table:
    return part if weight is None else part.then([Linear(times=float(weight))] * len(part), "transformer_weights")


def selector(transformer: Any, table: Table) -> Table:
    """Any selector: the columns of its support."""
    if not takes_missing(transformer):
        table = table.then([Present()] * len(table), type(transformer).__name__)
    kept = transformer.get_support()
    left_out = tuple(f for f, keep in zip(table.features, kept.tolist(), strict=True) if not keep)
    return replace(table.take(np.nonzero(kept)[0].tolist()), dropped=(*table.dropped, *left_out))
