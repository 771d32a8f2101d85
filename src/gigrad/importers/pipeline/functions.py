"""Functions of one number by name: FunctionTransformer, PowerTransformer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import UnsupportedModelError
from ...graph import Array, Elementwise, Graph, Node
from .scalers import standard_scaler
from .steps import NO_CUTS, Present, Step, Ufunc, is_missing
from .table import Blend, ModelBlock, Table

# Supported NumPy functions: name -> the numbers between which they are monotone and defined
_UFUNCS: dict[str, tuple[float, ...]] = {
    "log": (float(np.nextafter(0.0, -1.0)),),
    "log1p": (float(np.nextafter(-1.0, -2.0)),),
    "sqrt": (float(np.nextafter(0.0, -1.0)),),
    "exp": (),
    "expm1": (),
    "tanh": (),
    "square": (0.0,),
    "abs": (0.0,),
}
_OTHER_NAMES = {"absolute": "abs"}


def function_transformer(transformer: Any, table: Table) -> Table:
    """A FunctionTransformer over a known ufunc, a function of one column, or a graph."""
    function = transformer.func
    if transformer.validate:
        table = table.then([Present()] * len(table), "FunctionTransformer")
    if function is None:
        return table
    if isinstance(function, Graph):
        return _with_gradient(function, table)
    name = getattr(function, "__name__", type(function).__name__)
    name = _OTHER_NAMES.get(name, name)
    if table.sparse:
        raise UnsupportedModelError(
            f"FunctionTransformer must read a dense table to be imported; its function {name!r} is given a sparse one. "
            "Use OneHotEncoder(sparse_output=False), or ColumnTransformer(sparse_threshold=0)."
        )
    if name not in _UFUNCS or getattr(np, name) is not function or transformer.kw_args:
        from .columnwise import columnwise

        return columnwise(transformer, table)
    return table.then([Ufunc(name, _UFUNCS[name])] * len(table), "FunctionTransformer")


def _with_gradient(graph: Graph, table: Table) -> Table:
    """A function of the rows with its gradient, from `gigrad.function`: each output may combine columns."""
    if len(graph.columns) != len(table):
        raise UnsupportedModelError(
            f"The function of a FunctionTransformer must read all columns that it is given; {graph.label!r} reads "
            f"{len(graph.columns)} and is given {len(table)}. Choose its columns with a ColumnTransformer."
        )
    block = ModelBlock("FunctionTransformer", table.features, lambda source: source, graph=graph, node=graph.score)
    return table.become([Blend(block, i) for i in range(graph.score.width)])


@dataclass(frozen=True, eq=False)
class Curve(Step):
    """A function of one number that a transformer computes itself, monotone between its cuts.

    Attributes
    ----------
    name : str
        The transformer and where it is from, for messages.
    where : (cuts,)
    build : callable or None
        The function as a node; None where only its values are known.
    missing : float or None
        The output for NaN; None if the transformer refuses it.
    """

    name: str
    function: Callable[[Array], Any]
    where: Array
    build: Callable[[Node], Node] | None = None
    missing: float | None = None

    def takes(self, z: NDArray[Any]) -> bool:
        return self.missing is not None or not is_missing(z).any()

    def __call__(self, z: NDArray[Any]) -> NDArray[Any]:
        z = np.asarray(z, np.float64)
        out = np.asarray(self.function(z), np.float64)
        return out if self.missing is None else np.where(np.isnan(z), self.missing, out)

    def cuts(self) -> Array:
        return self.where

    def node(self, source: Node) -> Node:
        if self.build is None:
            raise UnsupportedModelError(
                f"A smooth model needs the gradient of the step {self.name}, of which only values are known; trees do "
                "not. Give the gradient, FunctionTransformer(gigrad.function(f, gradient, columns=...)), or apply the "
                "step before the pipeline, so that its output columns are the variables."
            )
        return self.build(source)


@dataclass(frozen=True, eq=False)
class PowerLaw(Step):
    """Box-Cox or Yeo-Johnson, in the transformer's own arithmetic; a Box-Cox number must be positive."""

    method: str
    exponent: float
    own: Callable[[Array, float], Any]

    def __call__(self, z: NDArray[Any]) -> NDArray[Any]:
        out = np.asarray(self.own(np.asarray(z, np.float64), self.exponent))
        # scikit-learn refuses numbers that are not positive; the smallest output keeps the step monotone there
        return np.where(z <= 0, -np.inf, out) if self.method == "box-cox" else out

    def cuts(self) -> Array:
        # the formulas differ on the two sides of zero
        return np.array([np.nextafter(0.0, -1.0)]) if self.method == "yeo-johnson" else NO_CUTS

    def node(self, source: Node) -> Node:
        return Elementwise(source, self.method.replace("-", "_"), self.exponent)


def power_transformer(transformer: Any, table: Table) -> Table:
    """Yeo and Johnson's or Box and Cox's function of each column, standardised if it was fitted so."""
    own = _power_law(transformer)
    steps: Sequence[Step] = [PowerLaw(transformer.method, float(v), own) for v in transformer.lambdas_]
    out = table.then(steps, "PowerTransformer")
    return standard_scaler(transformer._scaler, out) if transformer.standardize else out


def _power_law(transformer: Any) -> Callable[[Array, float], Any]:
    """The function that this version of scikit-learn uses: its own, or scipy's, which rounds differently."""
    if transformer.method == "box-cox":
        from scipy.special import boxcox

        return lambda z, power: boxcox(z, power)
    inside = getattr(transformer, "_yeo_johnson_transform", None)
    if inside is not None:
        return lambda z, power: inside(z, power)
    from scipy.stats import yeojohnson

    return lambda z, power: yeojohnson(z, power)
