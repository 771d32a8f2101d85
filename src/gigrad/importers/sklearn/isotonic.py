"""scikit-learn's isotonic regression: linear interpolation of one column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._io.tables import Rows
from ...errors import InputError
from ...graph import Affine, Array, Column, Graph, Input, Node, PiecewiseLinear, Witness
from ..common.estimator import label_of, require_fitted
from ..common.links import DOUBLE, SINGLE, plain_outputs


def import_isotonic(model: Any) -> Graph:
    """IsotonicRegression; beyond its range it clips, or refuses the row if the model gives no number there."""
    require_fitted(model)
    x, y = np.asarray(model.X_thresholds_, np.float64), np.asarray(model.y_thresholds_, np.float64)
    source = Input(1)
    node: Node = PiecewiseLinear(source, x, y) if len(x) > 1 else Affine(source, np.zeros((1, 1)), y)
    steepest = float(np.max(np.diff(y) / np.diff(x))) if len(x) > 1 else 0.0
    reach = float(np.abs(y).max()) + steepest * float(np.abs(x).max())
    unit = SINGLE if model.X_thresholds_.dtype == np.float32 else DOUBLE  # the precision of its training data
    witness = Witness(node, _Interpolate(model), label_of(model), rtol=32.0 * unit, atol=0.0, scale=reach)
    return Graph(
        columns=(Column("x", missing=False),),
        input=source,
        score=node,
        margin=node,
        output_names=plain_outputs(1),
        witnesses=(witness,),
        label=label_of(model),
    )


@dataclass(frozen=True)
class _Interpolate:
    """The model's own prediction."""

    model: Any

    def __call__(self, rows: Rows) -> Array:
        low, high = float(self.model.X_min_), float(self.model.X_max_)
        x = rows.matrix[:, 0]
        if self.model.out_of_bounds != "clip" and ((x < low) | (x > high)).any():
            raise InputError(
                f"IsotonicRegression(out_of_bounds={self.model.out_of_bounds!r}) gives no number outside of [{low!r}, "
                f"{high!r}]; got {float(x[(x < low) | (x > high)][0])!r}. Fit it with out_of_bounds='clip'."
            )
        return np.asarray(self.model.predict(x))
