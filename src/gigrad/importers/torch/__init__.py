"""torch modules: stacks of known layers become nodes, independent of torch; anything else uses autograd."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..._io.tables import Rows
from ...errors import GigradError, InputError, UnsupportedModelError, kind_of
from ...graph import (
    Affine,
    Array,
    Column,
    Elementwise,
    Graph,
    Input,
    LogSoftmax,
    Node,
    Normalized,
    Opaque,
    PiecewiseLinear,
    Softmax,
    Witness,
    topological,
    value_of,
)
from ..common.codes import coded, on_codes, with_codes
from ..common.links import plain_outputs
from ..common.rounding import Layer, LayerScale, sum_units
from .call import InHalves, Largest, TorchGradient, TorchValue
from .copy import double_copy, is_plain, require_eval_mode, uncompiled
from .embedding import begins_with_table, looked_up, stacked_width, with_looked_up


def import_module(module: Any) -> Graph:
    """The graph of a torch.nn.Module in eval mode; its output is both score and margin, since no link is known."""
    module = uncompiled(module)
    require_eval_mode(module)
    return graph_of(module)


def graph_of(module: Any, columns: tuple[Column, ...] | None = None, named: bool = False) -> Graph:
    """The graph of a module in training or evaluation mode; `columns` where they cannot be inferred from its layers.

    `named` says whether tables must have the columns' names, as in `Graph`.
    """
    label = type(module).__name__
    exact = double_copy(module)
    layers = list(_flat(exact))
    codes = begins_with_table(layers)
    if columns is None:
        width = stacked_width(layers) if codes else input_width(exact)
        columns = tuple(Column(f"x{j}", missing=False) for j in range(width))
    source = Input(len(columns))
    if codes:
        columns = tuple(coded(c, range(layers[0].num_embeddings)) for c in columns)
        start, layers = looked_up(source, layers)
    else:
        columns = with_looked_up(exact, columns)
        start = with_codes(source, columns)
    build = _Build(start)
    for layer in layers:
        build.add(layer)
    node = build.finished()
    value = TorchValue(_OfCodes(exact) if codes else exact, label)
    straight = not build.opaque and start is source
    scale = LayerScale(tuple(build.layers)) if straight else Largest(value)
    units = sum(sum_units(w.shape[1]) for w, _ in build.layers) + sum_units(1) if straight else 1e-9
    own, exactly, size = (
        on_codes(predict, columns) for predict in (OwnOutput(module, codes), InHalves(value, label), scale)
    )
    return Graph(
        columns=columns,
        input=source,
        score=node,
        margin=node,
        output_names=plain_outputs(node.width),
        witnesses=(Witness(node, own, label, rtol=units, atol=units * 1e-3, scale=size, exact=exactly),),
        named=named,
        label=label,
    )


@dataclass(frozen=True)
class _OfCodes:
    """A module that reads integers, called with floats."""

    module: Any

    def __call__(self, x: Any) -> Any:
        return self.module(x.long())


@dataclass(frozen=True)
class OwnOutput:
    """The module's own output, in its own precision and on its own device; columns `codes` are passed as integers."""

    module: Any
    codes: bool = False

    def __call__(self, rows: Rows) -> Array:
        import torch

        first = next((p for p in self.module.parameters() if p.is_floating_point()), torch.zeros(1))
        require_eval_mode(self.module)
        with torch.no_grad():
            x = torch.from_numpy(rows.matrix.copy()).to(first.device, torch.long if self.codes else first.dtype)
            out = self.module(x)
        return np.asarray(out.reshape(len(rows), -1).cpu().double().numpy())  # NumPy has no bfloat16


def input_width(module: Any) -> int:
    """The number of columns a module reads: that of one of its first layers, if the module accepts only that many."""
    for size in dict.fromkeys(_sizes(module)):
        if _takes(module, size) and not _takes(module, size + 1):
            return size
    raise UnsupportedModelError(
        f"The number of columns of {kind_of(module)} cannot be inferred from its layers; give it: "
        'gigrad.function(module, "autograd", columns=...), with their number or names.'
    )


def _sizes(module: Any, most: int = 4) -> list[int]:
    """The input widths of the first layers of a module that have a fixed one."""
    import torch

    found: list[int] = []
    for layer in module.modules():
        kind = getattr(layer, "original_name", "")  # of a layer in a jit module
        if isinstance(layer, torch.nn.Linear):
            found.append(layer.in_features)
        elif isinstance(layer, torch.nn.BatchNorm1d):
            found.append(layer.num_features)
        elif isinstance(layer, torch.nn.Unflatten) and layer.dim == 1:
            found.append(int(np.prod(layer.unflattened_size)))
        elif kind in ("Linear", "BatchNorm1d"):
            found.append(layer.weight.shape[-1])
    return found[:most]


def _takes(module: Any, width: int) -> bool:
    """Whether a module runs on rows of this width."""
    try:
        TorchValue(module, type(module).__name__)(np.zeros((2, width)))
    except (RuntimeError, ValueError, IndexError) as error:
        if isinstance(error, GigradError):
            raise
        return False
    return True


