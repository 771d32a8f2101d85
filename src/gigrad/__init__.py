"""gigrad: exact, axiomatic credit for the scores of diverse ensembles (Generalized Integrated Gradients)."""

from . import batch, plots, references
from .compose import SmoothedECDF, average, stack
from .errors import (
    AccuracyWarning,
    CorruptModelError,
    GigradError,
    InputError,
    MissingDependencyError,
    ModelMismatchError,
    NotFittedError,
    OutputError,
    StatementWarning,
    UnfinishedRunError,
    UnsupportedModelError,
)
from .examination import Verification, verify_reasons
from .explain import Explainer, explain, explain_pairs
from .explanation import Explanation
from .gaps import ScoreGap, explain_gap
from .graph import Graph
from .importers import import_model, register_importer, supported
from .importers.function import function
from .reasons import Reasons, reasons, replay_reasons
from .references import Reference
from .reports import report
from .stability import Stability, reason_stability

__version__ = "0.1.0"

__all__ = [
    "AccuracyWarning",
    "CorruptModelError",
    "Explainer",
    "Explanation",
    "GigradError",
    "Graph",
    "InputError",
    "MissingDependencyError",
    "ModelMismatchError",
    "NotFittedError",
    "OutputError",
    "Reasons",
    "Reference",
    "ScoreGap",
    "SmoothedECDF",
    "Stability",
    "StatementWarning",
    "UnfinishedRunError",
    "UnsupportedModelError",
    "Verification",
    "average",
    "batch",
    "explain",
    "explain_gap",
    "explain_pairs",
    "function",
    "import_model",
    "plots",
    "reason_stability",
    "reasons",
    "references",
    "register_importer",
    "replay_reasons",
    "report",
    "stack",
    "supported",
    "verify_reasons",
]
