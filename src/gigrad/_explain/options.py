"""The keywords that `explain`, `Explainer`, `explain_pairs` and others have in common, collected into one object.

A new option is a field of `Options` and, with its type, a key of `Keywords`. The signatures that users see, the check
of unknown keywords and the option of the command line are made from them. An option that can change a credit is also
named in `engine.settings.RECORDED`, from which provenance, portable files and audit records are written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

from .._common.keywords import collected, spelled_out, typed

if TYPE_CHECKING:  # the command line reads this module for its help, which must not wait for NumPy
    from ..engine import Settings

Discrete = Sequence[str] | Mapping[str, Sequence[float] | None] | None
"""Which columns are discrete: left to the rule, named, or with their values."""


class Keywords(TypedDict, total=False):
    """The types of the keywords, for type checkers and editors; defaults and meanings are those of `Options`."""

    output: Any
    target: str | float | None
    groups: Mapping[str, Sequence[str]] | None
    discrete: Discrete
    nominal: Sequence[str] | None
    tol: float
    n_threads: int | None
    seed: int
    corner_tol: float


_DISCRETE = (
    "A discrete column, optionally with its values: term=36,60; may be given several times, 'none' for none. By "
    "default they are detected from the reference and the model's thresholds"
)
_NOMINAL = "A column of numeric codes without an order; may be given several times"
_TOL = "Largest relative error of a credit where quadrature is needed (1e-6)"
_CORNER_TOL = (
    "Largest error where many columns change at once and their orders are sampled, relative to the row's largest "
    "credit (1e-3)"
)


@dataclass(frozen=True, eq=False)
class Options:
    """What to explain and how; the attributes are documented as parameters of `Explainer`."""

    output: Any = None
    target: str | float | None = None
    groups: Mapping[str, Sequence[str]] | None = None
    discrete: Discrete = field(default=None, metadata=typed(_DISCRETE))
    nominal: Sequence[str] | None = field(default=None, metadata=typed(_NOMINAL))
    tol: float = field(default=1e-6, metadata=typed(_TOL))
    n_threads: int | None = field(
        default=None, metadata=typed("Number of threads (all cores); results do not depend on it", "threads")
    )
    seed: int = field(default=0, metadata=typed("Seed of random numbers (0)"))
    corner_tol: float = field(default=1e-3, metadata=typed(_CORNER_TOL))

    @classmethod
    def of(cls, keywords: Mapping[str, Any]) -> Options:
        """The options that were given as keywords; TypeError for one that does not exist."""
        return collected(cls, keywords)

    def settings(self) -> Settings:
        """The engine's settings from these options, after checking their values."""
        from .._common import checks
        from ..engine import Settings

        return Settings(
            tol=checks.inside(self.tol, "tol"),
            n_threads=None if self.n_threads is None else checks.whole(self.n_threads, "n_threads"),
            corner_tol=checks.target(self.corner_tol, "corner_tol"),
            seed=checks.seed(self.seed),
        )


takes_options = spelled_out(Options, Keywords.__annotations__)
"""Show the keywords of `Options` one by one in the signature of a function that takes them as `**options`."""
