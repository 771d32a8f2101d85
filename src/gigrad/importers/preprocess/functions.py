"""Functions of one number by name: FunctionTransformer, PowerTransformer."""

from __future__ import annotations

from collections.abc import Sequence
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
            f"{name!r} came. Apply other functions to the table before the pipeline, or write the step as one of these."
        )
    return table.then([Ufunc(name, _UFUNCS[name])] * len(table), "FunctionTransformer")


@dataclass(frozen=True, eq=False)
class PowerLaw(Step):
    """Box-Cox or Yeo-Johnson, as scipy computes it; a Box-Cox number must be positive."""

    method: str
    exponent: float

    def __call__(self, z: NDArray[Any]) -> NDArray[Any]:
        if self.method == "box-cox":
            from scipy.special import boxcox

            # scikit-learn refuses what is not positive; the least of all keeps the step monotone without an edge there
            return np.where(z <= 0, -np.inf, boxcox(z, self.exponent))
        from scipy.stats import yeojohnson

        return np.asarray(yeojohnson(np.asarray(z, np.float64), self.exponent))

    def cuts(self) -> Array:
        # scipy takes another formula on either side of zero
        return np.array([np.nextafter(0.0, -1.0)]) if self.method == "yeo-johnson" else NO_CUTS

    def node(self, source: Node) -> Node:
        return Elementwise(source, self.method.replace("-", "_"), self.exponent)


def power_transformer(transformer: Any, table: Table) -> Table:
    steps: Sequence[Step] = [PowerLaw(transformer.method, float(v)) for v in transformer.lambdas_]
    out = table.then(steps, "PowerTransformer")
    return standard_scaler(transformer._scaler, out) if transformer.standardize else out
