"""Every exception gigrad raises on purpose, in one place.

::

    GigradError
    ├── InputError (ValueError)               a table, weight or argument cannot be used
    ├── UnsupportedModelError (TypeError)     a model, or a part, cannot be imported
    ├── NotFittedError (ValueError)           a model has not been fitted
    ├── CorruptModelError (ValueError)        trees or files cannot be what they claim
    ├── OutputError (OSError)                 a result cannot be written where it should
    ├── UnfinishedRunError (ValueError)       an interrupted run had other settings
    ├── LedgerError (ValueError)              audit records were changed, or do not verify
    ├── AccuracyError                         credits may be off by more than was promised
    ├── ModelMismatchError                    the graph's predictions differ from the model's
    └── MissingDependencyError (ImportError)  an extra is not installed
    AccuracyWarning (UserWarning)             the tolerance was missed on the named rows
    IdWarning (UserWarning)                   rows have no id, or that of another row
    ColumnWarning (UserWarning)               columns of 0 and 1 are not among the discrete ones
    CostWarning (UserWarning)                 a reference is so large that explaining against it takes long
    StatementWarning (UserWarning)            reasons have no text in the statements, or a doubtful one
    ReasonsWarning (UserWarning)              reasons are probably based on a mistake

A message says what must hold, what was given, and what to do, in one sentence.
"""

from __future__ import annotations

import re
import sys
import warnings

_NUMPY_SCALAR = re.compile(r"\bnp\.(?:(?:float|int|uint|str|bytes|longdouble)\d*_?\(([^()]*)\)|(True|False)_)")


class GigradError(Exception):
    """Base of every error that gigrad raises on purpose."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(readable(a) if isinstance(a, str) else a for a in args))


class InputError(GigradError, ValueError):
    """A table, a weight or an argument cannot be used as given."""


class UnsupportedModelError(GigradError, TypeError):
    """The model, or a part of it, has no importer or is outside of what GIG covers."""


class NotFittedError(GigradError, ValueError):
    """The model has not been fitted."""


class CorruptModelError(GigradError, ValueError):
    """Trees or files are damaged: they cannot be what they claim to be."""


class OutputError(GigradError, OSError):
    """A result cannot be written where it should go; what was there before is untouched."""


class UnfinishedRunError(GigradError, ValueError):
    """The target has an interrupted run that was started with other inputs, another model or other settings."""


class ModelMismatchError(GigradError):
    """The imported graph does not reproduce the model's own predictions."""


class LedgerError(GigradError, ValueError):
    """A ledger of audit records was changed since it was written, or its records differ from the model's results."""


class AccuracyError(GigradError):
    """Credits may be off by more than the run promised (`max_error`); nothing was written."""


class MissingDependencyError(GigradError, ImportError):
    """An optional package is needed and not installed."""


class AccuracyWarning(UserWarning):
    """The requested tolerance was not reached; the message names the rows."""


class IdWarning(UserWarning):
    """Rows of a table have no id, or the id of another row; the message says how many."""


class ColumnWarning(UserWarning):
    """Columns may be of another type than the table says: flags of 0 and 1, or integers as float64; it names them."""


class CostWarning(UserWarning):
    """A reference is so large that explaining against it takes long; the message says how long, and what to do."""


class StatementWarning(UserWarning):
    """Some reasons have no text in the statements, or one that contradicts a value; the message names the features."""


class ReasonsWarning(UserWarning):
    """Reasons may be based on a mistake: swapped tables, a reversed direction, a column that may not be used."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line that called gigrad, however deep inside it the matter was noticed."""
    package = __name__.partition(".")[0]
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    warnings.warn(readable(message), category, stacklevel=level)


def readable(message: str) -> str:
    """A message with numbers as people write them: 0.44 where NumPy 2 writes np.float64(0.44) for itself."""
    return _NUMPY_SCALAR.sub(lambda found: found[1] or found[2] or "", message)


def kind_of(value: object) -> str:
    """What a message calls a value: "an int", "a DataFrame", "None"."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"
