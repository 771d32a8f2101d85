"""torch functions as NumPy ones, in float64: values, and gradients by autograd."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._io.tables import Rows
from ...errors import InputError, UnsupportedModelError, kind_of
from ...graph import Array


@dataclass(frozen=True)
class TorchValue:
    """`function` of float64 tensors, called with arrays: (n, p) -> (n, k)."""

    function: Callable[[Any], Any]
    label: str

    def __call__(self, x: Array) -> Array:
        import torch

        with torch.no_grad():
            out = self.tensor(torch.from_numpy(np.array(x, np.float64)))
        return np.asarray(out.numpy(), np.float64)

    def tensor(self, x: Any) -> Any:
        """The output as a float64 tensor of shape (n, k); an error for any other shape."""
        out = self.any_shape(x)
        if out.ndim not in (1, 2) or len(out) != len(x):
            raise InputError(
                f"{self.label} must give a tensor of shape (rows,) or (rows, outputs); for {len(x)} rows it gave shape "
                f"{tuple(out.shape)}."
            )
        return out.reshape(len(x), -1)

    def any_shape(self, x: Any) -> Any:
        """The output as a float64 tensor of any shape."""
        import torch

        try:
            out = self.function(x)
        except RuntimeError as error:
            if "indices" in str(error):
                raise UnsupportedModelError(
                    f"{self.label} has an nn.Embedding, whose input must be integers: read the column as "
                    "x[:, j].long(), or put nn.Embedding first in an nn.Sequential, followed by nn.Flatten."
                ) from None
            if "dtype" not in str(error) and "Float" not in str(error):
                raise
            raise UnsupportedModelError(
                f"{self.label} must work in float64, so that gradients are exact; it forces float32 somewhere: "
                f"{str(error).splitlines()[0]}. Replace casts such as .float() by .to(x.dtype)."
            ) from None
        if not isinstance(out, torch.Tensor):
            raise InputError(f"{self.label} must give one tensor; it gave {kind_of(out)}.")
        if out.dtype != torch.float64:
            raise UnsupportedModelError(
                f"{self.label} must work in float64, so that gradients are exact; for float64 rows it gave "
                f"{out.dtype}. Replace casts such as .float() by .to(x.dtype)."
            )
        return out


@dataclass(frozen=True)
class TorchGradient:
    """The pullback of a TorchValue by autograd: (n, p), (n, k) -> (n, p)."""

    value: TorchValue

    def __call__(self, x: Array, cotangent: Array) -> Array:
        import torch

        tensor = torch.from_numpy(np.array(x, np.float64)).requires_grad_(True)
        with torch.enable_grad():
            out = self.value.tensor(tensor.clone())  # a copy, which a module may change in place
        if not out.requires_grad:  # a function that ignores its input
            return np.zeros_like(x)
        try:
            (gradient,) = torch.autograd.grad(out, tensor, torch.from_numpy(np.array(cotangent)), allow_unused=True)
        except RuntimeError as error:
            raise UnsupportedModelError(
                f"{self.value.label} must have a gradient that torch can compute; torch says: "
                f"{str(error).splitlines()[0].rstrip('.')}. Replace what has none by something continuous, or give "
                "the gradient: gigrad.function(value, gradient, columns)."
            ) from error
        return np.zeros_like(x) if gradient is None else np.asarray(gradient.numpy())


@dataclass(frozen=True)
class InHalves:
    """A function called on the first and the last rows separately, which must equal its output for all rows at once."""

    value: Callable[[Array], Any]
    label: str

    def __call__(self, rows: Rows) -> Array:
        whole = self._on(rows.matrix)
        half = (len(rows) + 1) // 2
        parts = (
            np.concatenate([self._on(rows.matrix[:half]), self._on(rows.matrix[half:])]) if half < len(rows) else whole
        )
        if np.abs(parts - whole).max() > 1e-9 * np.abs(whole).max():
            raise InputError(
                f"{self.label} must score every row by itself; its output for one row depends on the other rows of "
                "the call."
            )
        return parts

    def _on(self, x: Array) -> Array:
        return np.asarray(self.value(x), np.float64).reshape(len(x), -1)


@dataclass(frozen=True)
class Largest:
    """The scale of an unknown function: the largest of its absolute values on the given rows."""

    value: Callable[[Array], Any]

    def __call__(self, rows: Rows) -> Array:
        return np.full(len(rows), np.abs(self.value(rows.matrix)).max(initial=0.0))