def _flat(module: Any) -> Iterator[Any]:
    """The layers of nested plain Sequentials, in order; any other module as one."""
    import torch

    if type(module) is torch.nn.Sequential and is_plain(module):
        for layer in module:
            yield from _flat(layer)
    else:
        yield module


# ---------------------------------------------------------------- layers into nodes


class _Build:
    """Builds nodes layer by layer; the last linear step is kept open, so that scales can be folded into it."""

    def __init__(self, source: Node) -> None:
        self.node = source
        self.layers: list[Layer] = []  # every linear step, for the scale of rounding
        self.opaque = False
        self._open: Layer | None = None  # weight (out, in), or a scale (out,) for each column, and a bias
        self._waiting: list[Any] = []  # layers since the output ceased to be a table, until it is one again

    @property
    def width(self) -> int:
        return self.node.width if self._open is None else len(self._open[1])

    def add(self, layer: Any) -> None:
        known = _known().get(type(layer)) if is_plain(layer) and not self._waiting else None
        if known is None or not known(self, layer):
            self._call(layer)

    def linear(self, weight: Array, bias: Array) -> None:
        """Append a linear layer; a scaling before it is folded in, and one after it may be."""
        if self._open is not None and self._open[0].ndim == 1:
            scale, shift = self._open
            weight, bias = weight * scale, bias + weight @ shift
        else:
            self.flushed()
        self._open = (weight, bias)

    def scale(self, scale: Array, shift: Array) -> None:
        """Append a scaling by column, folded into the linear layer before it."""
        if self._open is None:
            self._open = (scale, shift)
            return
        weight, bias = self._open
        self._open = (weight * (scale[:, None] if weight.ndim == 2 else scale), bias * scale + shift)

    def times(self, factor: float) -> None:
        if factor != 1.0:
            self.scale(np.full(self.width, factor), np.zeros(self.width))

    def put(self, make: Callable[[Node], Node]) -> None:
        self.node = make(self.flushed())

    def flushed(self) -> Node:
        """The node so far, with the linear layer that was kept open for scalings."""
        if self._open is not None:
            weight, bias = self._open
            layer = (weight if weight.ndim == 2 else np.diag(weight)), bias
            self.node, self._open = Affine(self.node, *layer), None
            self.layers.append(layer)
        return self.node

    def _call(self, layer: Any) -> None:
        """Append a layer without a node: it is called with torch's own gradient, with others like it beside it."""
        import torch

        source = self.flushed()
        self._waiting.append(layer)
        value = self._value()
        try:
            with torch.no_grad():
                shape = value.any_shape(torch.from_numpy(self._probe())).shape
        except (RuntimeError, IndexError) as error:
            raise UnsupportedModelError(
                f"{value.label} must accept a row of zeros, by which its output shape is found; it fails on one "
                f"({type(error).__name__}: {str(error).splitlines()[0]:.200}). If it reads a column as codes that do "
                "not begin with 0, declare them: gigrad.function(..., categories={column: [1, 2, 3]})."
            ) from None
        if len(shape) > 2:  # not a table; a later layer such as Flatten may make it one again
            return
        self._waiting = []
        self.node = Opaque(source, shape[1] if len(shape) == 2 else 1, value, TorchGradient(value), value.label)
        self.opaque = True

    def _probe(self) -> Array:
        """The value of the current node for a row of zeros, or of first categories."""
        source = next(n for n in topological(self.node) if isinstance(n, Input))
        return value_of(self.node, {source: np.zeros((1, source.width))})

    def _value(self) -> TorchValue:
        """The waiting layers as one function."""
        import torch

        first, *others = self._waiting
        if not others:
            return TorchValue(first, type(first).__name__)
        whole = torch.nn.Sequential(first, *others).eval()
        return TorchValue(whole, f"{type(first).__name__} to {type(others[-1]).__name__}")

    def finished(self) -> Node:
        """The last node; an error if the module's output is not a table."""
        if self._waiting:
            self._value()(self._probe())
        return self.flushed()


_Add = Callable[[_Build, Any], bool]


def _elementwise(name: str, parameter: str = "") -> _Add:
    """A builder of layers that apply a function to each number, with one attribute as its parameter."""

    def add(build: _Build, layer: Any) -> bool:
        build.put(lambda n: Elementwise(n, name, float(getattr(layer, parameter)) if parameter else 0.0))
        return True

    return add


def _nothing(build: _Build, layer: Any) -> bool:
    return True


def _linear(build: _Build, layer: Any) -> bool:
    """Append a Linear layer."""
    if layer.in_features != build.width:
        raise InputError(f"A Linear layer must have {build.width} inputs here; it has {layer.in_features}.")
    weight = layer.weight.numpy()
    build.linear(weight, layer.bias.numpy() if layer.bias is not None else np.zeros(len(weight)))
    return True


