"""Labels turned into numbers: OneHotEncoder, OrdinalEncoder, TargetEncoder, from their fitted categories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._io.tables import are_missing
from ...errors import UnsupportedModelError
from ...graph import Array
from .labels import Encode
from .steps import Step
from .table import Feature, Table


def one_hot_encoder(encoder: Any, table: Table) -> Table:
    out = _widened(table, one_hot_steps(encoder), "OneHotEncoder")
    return out.become(out.features, sparse=bool(encoder.sparse_output))


def one_hot_steps(encoder: Any) -> list[list[Step]]:
    """For each column the steps of its dummies: infrequent labels share the last dummy, a dropped label has none."""
    steps: list[list[Step]] = []
    infrequent = _infrequent(encoder)
    for i, categories in enumerate(encoder.categories_):
        group, rare = _groups(categories, infrequent[i])
        dropped = None if encoder.drop_idx_ is None else encoder.drop_idx_[i]
        columns = [g for g in range(int(group.max()) + 1) if dropped is None or g != group[int(dropped)]]
        unknown = _unknown_group(encoder.handle_unknown, rare)
        steps.append(
            [
                encode(
                    categories,
                    (group == g).astype(np.float64),
                    None if unknown is None else float(g == unknown),
                )
                for g in columns
            ]
        )
    return steps


def _unknown_group(handle: str, rare: int | None) -> int | None:
    """The dummy of an unknown label: -1 for no dummy, None if it is an error."""
    if handle == "error":
        return None
    return -1 if handle == "ignore" or rare is None else rare


def ordinal_encoder(encoder: Any, table: Table) -> Table:
    """Labels as codes; infrequent ones share one."""
    unknown = float(encoder.unknown_value) if encoder.handle_unknown == "use_encoded_value" else None
    infrequent = _infrequent(encoder)
    steps: list[list[Step]] = []
    for i, categories in enumerate(encoder.categories_):
        keep = ~are_missing(categories.tolist())  # a missing label has no code of its own
        codes = np.full(len(categories), float(encoder.encoded_missing_value))
        codes[keep] = _groups(categories[keep], infrequent[i])[0]
        steps.append([encode(categories, codes, unknown)])
    return _widened(table, steps, "OrdinalEncoder")


def target_encoder(encoder: Any, table: Table) -> Table:
    """Labels as their encoded means of the target, by class."""
    classes = len(encoder.classes_) if encoder.target_type_ == "multiclass" else 1
    means = np.broadcast_to(np.asarray(encoder.target_mean_, np.float64), classes)
    steps: list[list[Step]] = [
        [encode(categories, encoder.encodings_[i * classes + k], float(means[k])) for k in range(classes)]
        for i, categories in enumerate(encoder.categories_)
    ]
    return _widened(table, steps, "TargetEncoder")


def encode(categories: NDArray[Any], values: Any, unknown: float | None) -> Encode:
    """One output of an encoder. A missing value is one of its categories, or else unknown."""
    values = np.asarray(values, np.float64)
    gone = are_missing(categories.tolist())
    images: Array = np.unique(values[gone])
    if len(images) > 1:
        raise UnsupportedModelError(
            "An encoder must not distinguish None and NaN, since gigrad has one missing value; this one does. Use one "
            "of them in the training table."
        )
    labels = tuple(v for v, missing in zip(categories.tolist(), gone.tolist(), strict=True) if not missing)
    return Encode(labels, values[~gone], unknown, float(images[0]) if len(images) else unknown)


def _widened(table: Table, steps: Sequence[Sequence[Step]], name: str) -> Table:
    """Every column replaced by one for each of its steps."""
    out: list[Feature] = []
    for feature, own in zip(table.features, steps, strict=True):
        out += Table((feature,) * len(own)).then(own, name).features
    return table.become(out)


def _infrequent(encoder: Any) -> list[Any]:
    enabled = encoder.min_frequency is not None or encoder.max_categories is not None
    return list(encoder.infrequent_categories_) if enabled else [None] * len(encoder.categories_)


def _groups(categories: NDArray[Any], infrequent: Any) -> tuple[NDArray[np.int64], int | None]:
    """The group of each category: frequent ones in order, then one for all infrequent; and the number of the latter."""
    if infrequent is None:
        return np.arange(len(categories)), None
    known = set(infrequent.tolist())
    rare = np.array([v in known for v in categories.tolist()], dtype=bool)
    if are_missing(known).any():
        rare |= are_missing(categories.tolist())
    group = np.cumsum(~rare) - 1
    group[rare] = int((~rare).sum())
    return group, int((~rare).sum())
