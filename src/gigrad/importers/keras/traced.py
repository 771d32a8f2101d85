"""Keras on TensorFlow and JAX computed in float64: the program of a call is traced, and run with float64 throughout.

Keras casts to a layer's own dtype wherever it can, and code of one's own may do so anywhere. A clone with a float64
policy would miss layers that Keras cannot write down, casts in lambdas, and on JAX every promotion, which never gives
float64. The traced program shows every operation; shorter floats in it, be they inputs, weights, constants or types,
become float64. Its gradient is traced by the backend's own autograd, and treated alike. The model is not touched.

Constants in the code of layers (the epsilon of a normalisation, the root of 2 in GELU) are in the program as float32
numbers, as the model computes with them; they are widened, not written anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...errors import UnsupportedModelError
from ...graph import Array
from .autograd import Call, Shape, Shown, State


class Program(Protocol):
    """The traced program of a call, evaluated in float64 on variables and tensors that are given in float64."""

    def __call__(self, variables: Any, tensors: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """The outputs, in their shapes."""

    def slopes(
        self, variables: Any, tensors: Sequence[NDArray[Any]], cotangents: Sequence[NDArray[Any]]
    ) -> list[NDArray[Any] | None]:
        """The pullback of the outputs to each tensor; None for one of integers."""

    def show(self, variables: Any, tensors: Sequence[NDArray[Any]]) -> Shown:
        """The shapes, table lookups and masks of an evaluation of some rows."""

    def variables(self, state: State) -> Any:
        """The values of the variables in the form in which the program takes them."""


@dataclass(frozen=True)
class Traced:
    """A call on a backend that traces programs, as `Evaluator` requires."""

    call: Call
    label: str
    program: Program

    @property
    def value(self) -> TracedValue:
        return TracedValue(self.call, self.label, self.program)

    @property
    def gradient(self) -> TracedGradient:
        return TracedGradient(self.value)

    def show(self, rows: Array) -> Shown:
        """What a run on these rows shows of the model; raises if an operation has no gradient."""
        value = self.value
        shown = self.program.show(value.variables, value.tensors(rows))
        if shown.shapes and all(shape and shape[0] == len(rows) for shape in shown.shapes):
            width = sum(int(np.prod(shape[1:])) for shape in shown.shapes)
            # An operation without a gradient is to raise here, not when the model is explained.
            self.gradient(rows, np.zeros((len(rows), width)))
        return shown

    def now(self) -> Traced:
        return replace(self, call=self.call.now())


@dataclass(frozen=True)
class TracedValue:
    """The values of a call for arrays: (n, p) -> (n, k)."""

    call: Call
    label: str
    program: Program

    def __call__(self, x: Array) -> Array:
        return np.concatenate([_flat(out) for out in self.program(self.variables, self.tensors(x))], axis=1)

    @cached_property
    def variables(self) -> Any:
        return self.program.variables(self.call.state)

    @cached_property
    def shapes(self) -> list[Shape]:
        """Of the outputs, without the rows."""
        row = np.zeros((2, sum(int(np.prod(shape)) for shape in self.call.shapes)))
        return [out.shape[1:] for out in self.program(self.variables, self.tensors(row))]

    def tensors(self, x: Array) -> list[NDArray[Any]]:
        parts = zip(self.call.split(np.asarray(x, np.float64)), self.call.whole, strict=True)
        return [part.astype(np.int32) if whole else part for part, whole in parts]


@dataclass(frozen=True)
class TracedGradient:
    """The pullback of a TracedValue: (n, p), (n, k) -> (n, p)."""

    value: TracedValue

    def __call__(self, x: Array, cotangent: Array) -> Array:
        value, shapes = self.value, self.value.shapes
        edges = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)]).tolist()
        parts = zip(edges, edges[1:], shapes, strict=False)
        cotangents = [np.asarray(cotangent)[:, a:b].reshape(len(x), *shape) for a, b, shape in parts]
        slopes = value.program.slopes(value.variables, value.tensors(x), cotangents)
        sizes = [int(np.prod(shape)) for shape in value.call.shapes]
        flat = [np.zeros((len(x), n)) if s is None else _flat(s) for s, n in zip(slopes, sizes, strict=True)]
        return np.concatenate(flat, axis=1)


def _flat(part: NDArray[Any]) -> Array:
    return np.asarray(part, np.float64).reshape(len(part), int(np.prod(part.shape[1:])))


def no_double(operation: str) -> UnsupportedModelError:
    """The error for an operation that has no meaning, or no implementation, in float64."""
    return UnsupportedModelError(
        f"This Keras model computes {operation} on its way, which cannot be done in float64 on this backend, and "
        "gradients must be in float64 to be exact. Load the model where KERAS_BACKEND=torch is set, if it runs there."
    )
