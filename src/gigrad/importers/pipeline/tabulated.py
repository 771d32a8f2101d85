"""Encoders of category_encoders: each column's labels are tabulated by asking the fitted encoder itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._common.optional import require
from ..._io.tables import are_missing
from ...errors import UnsupportedModelError
from .steps import Encode
from .table import Feature, Table

_NEVER_SEEN: tuple[Any, Any] = ("a label that no table holds", 987654321.0)


def category_encoder(encoder: Any, table: Table) -> Table:
    """The columns that the encoder was told of become numbers; the others pass."""
    name = type(encoder).__name__
    names = [str(n) for n in encoder.feature_names_in_]
    if len(names) != len(table.features):
        raise UnsupportedModelError(f"{name} was fitted on {len(names)} columns and is given {len(table.features)}.")
    labels = {str(c): _labels(encoder, c) for c in encoder.cols}
    made = {n: _outputs(encoder, n) if n in labels else [n] for n in names}
    if [o for n in names for o in made[n]] != [str(o) for o in encoder.get_feature_names_out()]:
        raise UnsupportedModelError(
            f"{name} gives columns that are not those of its labels in order (it drops some, or adds an intercept), "
            "which is not imported. Use it with drop_invariant=False, or use TargetEncoder or WOEEncoder."
        )
    usual = {n: labels[n][0] if n in labels else 0.0 for n in names}
    out: list[Feature] = []
    for feature, n in zip(table.features, names, strict=True):
        if n not in labels:
            out.append(feature)
            continue
        steps = _steps(encoder, usual, n, labels[n], made[n])
        out += Table((feature,) * len(steps)).then(steps, name).features
    return table.become(out)


def _mapping(encoder: Any, column: Any) -> Any:
    """The table in which an encoder looks a column's labels up."""
    mapping = getattr(getattr(encoder, "ordinal_encoder", None), "mapping", None) or getattr(encoder, "mapping", None)
    if isinstance(mapping, dict):
        return mapping[column]
    found = [entry["mapping"] for entry in mapping or () if entry["col"] == column]
    if not found:
        raise UnsupportedModelError(
            f"{type(encoder).__name__} keeps no list of the labels of {str(column)!r}, so it cannot be tabulated. Use "
            "one that does: TargetEncoder, WOEEncoder, OrdinalEncoder, OneHotEncoder, BinaryEncoder."
        )
    return found[0]


def _labels(encoder: Any, column: Any) -> list[Any]:
    kept = [v for v in _mapping(encoder, column).index.tolist() if not are_missing([v])[0]]
    if not kept:
        raise UnsupportedModelError(f"{type(encoder).__name__} knows no label of {str(column)!r}.")
    return kept


def _outputs(encoder: Any, column: str) -> list[str]:
    """The names of the columns that one becomes: those of a table of several, or its own."""
    mapping = getattr(encoder, "mapping", None)
    tables = [m["mapping"] for m in mapping if m["col"] == column] if isinstance(mapping, list) else []
    return [str(c) for c in tables[0].columns] if tables and hasattr(tables[0], "columns") else [column]


def _steps(
    encoder: Any, usual: dict[str, Any], column: str, labels: Sequence[Any], made: Sequence[str]
) -> list[Encode]:
    known = _asked(encoder, usual, column, labels, made)
    if known is None:
        raise UnsupportedModelError(f"{type(encoder).__name__} refuses labels of {column!r} that it was fitted on.")
    text = any(isinstance(v, str) for v in labels)
    unknown = _asked(encoder, usual, column, [_NEVER_SEEN[0] if text else _NEVER_SEEN[1]], made)
    missing = _asked(encoder, usual, column, [np.nan], made)
    return [
        Encode(
            tuple(labels),
            known[:, k],
            None if unknown is None else float(unknown[0, k]),
            None if missing is None else float(missing[0, k]),
        )
        for k in range(len(made))
    ]


def _asked(encoder: Any, usual: dict[str, Any], column: str, values: Sequence[Any], made: Sequence[str]) -> Any:
    """What the encoder makes of values of one column, (values, outputs); None where it refuses them."""
    pd = require("pandas", "frames")
    frame = pd.DataFrame({n: list(values) if n == column else [v] * len(values) for n, v in usual.items()})
    if isinstance(usual[column], str):
        frame[column] = frame[column].astype(object)
    try:
        out = encoder.transform(frame)
    except (ValueError, KeyError, TypeError):
        return None
    return np.asarray(out[list(made)], np.float64)
