"""statsmodels: linear models and their links, on a matrix of columns or on a formula.

__init__.py   results -> Graph: the linear predictor and its link
formula.py    patsy's design matrices as nodes over the columns of the formula
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._common.optional import require
from ..._io.tables import Rows
from ...errors import UnsupportedModelError
from ...graph import Affine, Array, Column, Graph, Input, Node, Opposite, Softmax, Witness
from ..common.frames import as_given
from ..common.links import DOUBLE, MEANS, class_left_out, class_outputs, plain_outputs
from ..common.rounding import NodeScale, sum_units
from .formula import Design, design_of

_LINEAR = ("OLS", "WLS", "GLS", "GLSAR", "RLM", "QuantReg")
_UNKNOWN = (
    "statsmodels results of {kind} cannot be imported. Supported are OLS, WLS, GLS, RLM, QuantReg, GLM, Logit, Probit, "
    "MNLogit, Poisson and NegativeBinomial."
)


def import_results(results: Any) -> Graph:
    """The graph of the results of `fit`: the margin is the linear predictor, the score the mean, as `predict` gives."""
    model, kind = results.model, type(results.model).__name__
    design = design_of(model) or _matrix(model)
    params = np.asarray(results.params, np.float64)
    weight = _weight(kind, params, design.node.width)
    margin: Node = Affine(design.node, weight, np.zeros(len(weight)))
    score = _link(kind, model)(margin)
    names, opposite = _outputs(kind, model, score.width)
    units = 4.0 * sum_units(weight.shape[1])
    own = Witness(
        score, _Own(results, design), kind, rtol=units, atol=16.0 * DOUBLE, scale=NodeScale(design.source, score)
    )
    return Graph(
        columns=design.columns,
        input=design.source,
        score=score,
        margin=margin,
        output_names=names,
        opposite=opposite,
        witnesses=(own,),
        named=design.named,
        label=kind,
    )


def _matrix(model: Any) -> Design:
    """The design of a model on a matrix: its columns, including the constant, as `predict` takes them."""
    columns = tuple(Column(str(n), missing=False) for n in model.exog_names[: model.exog.shape[1]])
    source = Input(len(columns))
    return Design(columns, source, source, hasattr(model.data.orig_exog, "columns"), False)


def _weight(kind: str, params: Array, width: int) -> Array:
    """The weights of the linear score, a row for each output."""
    if kind == "MNLogit":  # the first class is the baseline
        return np.concatenate([np.zeros((1, width)), params.T])
    if kind in ("NegativeBinomial", "NegativeBinomialP"):
        params = params[:-1]  # the last one is the dispersion
    if params.shape != (width,):
        raise UnsupportedModelError(_UNKNOWN.format(kind=kind))
    return params[None, :]


def _link(kind: str, model: Any) -> Callable[[Node], Node]:
    """The function from linear score to prediction."""
    if kind in _LINEAR:
        return MEANS["identity"]
    if kind == "GLM":
        return _inverse(model.family.link)
    found: dict[str, Callable[[Node], Node]] = {
        "Logit": MEANS["logit"],
        "Probit": MEANS["probit"],
        "MNLogit": Softmax,
        "Poisson": MEANS["log"],
        "NegativeBinomial": MEANS["log"],
    }
    if kind not in found:
        raise UnsupportedModelError(_UNKNOWN.format(kind=kind))
    return found[kind]


_LINKS = {
    "Identity": "identity",
    "Log": "log",
    "Logit": "logit",
    "Probit": "probit",
    "Sqrt": "sqrt",
    "InversePower": "inverse",
    "CLogLog": "cloglog",
}


def _inverse(link: Any) -> Callable[[Node], Node]:
    """The inverse of a link. Names of links were lower case before statsmodels 0.14."""
    by_name = {name.lower(): MEANS[ours] for name, ours in _LINKS.items()}
    name = type(link).__name__.lower().replace("_", "")
    if name not in by_name:
        raise UnsupportedModelError(
            f"A GLM of statsmodels with the link {type(link).__name__} cannot be imported; known are "
            f"{', '.join(_LINKS)}."
        )
    return by_name[name]


def _outputs(kind: str, model: Any, width: int) -> tuple[tuple[str, ...], Opposite | None]:
    """The names of the outputs, and the class that is left out where only one of two is scored."""
    if kind in ("Logit", "Probit"):
        return class_outputs([0, 1]), class_left_out([0, 1], 1.0, 0.0)
    if kind == "MNLogit":
        return tuple(str(v) for v in model._ynames_map.values()), None
    return plain_outputs(width), None


@dataclass(frozen=True)
class _Own:
    """The results' own prediction: for rows of a matrix, or for a table of the formula's columns."""

    results: Any
    design: Design

    def __call__(self, rows: Rows) -> Array:
        if not self.design.formula:
            return np.asarray(self.results.predict(rows.matrix), np.float64)
        require("pandas", "frames")
        return np.asarray(self.results.predict(as_given(rows, self.design.columns)), np.float64)
