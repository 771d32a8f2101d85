"""Public names, their parameters, commands and options of the last release are still there; more are welcome."""

from __future__ import annotations

import json
from typing import Any

import pytest
import surface

PROMISED = json.loads(surface.FILE.read_text())
NOT_YET = "a promise is broken, unless no release had these: then write them anew by python tests/golden/surface.py"


def missing(promised: Any, present: Any, where: str) -> list[str]:
    """What is promised and not there, named from the outside in."""
    if isinstance(promised, dict):
        if not isinstance(present, dict):
            return [where]
        return [
            fault
            for name, inside in promised.items()
            for fault in (missing(inside, present[name], f"{where} {name}") if name in present else [f"{where} {name}"])
        ]
    if isinstance(promised, list):
        return [f"{where}({name})" for name in promised if name not in (present or [])]
    return []


def test_public_names_and_their_parameters_stay() -> None:
    assert len(PROMISED["names"]) > 50
    assert missing(PROMISED["names"], surface.names(), "gigrad") == [], NOT_YET


def test_commands_and_options_stay() -> None:
    pytest.importorskip("typer")
    assert missing(PROMISED["commands"], surface.commands(), "gigrad") == [], NOT_YET


def test_what_is_missing_is_named() -> None:
    promised = {"f": ["a", "b"], "C": {"parameters": [], "members": {"m": ["x"], "n": None}}}
    present = {"f": ["a"], "C": {"parameters": [], "members": {"m": []}}}
    assert missing(promised, present, "gigrad") == ["gigrad f(b)", "gigrad C members m(x)", "gigrad C members n"]
