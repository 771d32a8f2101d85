"""Steps of feature-engine: imputers, encoders, discretisers, cappers, transformers, selectors.

Fitted parameters are in public attributes (`imputer_dict_`, `encoder_dict_`, `binner_dict_`, `right_tail_caps_`);
encoders and discretisers are tabulated by calling them on the labels and edges stored there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._io.tables import are_missing
from ...errors import UnsupportedModelError
from ...graph import Affine, Elementwise, Node, Product
from ..common.thresholds import at_most_in_float32
from . import transform
from .functions import Curve, PowerLaw
from .pieces import before
from .steps import NO_CUTS, Clip, Impute, Indicator, Linear, Present, Stairs, Step, Ufunc
from .table import Feature, Table
from .tabulated import ColumnCall, labels_tabulated, numbers_tabulated, of_module

# Steps that cannot be imported, and what to do instead
_REFUSED = {
    "DropMissingData": "drops rows; drop them before the pipeline",
    "OutlierTrimmer": "drops rows; use Winsorizer, or trim the table before the pipeline",
    "RandomSampleImputer": "fills in random numbers; use MeanMedianImputer or ArbitraryNumberImputer",
    "StringSimilarityEncoder": "compares the spelling of labels it never saw; use OneHotEncoder or RareLabelEncoder",
    "MatchCategories": "makes pandas categories; apply it before the pipeline",
}


def _refuse(step: Any) -> None:
    name = type(step).__name__
    if name in _REFUSED:
        raise UnsupportedModelError(f"The step {of_module(step)} cannot be imported: it {_REFUSED[name]}.")


def _names(step: Any, table: Table) -> list[str]:
    """The names of the columns that the step was fitted on, which must be as many as it is given."""
    names = [str(n) for n in step.feature_names_in_]
    if len(names) != len(table):
        raise UnsupportedModelError(
            f"The step {of_module(step)} was fitted on {len(names)} columns and is given {len(table)}."
        )
    return names


def _each(step: Any, table: Table, made: Mapping[str, Sequence[Step]]) -> Table:
    """The table with a chain of steps on some of its columns."""
    names = _names(step, table)
    for level in range(max((len(s) for s in made.values()), default=0)):
        now = [made[n][level] if level < len(made.get(n, ())) else None for n in names]
        table = table.then(now, type(step).__name__)
    return table


def _with(table: Table, more: Sequence[Feature]) -> Table:
    return table.become((*table.features, *more), sparse=table.sparse)


# ---------------------------------------------------------------- missing values and outliers


def imputer(step: Any, table: Table) -> Table:
    """Fills by column, or indicators of missing values added as columns."""
    _refuse(step)
    names = _names(step, table)
    if type(step).__name__ == "AddMissingIndicator":
        chosen = table.take([names.index(str(v)) for v in step.variables_])
        return _with(table, chosen.then([Indicator()] * len(chosen), "AddMissingIndicator").features)
    fills = {str(c): v if isinstance(v, str) else float(v) for c, v in step.imputer_dict_.items()}
    return _each(step, table, {n: [Impute(v)] for n, v in fills.items()})


def capper(step: Any, table: Table) -> Table:
    """Columns limited to their caps, and indicators of where they were."""
    _refuse(step)
    names = _names(step, table)
    low = {str(c): float(v) for c, v in step.left_tail_caps_.items()}
    high = {str(c): float(v) for c, v in step.right_tail_caps_.items()}
    refuses = [Present()] if step.missing_values == "raise" else []
    capped = _each(step, table, {n: [*refuses, Clip(low.get(n, -np.inf), high.get(n, np.inf))] for n in (*low, *high)})
    if not getattr(step, "add_indicators", False):
        return capped
    marks: list[Feature] = []
    for n in map(str, step.variables_):
        column = table.take([names.index(n)])
        if step.tail in ("left", "both"):
            below = Stairs(before(np.array([low[n]])), np.array([1.0, 0.0]), 0.0, np.array([low[n]]))
            marks += column.then([below], "Winsorizer").features
        if step.tail in ("right", "both"):
            above = Stairs(np.array([high[n]]), np.array([0.0, 1.0]), 0.0)
            marks += column.then([above], "Winsorizer").features
    return _with(capped, marks)


# ---------------------------------------------------------------- tabulated: labels and bins


def encoder(step: Any, table: Table) -> Table:
    """Labels as numbers or dummies, by calling the step on each label."""
    _refuse(step)
    names = _names(step, table)
    labels = {str(c): [v for v in known if not are_missing([v])[0]] for c, known in step.encoder_dict_.items()}
    for n, known in labels.items():
        if not known:
            raise UnsupportedModelError(f"The step {of_module(step)} must have labels of {n!r}; it has none.")
    call = ColumnCall(step, {n: labels[n][0] if n in labels else 0.0 for n in names})
    if type(step).__name__ != "OneHotEncoder":
        return _each(step, table, {n: labels_tabulated(call, n, labels[n], [names.index(n)]) for n in labels})
    dummies: list[Feature] = []
    others = [i for i, n in enumerate(names) if n not in labels]
    begin = len(others)
    for n in map(str, step.variables_):
        steps = labels_tabulated(call, n, labels[n], range(begin, begin + len(labels[n])))
        begin += len(steps)
        dummies += table.take([names.index(n)] * len(steps)).then(steps, "OneHotEncoder").features
    return _with(table.take(others), dummies)


def discretiser(step: Any, table: Table) -> Table:
    """Numbers as bins, by calling the step on a number of each."""
    names = _names(step, table)
    if getattr(step, "return_boundaries", False) or getattr(step, "bin_output", "") == "boundaries":
        raise UnsupportedModelError(
            f"The step {of_module(step)} gives the texts of its intervals, which is not imported. Let it give the "
            "number of the bin (return_object=True, or bin_output='bin_number'), which an encoder takes as well."
        )
    call = ColumnCall(step, dict.fromkeys(names, 0.5))
    made = {
        str(c): numbers_tabulated(call, str(c), _edges(b), [names.index(str(c))]) for c, b in step.binner_dict_.items()
    }
    return _each(step, table, made)


def _edges(binner: Any) -> Any:
    """The edges of bins: a list of them, or the thresholds of a tree, which compares in float32."""
    best = getattr(binner, "best_estimator_", None)
    if best is None:
        return binner
    tree = best.tree_
    return at_most_in_float32(tree.threshold[tree.feature >= 0]).threshold


# ---------------------------------------------------------------- functions of numbers


def transformation(step: Any, table: Table) -> Table:
    made = {str(v): [Present(), *_FUNCTIONS[type(step).__name__](step, str(v))] for v in step.variables_}
    return _each(step, table, made)


def _log(step: Any, column: str) -> list[Step]:
    """The logarithm to base e or 10."""
    zero = float(np.nextafter(0.0, -1.0))
    if step.base == "e":
        return [Ufunc("log", (zero,))]

    def build(source: Node) -> Node:
        return Affine(Elementwise(source, "log"), np.array([[1.0 / np.log(10.0)]]), np.zeros(1))

    return [Curve(of_module(step), np.log10, np.array([zero]), build)]


def _log_plus(step: Any, column: str) -> list[Step]:
    plus = step.C_[column] if isinstance(step.C_, Mapping) else step.C_
    return [Linear(plus=float(plus)), *_log(step, column)]


def _power(step: Any, column: str) -> list[Step]:
    """x to a power: whole ones as products, others by Box and Cox's function."""
    power = float(step.exp)
    whole = power == int(power) and power >= 1

    def build(source: Node) -> Node:
        if not whole:  # x ** a = 1 + a * box_cox(x)
            return Affine(Elementwise(source, "box_cox", power), np.array([[power]]), np.ones(1))
        node = source
        for _ in range(int(power) - 1):
            node = Product(node, source)
        return node

    cuts = np.array([np.nextafter(0.0, -1.0), 0.0])
    smooth = whole or power > 0.0  # a negative power has a pole at zero
    return [Curve(of_module(step), lambda z: np.power(z, step.exp), cuts, build if smooth else None)]


