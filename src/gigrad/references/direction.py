"""Which direction of a score is better, and what follows from it: the one place that decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import InputError
from ..graph import Array


def passing(scores: Array, cutoff: float, higher_is_better: bool) -> Any:
    """Which scores pass, (n,) bool; a score equal to the cutoff passes."""
    return scores >= cutoff if higher_is_better else scores <= cutoff


def adverse_sign(higher_is_better: bool) -> float:
    """The factor that makes a change of the score positive where it counts against the applicant."""
    return -1.0 if higher_is_better else 1.0


def checked_direction(higher_is_better: Any) -> bool:
    """`higher_is_better` as a bool; anything but True and False is an InputError."""
    if isinstance(higher_is_better, (bool, np.bool_)):
        return bool(higher_is_better)
    raise InputError(
        f"higher_is_better must be True (points, probability of repayment) or False (probability of default); "
        f"got {higher_is_better!r}."
    )


def agreed_direction(reference: Mapping[str, Any], asked: bool | None) -> bool:
    """The direction given by the caller, else the one recorded with the reference; an InputError if they differ."""
    known = reference.get("higher_is_better")
    if asked is None:
        if known is None:
            raise InputError(
                "higher_is_better must be given (--higher-is-better, --lower-is-better): True if a high score is good "
                "for an applicant, False for a probability of default. A reference from gigrad.references.approved "
                "has it."
            )
        return bool(known)
    direction = checked_direction(asked)
    if known is not None and direction != known:
        raise InputError(
            f"higher_is_better must be that of the reference, {known} ({reference.get('note', '')}); got {direction}. "
            "One of them is wrong."
        )
    return direction
