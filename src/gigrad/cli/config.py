"""Configurations in TOML files: read for --config, where typed options take precedence, and written by --save-config.

A file cannot grant trust (--trust, --trust-pickle): that must be typed.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from dataclasses import fields, replace
from difflib import get_close_matches
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from .._io.durable import replacing
from ..errors import InputError
from .options import OPTIONS, PATHS, Config, Ensemble, Member

__all__ = ["Config", "Ensemble", "Member", "read_config", "write_config"]


def read_config(path: Path) -> Config:
    """A configuration from a TOML file; its paths are relative to the file's folder."""
    try:
        with open(path, "rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise InputError(
            f"The configuration {path} cannot be read: {(error.strerror or str(error)).lower()}."
        ) from None
    except RecursionError:
        raise InputError(f"The configuration {path} must have few levels; it is nested too deeply.") from None
    except ValueError as error:  # of TOML, of UTF-8, of numbers with thousands of digits
        raise InputError(f"The configuration {path} is not TOML: {error}.") from None
    _refuse_typed(content, path)
    _turned(content, path)
    config: Config = _build(Config, content, f"{path}")
    return _moved(config, lambda p: os.path.normpath(path.parent / p))


def _refuse_typed(content: dict[str, Any], path: Path) -> None:
    """Raise if a file sets options that must be typed: one that grants trust could run its author's code."""
    for name in content:
        option = OPTIONS.get(name.replace("-", "_"))
        if option is not None and not option.in_file:
            typed = option.names[0] if option.names else f"--{name.replace('_', '-')}"
            why = "a file may not grant trust" if name.startswith("trust") else "it is about one call alone"
            raise InputError(f"{path} has {name!r}, and {why}; leave it out, and type {typed} where it is meant.")


def _turned(content: dict[str, Any], path: Path) -> None:
    """Replace `lower_is_better`, which may be typed, by the equivalent `higher_is_better`."""
    for name in [n for n in content if n.replace("-", "_") == "lower_is_better"]:
        value = content.pop(name)
        if type(value) is not bool or {"higher_is_better", "higher-is-better"} & content.keys():
            raise InputError(f"{path} must say higher_is_better or {name}, true or false, one of them once.")
        content["higher_is_better"] = not value


def write_config(config: Config, path: Path) -> None:
    """Write a configuration that `read_config` reads back as the same."""

    def relative(p: str) -> str:
        return p if os.path.isabs(p) else os.path.relpath(p, path.parent or ".")

    lines = ["# The options of a run of gigrad. Use them again with --config.", *_toml(_moved(config, relative))]
    with replacing(path) as aside:
        aside.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _moved(config: Config, move: Any) -> Config:
    """The configuration with every path in it changed by `move`."""

    def moved(p: str | None) -> str | None:
        return None if p is None else str(move(p))

    changed: dict[str, Any] = {name: moved(getattr(config, name)) for name in PATHS}
    if config.scores == "reference":  # not a path: the scores are the reference's own
        changed["scores"] = "reference"
    if config.ensemble is not None:
        members = tuple(Member(str(move(m.file)), moved(m.scores)) for m in config.ensemble.members)
        changed["ensemble"] = replace(config.ensemble, members=members, head=moved(config.ensemble.head))
    return replace(config, **changed)


def _build(cls: Any, data: dict[str, Any], what: str) -> Any:
    """A dataclass from the keys of a configuration file; unknown and missing keys are refused."""
    hints = get_type_hints(cls)
    unknown = [name for name in data if name.replace("-", "_") not in hints]
    if unknown:
        names = [n for n in hints if n not in OPTIONS or OPTIONS[n].in_file]
        near = get_close_matches(unknown[0].replace("-", "_"), names, 1)
        known = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(names)}."
        raise InputError(f"{what} has {unknown[0]!r}, which is not known; {known}")
    values = {n.replace("-", "_"): _value(v, hints[n.replace("-", "_")], f"{n} in {what}") for n, v in data.items()}
    missing = [f.name for f in fields(cls) if f.name not in values and f.name in ("kind", "members", "file")]
    if missing:
        raise InputError(f"{what} must have {missing[0]!r}.")
    return cls(**values)


def _value(value: Any, hint: Any, what: str) -> Any:
    """A value of the type that a field declares; a single text stands for a list of one."""
    if isinstance(hint, UnionType):
        (hint,) = (a for a in get_args(hint) if a is not type(None))
    if get_origin(hint) is tuple:
        items = value if isinstance(value, list) else [value]
        return tuple(_value(v, get_args(hint)[0], what) for v in items)
    if get_origin(hint) is dict:
        if not isinstance(value, dict):
            raise InputError(f"{what} must be a table.")
        return {k: _value(v, get_args(hint)[1], f"{k} of {what}") for k, v in value.items()}
    if hint is Member and isinstance(value, str):
        return Member(value)
    if hint in (Member, Ensemble):
        if not isinstance(value, dict):
            raise InputError(f"{what} must be a table.")
        return _build(hint, value, what)
    if hint is float and type(value) is int:
        return float(value)
    if hint is str and type(value) is int:
        return str(value)
    if type(value) is not hint:
        raise InputError(f"{what} must be {_KINDS[hint]}; got {value!r}.")
    if isinstance(value, str) and "\0" in value:
        raise InputError(f"{what} must be a text without the character NUL, which no name of a file may have.")
    return value


_KINDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def _toml(config: Config) -> list[str]:
    """The lines of a TOML file: plain values first, then tables."""
    lines, tables = [], []
    for f in fields(config):
        value = getattr(config, f.name)
        if value is None or value == {} or (f.name in OPTIONS and not OPTIONS[f.name].in_file):
            continue
        if f.name == "groups":
            tables += ["", "[groups]", *(f"{_key(k)} = {_text(list(v))}" for k, v in value.items())]
        elif f.name == "ensemble":
            tables += ["", "[ensemble]", *_ensemble_lines(value)]
        else:
            lines.append(f"{f.name} = {_text(value)}")
    return lines + tables


def _ensemble_lines(ensemble: Ensemble) -> list[str]:
    """The section of an ensemble in TOML."""
    lines = []
    for f in fields(ensemble):
        value = getattr(ensemble, f.name)
        if f.name == "members":
            each = [
                f"{{ {', '.join(f'{k} = {_text(v)}' for k, v in vars(m).items() if v is not None)} }}" for m in value
            ]
            lines.append(f"members = [{', '.join(each)}]")
        elif value is not None:
            lines.append(f"{f.name} = {_text(value)}")
    return lines


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(value: Any) -> str:
    """One value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON's escapes are TOML's too; DEL is the one character that is escaped in TOML alone.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_text(v) for v in value)}]"
    return repr(value)
