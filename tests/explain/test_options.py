"""One set of options: what functions that explain take, show and refuse, and what the command line makes of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

import gigrad as gig
from gigrad._explain.options import Keywords, Options
from gigrad.cli.options import SHARED, Config
from gigrad.engine.settings import RECORDED, Settings

NAMES = [f.name for f in fields(Options)]
TAKERS: list[Callable[..., Any]] = [
    gig.explain,
    gig.Explainer,
    gig.explain_pairs,
    gig.explain_gap,
    gig.explain_change,
    gig.compare,
    gig.report,
    gig.reason_stability,
]


def test_type_checkers_and_the_interpreter_see_the_same_keywords() -> None:
    assert list(Keywords.__annotations__) == NAMES


@pytest.mark.parametrize("function", TAKERS)
def test_signatures_spell_out_every_option_with_its_default(function: Callable[..., Any]) -> None:
    shown = inspect.signature(function).parameters
    assert {name: shown[name].default for name in NAMES} == {f.name: f.default for f in fields(Options)}
    assert all(shown[name].kind is inspect.Parameter.KEYWORD_ONLY for name in NAMES)
    assert not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in shown.values())


def test_an_unknown_keyword_is_refused_with_the_nearest_name() -> None:
    wrong: dict[str, Any] = {"corner_tolerance": 1e-3}
    with pytest.raises(TypeError, match="unexpected keyword argument 'corner_tolerance'; did you mean 'corner_tol'"):
        gig.explain(None, None, None, **wrong)


def test_the_command_line_has_the_options_that_can_be_typed() -> None:
    known = {f.name for f in fields(Config)}
    assert set(SHARED.values()) <= known
    assert set(NAMES) - set(SHARED) == {"output", "target", "groups"}  # which commands take in a form of their own
    assert set(NAMES) - set(SHARED) <= known


def test_what_can_change_a_credit_is_an_option_and_a_setting() -> None:
    assert set(RECORDED) <= set(NAMES)
    assert {name: getattr(Options().settings(), name) for name in RECORDED} == {
        name: getattr(Settings(), name) for name in RECORDED
    }
