"""The columns of the raw table, derived from how the steps and the model read them.

- A column that only encoders (and the imputers before them) read is ONE category: its labels are those known to any of
  them, and it changes at once.
- A column that anything reads as a number is a number. An encoder of numeric labels on such a column is a set of tests
  of equality on the number; an encoder of text contradicts the other use, and is refused.
- A column that nothing reads is unused: its credit is 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import UnsupportedModelError
from ...graph import Array, Column
from ...graph.columns import ComparedIn
from .labels import Encode, Relabel
from .steps import UNKNOWN, AsMissing, Impute, Indicator, Refused, Step
from .table import Blend, Derived, Feature, fills, run


@dataclass(frozen=True, eq=False)
class Use:
    """A transformed column that is read, and whether its reader accepts a missing value."""

    feature: Derived
    missing: bool
    column: Column | None  # the model's own description, where the model reads it


def uses(features: Sequence[Feature], wanted: Sequence[Column]) -> Iterator[Use]:
    """Every derived column that the model reads, directly or through steps that mix columns."""
    seen: set[int] = set()
    for feature, column in zip(features, wanted, strict=True):
        if column.kind == "unused":
            continue
        if isinstance(feature, Derived):
            yield Use(feature, column.missing, column)
        elif isinstance(feature, Blend):
            yield from _mixed(feature, seen)


def looked_at(dropped: Sequence[Feature]) -> Iterator[Use]:
    """Columns that a selector left out: they are not read, but the steps before it still refuse some values."""
    seen: set[int] = set()
    for feature in dropped:
        if isinstance(feature, Derived):
            yield Use(feature, True, None)
        elif isinstance(feature, Blend):
            yield from _mixed(feature, seen)


def _mixed(feature: Blend, seen: set[int]) -> Iterator[Use]:
    """The raw columns that a blend reads, each block once."""
    if id(feature.block) in seen:
        return
    seen.add(id(feature.block))
    for part in feature.block.inputs:
        if isinstance(part, Derived):
            yield Use(part, feature.block.takes_missing, None)
        elif isinstance(part, Blend):
            yield from _mixed(part, seen)


def raw_columns(names: Sequence[str], found: Sequence[Use]) -> tuple[Column, ...]:
    """One Column for each raw column."""
    readers: list[list[Use]] = [[] for _ in names]
    for use in found:
        readers[use.feature.column].append(use)
    return tuple(_column(name, of) for name, of in zip(names, readers, strict=True))


def _column(name: str, readers: Sequence[Use]) -> Column:
    """A raw column as its readers need it: unused, a number or a category."""
    if not readers:
        return Column(name, kind="unused")
    direct = [u.column for u in readers if u.column and u.column.kind == "category" and not u.feature.steps]
    if direct:
        return _as_the_model_reads_it(name, direct, len(readers))
    kinds = {use.feature.reads for use in readers} - {"any"}
    if "number" in kinds:
        for encode in (e for u in readers for e in _label_steps(u)):
            if not encode.numeric:
                texts = [v for v in (*encode.labels, *getattr(encode, "images", ())) if isinstance(v, str)]
                raise UnsupportedModelError(
                    f"Column {name!r} is read as a number by one step and as text by another (its labels include "
                    f"{texts[0]!r}). Give the pipeline two columns instead."
                )
        missing = all(_takes(u, np.array([np.nan])) for u in readers)
        return replace(_sentinel(readers), name=name, missing=missing)
    return _category(name, readers)


def _sentinel(readers: Sequence[Use]) -> Column:
    """A column whose `missing_value` is the number that all readers first treat as missing, if there is one."""
    first = [u.feature.steps[0] if u.feature.steps else None for u in readers]
    values = {_taken_for_missing(step) for step in first}
    value, compared_in = values.pop() if len(values) == 1 else (None, "float32")
    return Column("", missing_value=value, compared_in=compared_in)


def _taken_for_missing(step: Step | None) -> tuple[float | None, ComparedIn]:
    """The number that a step takes for a missing value, and the precision it compares it in."""
    if isinstance(step, AsMissing):
        return step.value, "float64" if step.low == step.high else "float32"
    if isinstance(step, (Impute, Indicator)) and isinstance(step.marker, float):
        return step.marker, "float64"
    return None, "float32"


def marked_already(feature: Derived, column: Column) -> Derived:
    """The feature for encoded rows, which already have NaN in place of the number that means a missing value."""
    if column.missing_value is None or not feature.steps:
        return feature
    first, *rest = feature.steps
    if isinstance(first, AsMissing):
        return Derived(feature.column, tuple(rest))
    if isinstance(first, (Impute, Indicator)):
        return Derived(feature.column, (replace(first, marker=None), *rest))
    return feature


def _as_the_model_reads_it(name: str, columns: Sequence[Column], readers: int) -> Column:
    """A category that the model reads directly: with its own labels or codes."""
    if len(columns) < readers:
        raise UnsupportedModelError(
            f"Column {name!r} holds category codes for the model and is also read by a step. Give the pipeline two "
            "columns instead, or a column of labels."
        )
    return replace(columns[0], name=name, missing=all(c.missing for c in columns))


def _category(name: str, readers: Sequence[Use]) -> Column:
    """A category column with the labels that all its readers take."""
    labels: dict[Any, None] = {}
    for use in readers:
        read = [v for encode in _label_steps(use) for v in encode.labels]
        labels.update(dict.fromkeys([*read, *fills(use.feature.steps)]))
    known = tuple(v for v in labels if all(_takes(u, objects([v])) for u in readers))
    unknown = all(_takes(u, objects([UNKNOWN])) for u in readers) and len(known) == len(labels)
    missing = all(_takes(u, objects([np.nan])) for u in readers)
    return Column(name, "category", known, missing, unknown="other" if unknown else "refuse")


def _label_steps(use: Use) -> list[Encode | Relabel]:
    """The steps that read the labels of the raw column: those that rename them, and the first that encodes them."""
    found: list[Encode | Relabel] = []
    for step in use.feature.steps if use.feature.reads == "label" else ():
        if isinstance(step, (Encode, Relabel)):
            found.append(step)
        if isinstance(step, Encode):
            break
    return found


def _takes(use: Use, value: NDArray[Any]) -> bool:
    """Whether the steps accept a value, and the reader their output for it."""
    try:
        out = run(use.feature.steps, value)
    except Refused:
        return False
    return use.missing or not np.isnan(np.asarray(out, np.float64)).any()


def objects(values: Sequence[Any]) -> NDArray[Any]:
    out = np.empty(len(values), object)
    out[:] = list(values)
    return out


def images(feature: Derived, column: Column) -> tuple[Array, float, float]:
    """The output for each label of a category column, and for an unknown and a missing one (0 where refused)."""
    table = np.array([float(run(feature.steps, objects([v]))[0]) for v in column.labels or ()])
    unknown = float(run(feature.steps, objects([UNKNOWN]))[0]) if column.unknown == "other" else 0.0
    missing = float(run(feature.steps, objects([np.nan]))[0]) if column.missing else 0.0
    return table, unknown, missing


def image_of_missing(feature: Derived, column: Column) -> float:
    """The output for NaN in a column of numbers (0 if the column refuses it)."""
    return float(run(feature.steps, np.array([np.nan]))[0]) if column.may_be_missing else 0.0
