"""Functions of one number by name: FunctionTransformer, PowerTransformer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import UnsupportedModelError
from ...graph import Array, Elementwise, Node
from .scalers import standard_scaler
from .steps import NO_CUTS, Present, Step, Ufunc
from .table import Table

# NumPy's functions that may follow each other in a pipeline: name -> where they stop being monotone or defined
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
    function = transformer.func
    if transformer.validate:
        table = table.then([Present()] * len(table), "FunctionTransformer")
    if function is None:
        return table
    name = getattr(function, "__name__", type(function).__name__)
    name = _OTHER_NAMES.get(name, name)
    if name not in _UFUNCS or getattr(np, name) is not function or transformer.kw_args or table.sparse:
        raise UnsupportedModelError(
            f"FunctionTransformer is known for NumPy's {', '.join(sorted(_UFUNCS))} on a dense table, or no function; "
            f"got {name!r}. Apply other functions to the table before the pipeline, or write the step as one of these."
        )
    return table.then([Ufunc(name, _UFUNCS[name])] * len(table), "FunctionTransformer")


@dataclass(frozen=True, eq=False)
class PowerLaw(Step):
    """Box-Cox or Yeo-Johnson, in the transformer's own arithmetic; a Box-Cox number must be positive."""

    method: str
    exponent: float
    own: Callable[[Array, float], Any]

    def __call__(self, z: NDArray[Any]) -> NDArray[Any]:
        out = np.asarray(self.own(np.asarray(z, np.float64), self.exponent))
        # scikit-learn refuses what is not positive; the least of all keeps the step monotone without an edge there
        return np.where(z <= 0, -np.inf, out) if self.method == "box-cox" else out

    def cuts(self) -> Array:
        # another formula holds on either side of zero
        return np.array([np.nextafter(0.0, -1.0)]) if self.method == "yeo-johnson" else NO_CUTS

    def node(self, source: Node) -> Node:
        return Elementwise(source, self.method.replace("-", "_"), self.exponent)


def power_transformer(transformer: Any, table: Table) -> Table:
    own = _power_law(transformer)
    steps: Sequence[Step] = [PowerLaw(transformer.method, float(v), own) for v in transformer.lambdas_]
    out = table.then(steps, "PowerTransformer")
    return standard_scaler(transformer._scaler, out) if transformer.standardize else out


def _power_law(transformer: Any) -> Callable[[Array, float], Any]:
    """The function that this version of scikit-learn applies: its own, or scipy's, which rounds differently."""
    if transformer.method == "box-cox":
        from scipy.special import boxcox

        return lambda z, power: boxcox(z, power)
    inside = getattr(transformer, "_yeo_johnson_transform", None)
    if inside is not None:
        return lambda z, power: inside(z, power)
    from scipy.stats import yeojohnson

    return lambda z, power: yeojohnson(z, power)
