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
    from .adverse import Reasons as Reasons
    from .adverse import reasons as reasons
    from .adverse import replay_reasons as replay_reasons
    from .choosing import discrete_values as discrete_values
    from .compose import SmoothedECDF as SmoothedECDF
    from .compose import average as average
    from .compose import stack as stack
    from .configuration import config as config
    from .errors import AccuracyWarning as AccuracyWarning
    from .errors import ColumnWarning as ColumnWarning
    from .errors import CorruptModelError as CorruptModelError
    from .errors import GigradError as GigradError
    from .errors import InputError as InputError
    from .errors import MissingDependencyError as MissingDependencyError
    from .errors import ModelMismatchError as ModelMismatchError
    from .errors import NotFittedError as NotFittedError
    from .errors import OutputError as OutputError
    from .errors import ReasonsWarning as ReasonsWarning
    from .errors import StatementWarning as StatementWarning
    from .errors import UnfinishedRunError as UnfinishedRunError
    from .errors import UnsupportedModelError as UnsupportedModelError
    from .examination import Verification as Verification
    from .examination import verify_reasons as verify_reasons
    from .explainer import Explainer as Explainer
    from .explainer import explain as explain
    from .explainer import explain_pairs as explain_pairs
    from .explanation import Explanation as Explanation
    from .gaps import ScoreGap as ScoreGap
    from .gaps import explain_gap as explain_gap
    from .graph import Graph as Graph
    from .importers import import_model as import_model
    from .importers import register_importer as register_importer
    from .importers import supported as supported
    from .importers.function import function as function
    from .references import Reference as Reference
    from .reports import report as report
    from .stability import Stability as Stability
    from .stability import reason_stability as reason_stability

# where each public name lives; a name that is its own home is a module
_HOMES = {
    "AccuracyWarning": "errors",
    "ColumnWarning": "errors",
    "CorruptModelError": "errors",
    "Explainer": "explainer",
    "Explanation": "explanation",
    "GigradError": "errors",
    "Graph": "graph",
    "InputError": "errors",
    "MissingDependencyError": "errors",
    "ModelMismatchError": "errors",
    "NotFittedError": "errors",
    "OutputError": "errors",
    "Reasons": "adverse",
    "ReasonsWarning": "errors",
    "Reference": "references",
    "ScoreGap": "gaps",
    "SmoothedECDF": "compose",
    "Stability": "stability",
    "StatementWarning": "errors",
    "UnfinishedRunError": "errors",
    "UnsupportedModelError": "errors",
    "Verification": "examination",
    "average": "compose",
    "batch": "batch",
    "config": "configuration",
    "discrete_values": "choosing",
    "explain": "explainer",
    "explain_gap": "gaps",
    "explain_pairs": "explainer",
    "function": "importers.function",
    "import_model": "importers",
    "plots": "plots",
    "reason_stability": "stability",
    "reasons": "adverse",
    "references": "references",
    "register_importer": "importers",
    "replay_reasons": "adverse",
    "report": "reports",
    "stack": "compose",
    "supported": "importers",
    "verify_reasons": "examination",
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
