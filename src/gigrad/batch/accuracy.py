"""The accuracy of a run: how many rows miss the tolerance, which is the worst, and the limit `max_error`.

Every explanation has an `error`, a bound on the error of its credits. A row is out of tolerance if that exceeds the sum
of `tol`, relative to the larger of |prediction| and |base|, and `corner_tol`, relative to the row's largest credit.
`max_error` is a hard limit in units of the score: no row of the result may exceed it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._common import checks
from .._common.log import logger
from .._explain.explanation import Explanation
from ..errors import AccuracyError, AccuracyWarning, InputError, warn

_ROUNDING = 1e-12
"""Rounding error of sums, relative to their terms, which is allowed whatever the tolerance."""
_log = logger("batch")


@dataclass(frozen=True)
class Accuracy:
    """How accurate the credits of some rows are.

    Attributes
    ----------
    out_of_tolerance : int
        Rows whose error is larger than `tol` and `corner_tol` allow.
    beyond_max_error : int
        Rows whose error is larger than `max_error`; a lower bound for parts computed with another `max_error`.
    largest_error : float
        The largest bound on the error of a credit, in units of the score; NaN counts as infinite.
    worst_row : int or None
        The row that has it, counted from 0 in the source; None where there are no rows.
    """

    out_of_tolerance: int = 0
    beyond_max_error: int = 0
    largest_error: float = 0.0
    worst_row: int | None = None

    def __add__(self, other: Accuracy) -> Accuracy:
        worse = other.worst_row is not None and (self.worst_row is None or other.largest_error > self.largest_error)
        return Accuracy(
            self.out_of_tolerance + other.out_of_tolerance,
            self.beyond_max_error + other.beyond_max_error,
            max(self.largest_error, other.largest_error),
            other.worst_row if worse else self.worst_row,
        )

    def as_record(self) -> dict[str, Any]:
        """For JSON, which has no infinity."""
        shown = self.largest_error if math.isfinite(self.largest_error) else str(self.largest_error)
        return asdict(self) | {"largest_error": shown}

    @classmethod
    def total(cls, records: Iterable[dict[str, Any]]) -> Accuracy:
        """The accuracy of a whole run, from the records of its parts."""
        parts = (cls(**r | {"largest_error": float(r["largest_error"])}) for r in records if r)
        return sum(parts, cls())

    def under(self, limit: float | None, counted: float | None) -> Accuracy:
        """This accuracy for another `max_error` than the one (`counted`) that rows beyond it were counted by."""
        if limit == counted:
            return self
        return replace(self, beyond_max_error=int(limit is not None and self.largest_error > limit))


def errors_of(e: Explanation) -> NDArray[np.float64]:
    """The largest error of each row over its outputs, (n,); infinite where it is unknown."""
    each = np.nan_to_num(e.error.reshape(len(e), -1), nan=np.inf, posinf=np.inf)
    return np.asarray(each.max(axis=1, initial=0.0))


def measured(e: Explanation, numbers: Sequence[int], tol: float, corner_tol: float, limit: float | None) -> Accuracy:
    """How accurate an explanation is whose rows have these numbers in the source; `limit` is the largest error."""
    if not len(e):
        return Accuracy()
    error = errors_of(e)
    values = np.abs(e.values[:, :, None] if e.values.ndim == 2 else e.values)
    ends = np.abs(e.predictions.reshape(len(e), -1)), np.abs(e.base_values.reshape(len(e), -1))
    allowed = tol * np.maximum(*ends) + 1.05 * corner_tol * values.max(axis=1, initial=0.0)
    allowed += _ROUNDING * (values.sum(axis=1) + ends[0] + ends[1])
    each = np.nan_to_num(e.error.reshape(len(e), -1), nan=np.inf, posinf=np.inf)
    beyond = 0 if limit is None else int((error > limit).sum())
    worst = int(error.argmax())
    return Accuracy(int((each > allowed).any(axis=1).sum()), beyond, float(error[worst]), int(numbers[worst]))


def too_inaccurate(e: Explanation, max_error: float | None, kept: NDArray[np.int64]) -> dict[int, str]:
    """The rows whose error exceeds `max_error`: position in the table -> why."""
    if max_error is None:
        return {}
    error = errors_of(e)
    return {
        int(kept[i]): f"its credits may be off by {error[i]:.3g}, and max_error is {max_error:g}"
        for i in np.flatnonzero(error > max_error)
    }


def checked_max_error(asked: float | None) -> float | None:
    if asked is not None and not (checks.is_number(asked) and 0.0 <= asked < math.inf):
        raise InputError(f"max_error must be a number that is not negative, in units of the score; got {asked!r}.")
    return asked


@contextmanager
def warned_once(max_error: float | None) -> Iterator[Callable[[Accuracy, int], None]]:
    """Replace the accuracy warnings of single batches, which count rows within the batch, by one for the run."""
    kept: list[str] = []
    with warnings.catch_warnings():
        show = warnings.showwarning

        def sort(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, AccuracyWarning):
                kept.append(str(message))
                _log.debug("in one batch, rows counted from its first: %s", message)
            else:
                show(message, category, *where, **more)

        warnings.showwarning = sort
        warnings.simplefilter("always", AccuracyWarning)

        def tell(found: Accuracy, rows: int) -> None:
            warnings.showwarning = show
            first = f" The first warning of a batch: {kept[0]}" if kept else ""
            if found.out_of_tolerance:
                where = "" if found.worst_row is None else f", in row {found.worst_row}"
                warn(
                    f"{found.out_of_tolerance:,} of {rows:,} rows are out of tolerance; the largest error of a credit "
                    f"is {found.largest_error:.3g}{where}. max_error (--max-error) makes this a "
                    f"failure, and `error` is what each row may be off by.{first}",
                    AccuracyWarning,
                )
            elif kept and max_error is None:
                warn(f"No row is out of tolerance.{first}", AccuracyWarning)

        yield tell


def hold(found: Accuracy, max_error: float | None, rows: int) -> None:
    """Raise an AccuracyError if rows exceed `max_error`; no result is written, and the completed parts are kept."""
    if max_error is not None and found.beyond_max_error:
        raise AccuracyError(
            f"{found.beyond_max_error:,} of {rows:,} rows have credits that may be off by more than max_error "
            f"{max_error:g}; the largest error is {found.largest_error:.3g}, in row {found.worst_row}. Nothing was "
            "written. Ask for more accuracy (--tol, --corner-tol) with --restart, go on with a larger --max-error, or "
            "leave such rows out with on_error skip or null (--on-error) and --restart."
        )
