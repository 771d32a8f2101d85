"""Tabulated transformers: their `transform` is called on each label of a column, or between the edges of its bins.

A fitted transformer stores its labels, or the edges of its bins. Its own `transform` gives the output for each, for
unknown labels and for missing values, so that none of its arithmetic is reimplemented here.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._common.optional import require
from ..._io.tables import are_missing
from ...errors import UnsupportedModelError
from ...graph import Array
from .labels import Encode, Relabel
from .pieces import before
from .steps import Stairs, Step
from .table import Feature, Table

NEVER_SEEN: tuple[Any, Any] = ("a label that no table holds", 987654321.0)


class ColumnCall:
    """Calls a fitted transformer on values of one column at a time; the others have values that it accepts.

    Parameters
    ----------
    usual : mapping of str to object
        A row that the transformer accepts: column -> value.
    named : bool
        Whether it was fitted on a data frame.
    """

    def __init__(self, transformer: Any, usual: Mapping[str, Any], named: bool = True) -> None:
        self.transformer, self.usual, self.named = transformer, dict(usual), named

    def __call__(self, column: str, values: Sequence[Any] | Array) -> NDArray[Any] | None:
        """The output for values of one column, (values, outputs); None if the transformer refuses them."""
        given = list(values)
        columns = {n: given if n == column else [v] * len(given) for n, v in self.usual.items()}
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                out = self.transformer.transform(self._table(columns, column))
            except (ValueError, KeyError, TypeError):
                return None
        out = out.toarray() if hasattr(out, "toarray") else out
        found = np.asarray(out) if np.ndim(out) == 2 else np.asarray(out)[:, None]
        return found if len(found) == len(given) else None

    def _table(self, columns: dict[str, list[Any]], column: str) -> Any:
        """The rows that the step is called on, in the form that it was fitted on."""
        if self.named:
            frame = require("pandas", "frames").DataFrame(columns)
            if isinstance(self.usual[column], str):
                frame[column] = frame[column].astype(object)
            return frame
        text = any(isinstance(v, str) for v in self.usual.values())
        return np.array(list(columns.values()), object if text else np.float64).T

    def refuse(self, what: str) -> UnsupportedModelError:
        return UnsupportedModelError(f"The step {of_module(self.transformer)} {what}")


def of_module(transformer: Any) -> str:
    """A transformer's name and module, for messages."""
    function = getattr(transformer, "func", None)  # of a FunctionTransformer
    of = f" of {getattr(function, '__name__', type(function).__name__)!r}" if callable(function) else ""
    return f"{type(transformer).__name__}{of} ({type(transformer).__module__})"


def labels_tabulated(call: ColumnCall, column: str, labels: Sequence[Any], outputs: Sequence[int]) -> list[Step]:
    """One step for each output: the output for each label, for an unknown and for a missing one."""
    known = call(column, labels)
    if known is None:
        raise call.refuse(f"refuses labels of {column!r} that it was fitted on.")
    text = any(isinstance(v, str) for v in labels)
    unknown = call(column, [NEVER_SEEN[0] if text else NEVER_SEEN[1]])
    missing = call(column, [np.nan])
    return [_step(labels, known[:, k], *(None if v is None else v[0, k] for v in (unknown, missing))) for k in outputs]


def _step(labels: Sequence[Any], known: NDArray[Any], unknown: Any, missing: Any) -> Step:
    """The step that maps each label as tabulated, to texts or to numbers."""
    if any(isinstance(v, str) for v in known.tolist()):
        passed = isinstance(unknown, str) and unknown in NEVER_SEEN
        return Relabel(tuple(labels), tuple(known.tolist()), None if passed else unknown, missing, passed)
    others = (None if v is None else float(v) for v in (unknown, missing))
    return Encode(tuple(labels), np.asarray(known, np.float64), *others)


