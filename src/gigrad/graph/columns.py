"""What a model expects of each column of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["number", "category", "unused"]
Unknown = Literal["refuse", "missing", "other"]


@dataclass(frozen=True)
class Column:
    """One variable of a model.

    Attributes
    ----------
    name : str
    kind : "number", "category" or "unused"
        A number moves along the path from start to end; a category changes all at once, half-way. What an unused
        column holds is never looked at: it may be anything, and earns nothing.
    labels : tuple or None
        Categories: the label that each code stands for. None where the table itself holds integer codes.
    missing : bool
        Whether the model takes a missing value here.
    unknown : "refuse", "missing" or "other"
        What a label outside of `labels` becomes: an error, a missing value, or code -1, as the model's library does.
    missing_value : float or None
        A number that the model takes for a missing value, as well as NaN; compared in float32, as XGBoost does.
    """

    name: str
    kind: Kind = "number"
    labels: tuple[Any, ...] | None = None
    missing: bool = True
    unknown: Unknown = "other"
    missing_value: float | None = None
