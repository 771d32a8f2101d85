"""Options as frozen dataclasses: signatures, checks of keywords and command-line options are made from their fields."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Options = TypeVar("_Options", bound="DataclassInstance")


def typed(help: str, name: str | None = None) -> dict[str, str | None]:
    """The metadata of a field for the command line: its help text and, if it differs, the option's name."""
    return {"help": help, "name": name}


def collected(options: type[_Options], keywords: Mapping[str, Any]) -> _Options:
    """The options that were given as keywords; TypeError for one that does not exist."""
    known = [f.name for f in fields(options)]
    for name in keywords:
        if name not in known:
            near = get_close_matches(name, known, 1)
            raise TypeError(f"unexpected keyword argument {name!r}{f'; did you mean {near[0]!r}?' if near else ''}")
    return options(**keywords)


def spelled_out(options: type[DataclassInstance], kinds: Mapping[str, Any]) -> Callable[[_Function], _Function]:
    """Show the fields of options one by one in the signature of a function that takes them as `**options`.

    `kinds` are the types of the keywords, by name.
    """

    def decorate(function: _Function) -> _Function:
        seen = inspect.signature(function)
        more = [
            inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=kinds[f.name])
            for f in fields(options)
            if f.name not in seen.parameters
        ]
        own = [p for p in seen.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        function.__dict__["__signature__"] = seen.replace(parameters=[*own, *more])
        return function

    return decorate