def _batch_norm(build: _Build, layer: Any) -> bool:
    """Append a BatchNorm1d with running statistics: a scaling."""
    if layer.running_mean is None:  # it uses the batch's own mean even in eval mode
        raise UnsupportedModelError(
            "A BatchNorm1d must have running statistics, since otherwise every row depends on the others of its batch; "
            "train it with track_running_stats=True."
        )
    scale = (layer.running_var.numpy() + layer.eps) ** -0.5
    if layer.affine:
        scale = scale * layer.weight.numpy()
    shift = -layer.running_mean.numpy() * scale
    build.scale(scale, shift + layer.bias.numpy() if layer.affine else shift)
    return True


def _normalized(centered: bool) -> _Add:
    """LayerNorm, or RMSNorm, which does not centre and has no bias."""

    def add(build: _Build, layer: Any) -> bool:
        if tuple(layer.normalized_shape) != (build.width,):
            return False
        weight = None if layer.weight is None else layer.weight.numpy()
        default = np.finfo(np.float32 if weight is None else weight.dtype).eps
        build.put(lambda n: Normalized(n, centered, float(default if layer.eps is None else layer.eps)))
        if weight is not None:
            bias = getattr(layer, "bias", None)
            build.scale(weight, np.zeros(len(weight)) if bias is None else bias.numpy())
        return True

    return add


def _softplus(build: _Build, layer: Any) -> bool:
    """softplus(beta x) / beta."""
    build.times(float(layer.beta))
    build.put(lambda n: Elementwise(n, "softplus"))
    build.times(1.0 / float(layer.beta))
    return True


def _log_sigmoid(build: _Build, layer: Any) -> bool:
    """-softplus(-x)"""
    build.times(-1.0)
    build.put(lambda n: Elementwise(n, "softplus"))
    build.times(-1.0)
    return True


def _selu(build: _Build, layer: Any) -> bool:
    build.put(lambda n: Elementwise(n, "elu", 1.6732632423543772848170429916717))
    build.times(1.0507009873554804934193349852946)
    return True


def _gelu(build: _Build, layer: Any) -> bool:
    build.put(lambda n: Elementwise(n, "gelu" if layer.approximate == "none" else "gelu_tanh"))
    return True


def _prelu(build: _Build, layer: Any) -> bool:
    if layer.num_parameters == 1:
        build.put(lambda n: Elementwise(n, "leaky_relu", float(layer.weight)))
    return bool(layer.num_parameters == 1)


def _between(low: str | float, high: str | float, y: tuple[float, float] | None = None) -> _Add:
    """Linear between two inputs and constant beyond; the identity between them unless `y` is given."""

    def add(build: _Build, layer: Any) -> bool:
        x = np.array([float(getattr(layer, v)) if isinstance(v, str) else v for v in (low, high)])
        build.put(lambda n: PiecewiseLinear(n, x, x if y is None else np.array(y)))
        return True

    return add


def _over_columns(node: type[Softmax] | type[LogSoftmax]) -> _Add:
    """The importer of a layer that works on all columns of a row; along another axis it is not read."""

    def add(build: _Build, layer: Any) -> bool:
        if layer.dim in (1, -1):
            build.put(node)
        return layer.dim in (1, -1)

    return add


def _flatten(build: _Build, layer: Any) -> bool:
    return bool(layer.start_dim == 1)  # rows of numbers are flat already


@cache
def _known() -> dict[type, _Add]:
    """By exact type of layer, a function that adds its nodes and returns whether it could; subclasses may differ."""
    from torch import nn

    later = {nn.RMSNorm: _normalized(centered=False)} if hasattr(nn, "RMSNorm") else {}  # from torch 2.4 on
    return later | {
        nn.Linear: _linear,
        nn.BatchNorm1d: _batch_norm,
        nn.LayerNorm: _normalized(centered=True),
        nn.Identity: _nothing,
        nn.Dropout: _nothing,
        nn.AlphaDropout: _nothing,
        nn.FeatureAlphaDropout: _nothing,
        nn.Flatten: _flatten,
        nn.ReLU: _elementwise("relu"),
        nn.LeakyReLU: _elementwise("leaky_relu", "negative_slope"),
        nn.PReLU: _prelu,
        nn.ELU: _elementwise("elu", "alpha"),
        nn.SELU: _selu,
        nn.Tanh: _elementwise("tanh"),
        nn.Sigmoid: _elementwise("sigmoid"),
        nn.LogSigmoid: _log_sigmoid,
        nn.Softplus: _softplus,
        nn.GELU: _gelu,
        nn.SiLU: _elementwise("silu"),
        nn.ReLU6: _between(0.0, 6.0),
        nn.Hardtanh: _between("min_val", "max_val"),
        nn.Hardsigmoid: _between(-3.0, 3.0, (0.0, 1.0)),
        nn.Softmax: _over_columns(Softmax),
        nn.LogSoftmax: _over_columns(LogSoftmax),
    }
