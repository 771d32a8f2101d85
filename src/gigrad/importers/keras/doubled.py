"""Keras layers on the torch backend computed in float64.

Keras casts to a layer's own dtype, and on torch its rules of promotion make float32 of float64 in every matmul, mean
and normalisation, so that no dtype policy gives exact gradients. torch lets a caller intercept every call of its
functions in this thread (`torch.overrides.TorchFunctionMode`): here every shorter float is replaced by float64.
The model itself is not touched. Held against a clone with a float64 policy under patched rules of promotion, 24 kinds
of layers gave the same numbers to the last bit, and LSTM to 6e-17.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from ...graph import Array
from ..torch.call import TorchGradient, TorchValue
from .autograd import Call, Lookups, Shown


@dataclass(frozen=True)
class TorchCall:
    """A call as a function of float64 torch tensors."""

    call: Call

    def __call__(self, x: Any) -> Any:
        import torch

        return torch.cat([out.reshape(len(x), -1).to(x.device).double() for out in self.outputs(x)], dim=1)

    def outputs(self, x: Any, lookups: Lookups | None = None) -> list[Any]:
        """The tensors that the call gives, in their shapes."""
        import torch

        given = [part.int() if whole else part for part, whole in zip(self.call.split(x), self.call.whole, strict=True)]
        with in_double(lookups):
            return self.call.outputs([torch.from_numpy(v) for v in self.call.state], given)


@dataclass(frozen=True)
class OnTorch:
    """How the torch backend evaluates a call."""

    call: Call
    label: str

    @property
    def value(self) -> TorchValue:
        return TorchValue(TorchCall(self.call), self.label)

    @property
    def gradient(self) -> Callable[[Array, Array], Array]:
        return TorchGradient(self.value)

    def show(self, rows: Array) -> Shown:
        """Run the doubled program once: the shapes of its outputs, its look-ups, and whether there are masks."""
        import torch

        lookups: Lookups = []
        with torch.no_grad():
            outputs = TorchCall(self.call).outputs(torch.from_numpy(rows), lookups)
        masks = any(getattr(out, "_keras_mask", None) is not None for out in outputs)
        return Shown([tuple(out.shape) for out in outputs], lookups, masks)

    def now(self) -> OnTorch:
        return replace(self, call=self.call.now())


def in_double(lookups: Lookups | None = None) -> Any:
    """A context in which torch computes in float64; every table lookup is appended to `lookups`."""
    return _mode()(lookups)


@cache
def _mode() -> Any:
    """A torch mode that sends every operation to `_called`; a class made late, since torch is optional."""
    from torch.overrides import TorchFunctionMode

    def begin(self: Any, lookups: Lookups | None) -> None:
        TorchFunctionMode.__init__(self)
        self.lookups = lookups

    return type("InDouble", (TorchFunctionMode,), {"__init__": begin, "__torch_function__": _called})


def _called(mode: Any, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
    """One call of a torch function, with every shorter float among its arguments, and in its result, as float64."""
    import torch

    name, kwargs = getattr(function, "__name__", ""), kwargs or {}
    if name == "__get__":  # attributes, such as the dtype of a tensor
        return function(*args, **kwargs)
    if name in ("float", "half", "bfloat16"):
        return _doubled(args[0])
    if function is torch.nn.functional.softplus:
        # Beyond its threshold torch replaces softplus by the identity, a step of 2e-9 that float32 cannot see.
        kwargs = {**kwargs, "threshold": 40.0}
    if function is torch.nn.functional.embedding and mode.lookups is not None:
        mode.lookups.append((len(args[1]), args[0].detach().clone()))
    return _doubled(function(*_doubled(tuple(args)), **_doubled(kwargs)))


def _doubled(given: Any) -> Any:
    """Tensors and dtypes of shorter floats as float64, also inside of plain lists, tuples and dicts."""
    import torch

    short = (torch.float32, torch.float16, torch.bfloat16)
    if isinstance(given, torch.Tensor):
        return given.double() if given.dtype in short else given
    if isinstance(given, torch.dtype):
        return torch.float64 if given in short else given
    if type(given) in (list, tuple):
        return type(given)(_doubled(v) for v in given)
    if isinstance(given, Mapping) and type(given) is dict:
        return {key: _doubled(v) for key, v in given.items()}
    return given
