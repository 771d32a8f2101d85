"""gigrad: exact, axiomatic credit for the scores of diverse ensembles (Generalized Integrated Gradients).

Each public name is loaded when it is first used, so that importing gigrad costs a few milliseconds in every process
that may never explain anything (a command's help, a worker that waits). No module bears the name of a public
function: importing it would put the module in the function's place.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:  # for editors and type checkers; a test compares it with the table below
    from . import batch as batch
    from . import plots as plots
    from . import references as references
    from ._explain.choosing import discrete_values as discrete_values
    from ._explain.compose import SmoothedECDF as SmoothedECDF
    from ._explain.compose import average as average
    from ._explain.compose import stack as stack
    from ._explain.explainer import Explainer as Explainer
    from ._explain.explainer import explain as explain
    from ._explain.explanation import Explanation as Explanation
    from ._explain.gaps import ScoreGap as ScoreGap
    from ._explain.gaps import explain_gap as explain_gap
    from ._explain.pairs import explain_pairs as explain_pairs
    from ._explain.reports import report as report
    from ._explain.segments import clip as clip
    from ._explain.segments import switch as switch
    from ._questions.change import explain_change as explain_change
    from ._questions.comparison import Comparison as Comparison
    from ._questions.comparison import compare as compare
    from ._questions.interaction import Interactions as Interactions
    from ._questions.interaction import interactions as interactions
    from ._questions.score_change import ScoreChange as ScoreChange
    from ._questions.settler import Settled as Settled
    from ._questions.settling import settle as settle
    from ._questions.whatif import WhatIf as WhatIf
    from ._questions.whatif import what_if as what_if
    from ._reasons import Reasons as Reasons
    from ._reasons import reasons as reasons
    from ._reasons import replay_reasons as replay_reasons
    from ._reasons.classic import scorecard_reasons as scorecard_reasons
    from ._reasons.ledger import read_ledger as read_ledger
    from ._reasons.stability import Stability as Stability
    from ._reasons.stability import reason_stability as reason_stability
    from ._reasons.verification import Verification as Verification
    from ._reasons.verification import verify_ledger as verify_ledger
    from ._reasons.verification import verify_reasons as verify_reasons
    from .batch.drift import monitor as monitor
    from .configuration import config as config
    from .errors import AccuracyError as AccuracyError
    from .errors import AccuracyWarning as AccuracyWarning
    from .errors import ColumnWarning as ColumnWarning
    from .errors import CorruptModelError as CorruptModelError
    from .errors import CostWarning as CostWarning
    from .errors import GigradError as GigradError
    from .errors import IdWarning as IdWarning
    from .errors import InputError as InputError
    from .errors import LedgerError as LedgerError
    from .errors import MissingDependencyError as MissingDependencyError
    from .errors import ModelMismatchError as ModelMismatchError
    from .errors import NotFittedError as NotFittedError
    from .errors import OutputError as OutputError
    from .errors import ReasonsWarning as ReasonsWarning
    from .errors import StatementWarning as StatementWarning
    from .errors import UnfinishedRunError as UnfinishedRunError
    from .errors import UnsupportedModelError as UnsupportedModelError
    from .graph import Graph as Graph
    from .importers import import_model as import_model
    from .importers import register_importer as register_importer
    from .importers import supported as supported
    from .importers.function import function as function
    from .importers.scorecards import Scorecard as Scorecard
    from .references import Reference as Reference

# the module of each public name; a name that is its own module is one
_HOMES = {
    "AccuracyError": "errors",
    "AccuracyWarning": "errors",
    "ColumnWarning": "errors",
    "Comparison": "_questions.comparison",
    "CorruptModelError": "errors",
    "CostWarning": "errors",
    "Explainer": "_explain.explainer",
    "Explanation": "_explain.explanation",
    "GigradError": "errors",
    "Graph": "graph",
    "IdWarning": "errors",
    "InputError": "errors",
    "Interactions": "_questions.interaction",
    "LedgerError": "errors",
    "MissingDependencyError": "errors",
    "ModelMismatchError": "errors",
    "NotFittedError": "errors",
    "OutputError": "errors",
    "Reasons": "_reasons",
    "ReasonsWarning": "errors",
    "Reference": "references",
    "ScoreChange": "_questions.score_change",
    "ScoreGap": "_explain.gaps",
    "Scorecard": "importers.scorecards",
    "Settled": "_questions.settler",
    "SmoothedECDF": "_explain.compose",
    "Stability": "_reasons.stability",
    "StatementWarning": "errors",
    "UnfinishedRunError": "errors",
    "UnsupportedModelError": "errors",
    "Verification": "_reasons.verification",
    "WhatIf": "_questions.whatif",
    "average": "_explain.compose",
    "batch": "batch",
    "clip": "_explain.segments",
    "compare": "_questions.comparison",
    "config": "configuration",
    "discrete_values": "_explain.choosing",
    "explain": "_explain.explainer",
    "explain_change": "_questions.change",
    "explain_gap": "_explain.gaps",
    "explain_pairs": "_explain.pairs",
    "function": "importers.function",
    "import_model": "importers",
    "interactions": "_questions.interaction",
    "monitor": "batch.drift",
    "plots": "plots",
    "read_ledger": "_reasons.ledger",
    "reason_stability": "_reasons.stability",
    "reasons": "_reasons",
    "references": "references",
    "register_importer": "importers",
    "replay_reasons": "_reasons",
    "report": "_explain.reports",
    "scorecard_reasons": "_reasons.classic",
    "settle": "_questions.settling",
    "stack": "_explain.compose",
    "supported": "importers",
    "switch": "_explain.segments",
    "verify_ledger": "_reasons.verification",
    "verify_reasons": "_reasons.verification",
    "what_if": "_questions.whatif",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        # with what Python needs to say which name may have been meant
        raise AttributeError(f"module 'gigrad' has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    home = import_module(f".{_HOMES[name]}", __name__)
    value = home if name == _HOMES[name] else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
