"""Any function with a gradient as a model: a formula, a torch callable, a model of another library."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._common import checks
from .._common.optional import require
from .._io.tables import Rows, listed
from ..errors import InputError, kind_of
from ..graph import Array, Column, Graph, Input, Node, Opaque, Witness, rewire, topological
from .common.codes import coded, on_codes, with_codes
from .common.links import plain_outputs
from .keras import function_of, is_keras
from .torch.call import InHalves, Largest, TorchGradient, TorchValue
from .torch.copy import require_eval_mode, uncompiled


def function(
    value: Callable[[Any], Any],
    gradient: Callable[[Array], Any] | str,
    columns: int | Sequence[str],
    *,
    outputs: int | Sequence[str] = 1,
    categories: Mapping[str, int | Sequence[float]] | None = None,
    breaks: Mapping[str | int, Sequence[float]] | None = None,
    label: str | None = None,
) -> Graph:
    """A smooth function of the columns as a model, to be explained alone or inside `stack` and `average`.

    Parameters
    ----------
    value : callable
        Takes rows (n, p) in float64, gives (n,) or (n, outputs); each row by itself. A torch module or a Keras
        model may be given too.
    gradient : callable or "autograd"
        Takes rows (n, p), gives the derivatives (n, p), or (n, outputs, p) for several outputs. "autograd" for a
        `value` that works on torch tensors in float64, for a torch module and for a Keras model of any backend.
    columns : int or sequence of str
        How many columns it reads, or their names.
    outputs : int or sequence of str
        How many numbers it gives a row, or their names.
    categories : mapping of str to int or sequence of numbers, optional
        Columns that hold codes, such as those that an embedding is looked up by: their number, for 0, 1, 2..., or the
        codes themselves. Such a column changes at once, half-way, and needs no gradient. Columns that an embedding of
        a torch module or a Keras model reads directly need not be named.
    breaks : mapping of column to sequence of float, optional
        Values of a column, by name or position, at which the slope jumps or between which the function is steep. Paths
        are integrated from break to break.
    label : str, optional
        Its name in messages.

    Notes
    -----
    The function must be continuous in all other columns. One that changes although its gradient is zero is refused; a
    gradient that is wrong in another way shows in the explanation's `gap`, with a warning. A spike much narrower than
    the path may lie between the points at which the function is evaluated; without `breaks` it goes unnoticed.

    Examples
    --------
    >>> import numpy as np
    >>> import gigrad as gig
    >>> def product(x):
    ...     return x[:, 0] * x[:, 1]
    >>> def gradient(x):
    ...     return x[:, ::-1]
    >>> spent = gig.function(product, gradient, columns=["price", "amount"])
    >>> gig.explain_pairs(spent, [[1.0, 2.0]], [[3.0, 4.0]]).values.round(9)
    array([[6., 4.]])
    """
    names, read = _columns(columns)
    read = _with_categories(read, categories)
    output_names = _names(outputs, "outputs") or plain_outputs(checks.whole(outputs, "outputs"))
    label = label or _name(value)
    if not callable(value):
        raise InputError(f"value must be a function of rows; got {kind_of(value)}.")
    if not callable(gradient) and gradient != "autograd":
        raise InputError(f'gradient must be a function or "autograd"; got {gradient!r}.')
    if isinstance(gradient, str):
        return _by_autograd(value, read, names is not None, output_names, label, _breaks(breaks, read))
    source = Input(len(read))
    size = len(output_names)
    node = Opaque(
        with_codes(source, read), size, _Columns(value), _Pullback(gradient, size, label), label, _breaks(breaks, read)
    )
    return Graph(
        read, source, node, node, output_names, witnesses=(_witness(node, value, read, label),),
        named=names is not None, label=label,
    )  # fmt: skip


def _witness(node: Node, value: Callable[[Any], Any], columns: tuple[Column, ...], label: str) -> Witness:
    functions = (_OnRows(value), Largest(value), InHalves(value, label))
    own, scale, exact = (on_codes(f, columns) for f in functions)
    return Witness(node, own, label, rtol=1e-9, scale=scale, exact=exact)


Breaks = tuple[tuple[int, tuple[float, ...]], ...]


def _by_autograd(
    value: Any, columns: tuple[Column, ...], named: bool, names: tuple[str, ...], label: str, breaks: Breaks
) -> Graph:
    """A function that torch or Keras differentiates; a module is read layer by layer where it can be."""
    if is_keras(value):
        return _named_outputs(_with_breaks(function_of(value, columns, named), breaks), names, label)
    torch = require("torch", "torch")
    if isinstance(value, torch.nn.Module):
        from .torch import graph_of

        value = uncompiled(value)
        require_eval_mode(value)
        return _named_outputs(_with_breaks(graph_of(value, columns, named), breaks), names, label)
    call = TorchValue(value, label)
    source = Input(len(columns))
    node = Opaque(with_codes(source, columns), len(names), call, TorchGradient(call), label, breaks)
    witness = _witness(node, call, columns, label)
    return Graph(columns, source, node, node, names, witnesses=(witness,), named=named, label=label)


def _named_outputs(graph: Graph, names: tuple[str, ...], label: str) -> Graph:
    if graph.score.width != len(names):
        raise InputError(f"{label} must give {len(names)} numbers a row (outputs); it gives {graph.score.width}.")
    return replace(graph, output_names=names, margin_names=names, label=label)


def _with_breaks(graph: Graph, breaks: Breaks) -> Graph:
    """The graph of a module with breaks added to its opaque parts that read the rows."""
    outputs = (graph.score, graph.margin, *(w.node for w in graph.witnesses))
    parts = [n for n in topological(*outputs) if isinstance(n, Opaque) and n.source is graph.input]
    moved = rewire(outputs, {n: replace(n, breaks=breaks) for n in parts})
    witnesses = tuple(replace(w, node=moved[w.node]) for w in graph.witnesses)
    return replace(graph, score=moved[graph.score], margin=moved[graph.margin], witnesses=witnesses)


def _breaks(given: Mapping[str | int, Sequence[float]] | None, columns: tuple[Column, ...]) -> Breaks:
    """Breaks by position, checked."""
    names = {c.name: j for j, c in enumerate(columns)}
    out: dict[int, tuple[float, ...]] = {}
    for column, values in (checks.mapping(given, "breaks", '{"age": [18, 65]}') if given is not None else {}).items():
        place = names.get(column, column)
        if not checks.is_whole(place) or place not in range(len(columns)):
            raise InputError(f"breaks must name columns of the function ({', '.join(names)}); got {column!r}.")
        try:
            numbers = np.asarray(values, np.float64).ravel()
        except (TypeError, ValueError):
            numbers = np.array([np.nan])
        if not np.isfinite(numbers).all() or not len(numbers):
            raise InputError(f"The breaks of column {column!r} must be finite numbers; got {values!r:.60}.")
        out[int(place)] = tuple(np.unique(numbers).tolist())
    return tuple(sorted(out.items()))


def _columns(columns: int | Sequence[str]) -> tuple[tuple[str, ...] | None, tuple[Column, ...]]:
    names = _names(columns, "columns")
    made_up = () if names else tuple(f"x{j}" for j in range(checks.whole(columns, "columns")))
    return names, tuple(Column(n, missing=False) for n in names or made_up)


def _with_categories(
    columns: tuple[Column, ...], categories: Mapping[str, int | Sequence[float]] | None
) -> tuple[Column, ...]:
    """The columns, with those that hold codes as categories."""
    if categories is None:
        return columns
    checks.mapping(categories, "categories", '{"grade": 7}')
    names = [c.name for c in columns]
    unknown = [name for name in categories if name not in names]
    if unknown:
        raise InputError(f"categories must name columns of the function, {listed(names)}; got {unknown[0]!r}.")
    codes = {name: _codes(name, given) for name, given in categories.items()}
    return tuple(coded(c, codes[c.name]) if c.name in codes else c for c in columns)


def _codes(name: str, given: Any) -> Sequence[float]:
    """The codes of a category column: 0, 1, ... up to a number, or those listed."""
    if checks.is_whole(given):
        return range(checks.whole(given, f"the number of codes of {name!r}"))
    codes = tuple(given) if isinstance(given, Iterable) else ()
    if not codes or not all(checks.is_number(v) for v in codes) or len(set(codes)) < len(codes):
        raise InputError(f"The codes of {name!r} must be their number, or a list of different numbers; got {given!r}.")
    return codes


def _names(given: int | Sequence[str], what: str) -> tuple[str, ...] | None:
    """Names, all different; None for a number of them."""
    if checks.is_whole(given):
        return None
    names = () if isinstance(given, str) or not isinstance(given, Iterable) else tuple(map(str, given))
    if not names or len(set(names)) < len(names):
        raise InputError(f"{what} must be the number of {what} or their names, all different; got {given!r}.")
    return names


def _name(value: Any) -> str:
    return str(getattr(value, "__name__", type(value).__name__))


@dataclass(frozen=True)
class _Columns:
    """The value with shape (n, 1) where the function returns (n,)."""

    value: Callable[[Array], Any]

    def __call__(self, x: Array) -> Array:
        out = np.asarray(self.value(x), np.float64)
        return out[:, None] if out.ndim == 1 else out


@dataclass(frozen=True)
class _OnRows:
    """A user's function of the encoded rows as a prediction."""

    value: Callable[[Array], Any]

    def __call__(self, rows: Rows) -> Any:
        return self.value(rows.matrix)


@dataclass(frozen=True)
class _Pullback:
    """The pullback of a node, from a user's gradient."""

    gradient: Callable[[Array], Any]
    outputs: int
    label: str

    def __call__(self, x: Array, cotangent: Array) -> Array:
        slopes = np.asarray(self.gradient(x), np.float64)
        wanted = x.shape if self.outputs == 1 and slopes.ndim == 2 else (len(x), self.outputs, x.shape[1])
        if slopes.shape != wanted:
            raise InputError(
                f"The gradient of {self.label} must have shape {wanted}; for {len(x)} rows it gave {slopes.shape}."
            )
        return np.asarray(np.einsum("nk,nkp->np", cotangent, slopes.reshape(len(x), self.outputs, -1)))