def numbers_tabulated(
    call: ColumnCall, column: str, stored: Sequence[float] | Array, outputs: Sequence[int]
) -> list[Stairs]:
    """One step function for each output, which jumps only at the numbers that the transformer compares with."""
    numbers = np.unique(np.asarray(stored, np.float64))
    numbers = numbers[np.isfinite(numbers)]
    edges = np.concatenate([before(numbers), numbers])
    order = np.argsort(edges)
    edges, places = edges[order], np.concatenate([numbers, numbers])[order]
    # the number after the last edge: a transformer that compares in float32 refuses the largest float64
    found = call(column, np.append(edges, np.nextafter(numbers[-1], np.inf) if len(numbers) else 0.0))
    if found is None:
        raise call.refuse(f"refuses numbers in {column!r}, so what it does to the column cannot be tabulated.")
    missing = call(column, [np.nan])
    out = []
    for k in outputs:
        values = np.asarray(found[:, k], np.float64)
        changes = ~((values[1:] == values[:-1]) | (np.isnan(values[1:]) & np.isnan(values[:-1])))
        nothing = None if missing is None else float(missing[0, k])
        out.append(Stairs(edges[changes], values[np.append(changes, True)], nothing, places[changes]))
    return out


# ---------------------------------------------------------------- category_encoders


def category_encoder(encoder: Any, table: Table) -> Table:
    """category_encoders: the columns that the encoder was given to encode become numbers; others are unchanged."""
    name = type(encoder).__name__
    names = [str(n) for n in encoder.feature_names_in_]
    if len(names) != len(table.features):
        raise UnsupportedModelError(f"{name} was fitted on {len(names)} columns and is given {len(table.features)}.")
    labels = {str(c): _labels(encoder, c) for c in encoder.cols}
    made = {n: _outputs(encoder, n) if n in labels else [n] for n in names}
    outputs = [o for n in names for o in made[n]]
    if outputs != [str(o) for o in encoder.get_feature_names_out()]:
        raise UnsupportedModelError(
            f"{name} outputs columns that are not those of its labels in order (it drops some, or adds an intercept), "
            "which is not supported. Use it with drop_invariant=False, or use TargetEncoder or WOEEncoder."
        )
    call = ColumnCall(encoder, {n: labels[n][0] if n in labels else 0.0 for n in names})
    out: list[Feature] = []
    for feature, n in zip(table.features, names, strict=True):
        if n not in labels:
            out.append(feature)
            continue
        steps = labels_tabulated(call, n, labels[n], [outputs.index(o) for o in made[n]])
        out += Table((feature,) * len(steps)).then(steps, name).features
    return table.become(out)


def _mapping(encoder: Any, column: Any) -> Any:
    """The mapping by which an encoder looks up a column's labels."""
    mapping = getattr(getattr(encoder, "ordinal_encoder", None), "mapping", None) or getattr(encoder, "mapping", None)
    if isinstance(mapping, dict):
        return mapping[column]
    found = [entry["mapping"] for entry in mapping or () if entry["col"] == column]
    if not found:
        raise UnsupportedModelError(
            f"{type(encoder).__name__} stores no list of the labels of {str(column)!r}, so it cannot be tabulated. Use "
            "one that does: TargetEncoder, WOEEncoder, OrdinalEncoder, OneHotEncoder, BinaryEncoder."
        )
    return found[0]


def _labels(encoder: Any, column: Any) -> list[Any]:
    """The labels of a column that an encoder was fitted on."""
    kept = [v for v in _mapping(encoder, column).index.tolist() if not are_missing([v])[0]]
    if not kept:
        raise UnsupportedModelError(f"{type(encoder).__name__} must have labels of {str(column)!r}; it has none.")
    return kept


def _outputs(encoder: Any, column: str) -> list[str]:
    """The names of the output columns of a column: those of a mapping to several, or its own."""
    mapping = getattr(encoder, "mapping", None)
    tables = [m["mapping"] for m in mapping if m["col"] == column] if isinstance(mapping, list) else []
    return [str(c) for c in tables[0].columns] if tables and hasattr(tables[0], "columns") else [column]
