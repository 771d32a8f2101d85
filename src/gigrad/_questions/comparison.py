"""Why the challenger scores differently from the champion: both explained under one choice, and their difference."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Unpack

import numpy as np

from .._common import checks, display
from .._common.optional import frame_library
from .._explain.explainer import Explainer
from .._explain.explanation import Explanation
from .._explain.options import Keywords, Options, takes_options
from .._io import provenance
from ..errors import InputError
from ..graph import Graph, merge
from ..references.wiring import reference_facts
from .joining import one_score, side_by_side

ROLES = ("champion", "challenger")


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Two models explained on the same rows, against the same reference, under one choice of discrete columns.

    Each part is an `Explanation`, which every picture, table and report takes.

    Attributes
    ----------
    champion, challenger : Explanation
    difference : Explanation
        Of the challenger's score less the champion's. Its `base_values` are the mean difference over the reference, its
        credits the challenger's less the champion's.

    Examples
    --------
    >>> import gigrad as gig
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> new = DecisionTreeRegressor().fit([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 7])
    >>> found = gig.compare(tree, new, [[1, 1]], [[0, 0]])
    >>> found.difference.values
    array([[1.5, 1.5]])
    """

    champion: Explanation
    challenger: Explanation
    difference: Explanation

    def __len__(self) -> int:
        return len(self.difference)

    def __getitem__(self, rows: Any) -> Comparison:
        """Some of the rows."""
        return Comparison(self.champion[rows], self.challenger[rows], self.difference[rows])

    def to_frame(self, *, library: Literal["pandas", "polars"] = "pandas") -> Any:
        """A line for each row and feature: id, feature, and the credit of the champion, the challenger and the
        difference; the feature "(everyone)" has the base values."""
        n, names = len(self), ("(everyone)", *self.difference.feature_names)
        made: dict[str, Any] = {
            "id": np.repeat(self.difference.ids, len(names)),
            "feature": np.tile(np.array(names, dtype=object), n),
        }
        for name in (*ROLES, "difference"):
            e: Explanation = getattr(self, name)
            made[name] = np.column_stack([e.base_values, e.values]).ravel()
        return frame_library(checks.library(library)).DataFrame(made)

    def __repr__(self) -> str:
        d = self.difference
        if not len(self):
            return "Comparison of 0 rows"
        scale = float(max(np.abs(d.values).max(initial=0.0), np.abs(d.predictions).max(initial=0.0)))
        places = display.decimals(scale)
        champion, challenger, apart = (float(e.predictions.mean()) for e in (self.champion, self.challenger, d))
        rows = "row" if len(self) == 1 else "rows"
        lines = [
            f"Comparison of {len(self):,} {rows}: mean score {challenger:.{places}f} (challenger) against "
            f"{champion:.{places}f} (champion), {display.credit(apart, places)}"
        ]
        mean = d.values.mean(axis=0)
        if not d.values.any() and not d.base_values.any():
            return f"{lines[0]}\n  both models score every row alike, for the same reasons"
        parts = [("everyone", float(d.base_values.mean()))]
        names = display.short_names(d.feature_names, display.NAME_WIDTH)
        parts += [(names[j], float(mean[j])) for j in np.argsort(-np.abs(mean), kind="stable")[:8]]
        width = max(len(name) for name, _ in parts)
        return "\n".join(lines + [f"  {name:<{width}}  {display.credit(value, places)}" for name, value in parts])


@takes_options
def compare(
    champion: Any,
    challenger: Any,
    X: Any,
    reference: Any,
    *,
    weights: Any = None,
    **options: Unpack[Keywords],
) -> Comparison:
    """Explain why one model scores rows differently from another.

    Both scores must be in one unit, or their difference means nothing: give transforms to `output` where they are not.

    Parameters
    ----------
    champion, challenger : fitted models or Graphs
        Columns are matched by name where the models have column names; each may read columns that the other does not.
    X : table, (n, p)
    reference : table or Reference
        Against whom both are explained. A Reference with scores of either model, say the approved, must run in the
        direction of both.
    output : as in `Explainer`, or a pair (of the champion, of the challenger)
        A transform may also be a fitted calibrator of the model's score.
    weights, target, groups, discrete, nominal, tol, n_threads, seed, corner_tol
        As in `Explainer`. Which columns are discrete is decided once, from the thresholds of both models.

    Examples
    --------
    >>> import gigrad as gig
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> forest = RandomForestClassifier(20, max_depth=3, random_state=0).fit(X, bad)
    >>> found = gig.compare(model, forest, X.head(5), approved)
    >>> bool(abs(found.difference.gap).max() < 1e-9)
    True
    """
    both = Options.of(options)
    output = both.output
    first, second = output if isinstance(output, tuple) and len(output) == 2 else (output, output)
    graphs = {
        role: one_score(model, asked, both.target, f"The {role}")
        for role, model, asked in zip(ROLES, (champion, challenger), (first, second), strict=True)
    }
    joint = side_by_side(dict(zip(ROLES, merge(list(graphs.values())), strict=True)))
    joined: Keywords = {**options, "output": None, "target": None}  # already applied to the scores of `joint`
    explainer = Explainer(joint, reference, weights=weights, **joined)
    e = explainer(X)
    own = explainer.scorer.own(explainer.reference)
    parts = []
    for k, (role, model, asked) in enumerate(zip(ROLES, (champion, challenger), (first, second), strict=True)):
        record = _record(e, explainer, reference, graphs[role], model, asked, own[:, [k]], role)
        parts.append(replace(e[:, :, k], provenance=record, output_names=graphs[role].output_names))
    return Comparison(parts[0], parts[1], _difference(parts[0], parts[1], joint))


def _record(
    e: Explanation, explainer: Explainer, reference: Any, graph: Graph, model: Any, output: Any, own: Any, role: str
) -> dict[str, Any]:
    """The provenance of one of the two models, as if it had been explained alone."""
    try:
        facts = reference_facts(reference, explainer.reference, explainer.weights, explainer.scorer.columns, own)
    except InputError as error:
        raise InputError(f"The {role} and the reference do not agree. {error}") from None
    asked = "prediction" if output is None else output if isinstance(output, str) else repr(output)
    named = provenance.model_record(graph, model, None, graph.score, graph.output_names)
    named["output"]["asked"] = asked
    return {**e.provenance, **named, "reference": e.provenance["reference"] | facts}


def _difference(champion: Explanation, challenger: Explanation, joint: Graph) -> Explanation:
    """The challenger's explanation less the champion's; errors add up."""
    record = {
        **champion.provenance,
        "model": {
            "label": f"{challenger.provenance['model']['label']} less {champion.provenance['model']['label']}",
            "fingerprint": provenance.model_fingerprint(joint),
            "champion": champion.provenance["model"],
            "challenger": challenger.provenance["model"],
        },
        "output": {
            "asked": "prediction",
            "names": ["challenger less champion"],
            "champion": champion.provenance["output"],
            "challenger": challenger.provenance["output"],
            "fingerprint": provenance.node_fingerprint(joint.score),
        },
    }
    # the reference's cutoff and direction are about one score, not about a difference of two
    record["reference"] = {
        name: fact
        for name, fact in record["reference"].items()
        if name not in ("higher_is_better", "cutoff", "cutoff_in_output_units")
    }
    return replace(
        challenger,
        values=challenger.values - champion.values,
        base_values=challenger.base_values - champion.base_values,
        predictions=challenger.predictions - champion.predictions,
        gap=challenger.gap - champion.gap,
        error=challenger.error + champion.error,
        output_names=("challenger less champion",),
        provenance=record,
    )
