"""What an explainer reads from a reference: its rows, its weights, and facts for the provenance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._io.tables import Rows
from ..errors import InputError
from ..graph.columns import Column
from ..graph.node import Array
from .population import Reference
from .typical import typical_values


def open_reference(reference: Any, weights: Any) -> tuple[Any, Any]:
    """The table and the weights of a Reference; a plain table and its weights are returned unchanged."""
    if not isinstance(reference, Reference):
        return reference, weights
    if weights is not None:
        raise InputError("A Reference has weights of its own; build it with other weights instead of passing weights.")
    return reference.rows, reference.weights


def reference_note(reference: Any) -> str:
    """The one-line description of how a reference was chosen; empty for a plain table."""
    return reference.provenance if isinstance(reference, Reference) else ""


def reference_facts(
    reference: Any, rows: Rows, weights: Array, columns: Sequence[Column], own: Array
) -> dict[str, Any]:
    """What the provenance says about a reference beyond its rows: typical values, method, direction, cutoff, quality.

    Parameters
    ----------
    own : (m, k)
        The explained output on the reference rows: the direction of a Reference's scores must agree with it.
    """
    facts: dict[str, Any] = {
        "typical": dict(zip(rows.names, typical_values(rows.matrix, weights, columns), strict=True))
    }
    if not isinstance(reference, Reference):
        return facts
    if reference.method:
        facts["method"] = reference.method
    if reference.quality:
        facts["quality"] = dict(reference.quality)
    if reference.higher_is_better is not None:
        facts["higher_is_better"] = reference.higher_is_better
    if reference.scores is not None and reference.higher_is_better is not None and own.shape[1] == 1:
        _check_direction(reference.scores, own[:, 0], reference.higher_is_better)
        if reference.cutoff is not None:
            facts["cutoff"] = reference.cutoff
            facts["cutoff_in_output_units"] = bool(np.allclose(reference.scores, own[:, 0], rtol=1e-5, atol=1e-9))
    return facts


def _check_direction(scores: Array, own: Array, higher_is_better: bool) -> None:
    """Raise if a reference's scores run against the explained output, to which its `higher_is_better` is applied.

    That is a rank correlation more than three standard errors below zero, or exactly reversed order.
    """
    if len(own) < 3 or np.ptp(scores) == 0 or np.ptp(own) == 0:
        return
    correlation = float(np.corrcoef(_ranks(scores), _ranks(own))[0, 1])
    if correlation * np.sqrt(len(own) - 1) < -3.0 or correlation < -1.0 + 1e-9:
        raise InputError(
            f"The reference's scores must run in the direction of the explained output; they run against it (rank "
            f"correlation {correlation:.2f}), so higher_is_better={higher_is_better} would be wrong. Build "
            "the reference with scores of the output that is explained, and its direction."
        )


def _ranks(values: Array) -> Array:
    """Mid-ranks: tied values share the mean of their ranks."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    upto = np.cumsum(counts)
    out: Array = (upto - (counts - 1) / 2.0)[group]
    return out