def _values_only(function: Any, *cuts: float) -> Any:
    return lambda step, column: [Curve(of_module(step), function, np.array(cuts))]


def _arc_sinh(step: Any, column: str) -> list[Step]:
    return [Linear(minus=float(step.loc), over=float(step.scale)), Curve(of_module(step), np.arcsinh, NO_CUTS)]


def _box_cox(step: Any, column: str) -> list[Step]:
    from scipy.special import boxcox

    return [PowerLaw("box-cox", float(step.lambda_dict_[column]), boxcox)]


def _yeo_johnson(step: Any, column: str) -> list[Step]:
    from scipy.stats import yeojohnson

    return [PowerLaw("yeo-johnson", float(step.lambda_dict_[column]), yeojohnson)]


def _mean_normalised(step: Any, column: str) -> list[Step]:
    return [Linear(minus=float(step.mean_[column]), over=float(step.range_[column]))]


_FUNCTIONS: dict[str, Any] = {
    "LogTransformer": _log,
    "LogCpTransformer": _log_plus,
    "PowerTransformer": _power,
    "ReciprocalTransformer": _values_only(lambda z: 1.0 / z, float(np.nextafter(0.0, -1.0)), 0.0),
    "ArcsinTransformer": _values_only(lambda z: np.arcsin(np.sqrt(z)), float(np.nextafter(0.0, -1.0)), 1.0),
    "ArcSinhTransformer": _arc_sinh,
    "BoxCoxTransformer": _box_cox,
    "YeoJohnsonTransformer": _yeo_johnson,
    "MeanNormalizationScaler": _mean_normalised,
}


# ---------------------------------------------------------------- columns chosen, and scikit-learn's steps inside


def selector(step: Any, table: Table) -> Table:
    names, left_out = _names(step, table), set(map(str, step.features_to_drop_))
    return table.take([i for i, n in enumerate(names) if n not in left_out])


def wrapped(step: Any, table: Table) -> Table:
    """A transformer of scikit-learn on some columns."""
    names = _names(step, table)
    if hasattr(step, "features_to_drop_"):
        return selector(step, table)
    chosen = [names.index(str(v)) for v in step.variables_]
    part = transform(step.transformer_, table.take(chosen))
    if type(step.transformer_).__name__ in ("OneHotEncoder", "PolynomialFeatures"):
        return _with(table.take([i for i in range(len(names)) if i not in chosen]), part.features)
    out = list(table.features)
    for i, feature in zip(chosen, part.features, strict=True):
        out[i] = feature
    return table.become(out)
