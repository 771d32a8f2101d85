"""Credits against parts of the reference, which show how much credits depend on the rows of the reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .._common.progress import parts
from ..engine import Population, Settings
from ..errors import InputError
from ..graph import Array
from .paths import Ints
from .resampling import bootstrap_weights

if TYPE_CHECKING:
    from .scorer import Scorer


@dataclass(frozen=True, eq=False)
class ReferenceParts:
    """The credits of every row against parts of the reference, each of them alone.

    Attributes
    ----------
    credit : (g, n, p) or (g, n, p, k)
    weights : (g,)
        The parts' shares of the reference; they sum to 1.
    of : int
        How many rows the reference has: g where every row is a part of its own.
    """

    credit: Array
    weights: Array
    of: int

    def __post_init__(self) -> None:
        if self.credit.ndim not in (3, 4) or len(self.credit) != len(self.weights):
            raise InputError(
                "Credits against parts of the reference need the shape (parts, rows, features, ...) and a weight for "
                f"each part; got {self.credit.shape} and {len(self.weights)} weights."
            )

    def __len__(self) -> int:
        return len(self.credit)

    def take_rows(self, index: Ints) -> ReferenceParts:
        """The same for some of the explained rows."""
        return replace(self, credit=self.credit[:, index])

    def take_outputs(self, index: int | Ints) -> ReferenceParts:
        """The same for some outputs; a single number drops the outputs' axis."""
        return replace(self, credit=self.credit[..., index])

    def merge_features(self, members: Sequence[Ints]) -> ReferenceParts:
        """The same for new features, each the sum of some old ones."""
        return replace(self, credit=np.stack([self.credit[:, :, old].sum(axis=2) for old in members], axis=2))

    def drawn(self, draws: int, random: np.random.Generator) -> Array:
        """The parts' weights in bootstrap references, made of parts drawn with replacement, (draws, g)."""
        return bootstrap_weights(self.weights, draws, random)


def credits_by_part(scorer: Scorer, population: Population, many: int, settings: Settings) -> ReferenceParts:
    """The credits against `many` random parts of the reference; each row is a part where it has no more rows."""
    of = len(population.weights)
    order = np.arange(of) if many >= of else np.random.default_rng(settings.seed).permutation(of)
    quiet, credit, weights = replace(settings, quiet=True), [], []
    dealt = np.array_split(order, min(many, of))
    for stage, rows in zip(parts(*map(len, dealt)), dealt, strict=True):
        weights.append(float(population.weights[rows].sum()))
        # A part of weight 0 does not count; any weights within it will do.
        within = population.weights[rows] / weights[-1] if weights[-1] else np.full(len(rows), 1.0 / len(rows))
        part = Population(population.starts[rows], within, population.ends)
        with stage:
            credit.append(scorer.credit(part, quiet).values)
    stacked = np.stack(credit)
    return ReferenceParts(stacked[..., 0] if scorer.node.width == 1 else stacked, np.array(weights), of)
