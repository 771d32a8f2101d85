"""What a command is asked to do, from options and a TOML file: options win. The same is written by --save-config."""

from __future__ import annotations

import json
import os
import re
import tomllib
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from .._io.durable import replacing
from ..errors import InputError


@dataclass(frozen=True)
class Member:
    """One model of an ensemble: its file, and scores that its own score is ranked by before it is joined."""

    file: str
    scores: str | None = None


@dataclass(frozen=True)
class Ensemble:
    """Several models joined.

    Attributes
    ----------
    kind : "stack" or "average"
    members : tuple of Member
    head : str or None
        The file of the model that reads the members' scores; `weights` instead of it are a weighted sum.
    weights : tuple of float or None
    passthrough : bool
        Whether the head also reads the columns themselves.
    output : str or None
        "margin" to join raw scores.
    """

    kind: str
    members: tuple[Member, ...]
    head: str | None = None
    weights: tuple[float, ...] | None = None
    passthrough: bool = False
    output: str | None = None


@dataclass(frozen=True)
class Config:
    """Everything that `gigrad` can be told; None stands for what each command does by default."""

    model: str | None = None
    data: str | None = None
    reference: str | None = None
    out: str | None = None
    output: str | None = None
    scores: str | None = None
    target: str | None = None
    columns: tuple[str, ...] | None = None
    id: tuple[str, ...] | None = None
    weights: str | None = None
    discrete: tuple[str, ...] | None = None
    nominal: tuple[str, ...] | None = None
    reference_rows: int | None = None
    tol: float | None = None
    seed: int | None = None
    corner_tol: float | None = None
    threads: int | None = None
    batch_rows: int | None = None
    on_error: str | None = None
    rejects: str | None = None
    engine: str | None = None
    trust_pickle: bool | None = None
    trust: tuple[str, ...] | None = None
    cutoff: float | None = None
    higher_is_better: bool | None = None
    top: int | None = None
    statements: str | None = None
    exclude: tuple[str, ...] | None = None
    min_share: float | None = None
    permitted: tuple[str, ...] | None = None
    everybody: bool | None = None
    audit: str | None = None
    title: str | None = None
    rows: int | None = None
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    ensemble: Ensemble | None = None

    def over(self, file: Config) -> Config:
        """These options where they say something, those of a file elsewhere."""
        given = {f.name: v for f in fields(self) if (v := getattr(self, f.name)) not in (None, {})}
        return replace(file, **given)

    def need(self, name: str, option: str) -> str:
        """A text that the command cannot do without."""
        value = getattr(self, name)
        if value is None:
            raise InputError(f"{option} must be given, on the command line or as {name!r} in the file of --config.")
        return str(value)


PATHS = ("model", "data", "reference", "out", "scores", "rejects", "statements", "audit")


def read_config(path: Path) -> Config:
    """A configuration from a TOML file; its paths are relative to the file's folder."""
    try:
        with open(path, "rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise InputError(
            f"The configuration {path} cannot be read: {(error.strerror or str(error)).lower()}."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"The configuration {path} is not TOML: {error}.") from None
    config: Config = _build(Config, content, f"{path}")
    return _moved(config, lambda p: os.path.normpath(path.parent / p))


def write_config(config: Config, path: Path) -> None:
    """Write a configuration that `read_config` reads back as the same."""

    def relative(p: str) -> str:
        return p if os.path.isabs(p) else os.path.relpath(p, path.parent or ".")

    lines = ["# What a run of gigrad was told. Use it again with --config.", *_toml(_moved(config, relative))]
    with replacing(path) as aside:
        aside.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _moved(config: Config, move: Any) -> Config:
    def moved(p: str | None) -> str | None:
        return None if p is None else str(move(p))

    changed: dict[str, Any] = {name: moved(getattr(config, name)) for name in PATHS}
    if config.scores == "reference":  # which is no path: the scores are the reference's own
        changed["scores"] = "reference"
    if config.ensemble is not None:
        members = tuple(Member(str(move(m.file)), moved(m.scores)) for m in config.ensemble.members)
        changed["ensemble"] = replace(config.ensemble, members=members, head=moved(config.ensemble.head))
    return replace(config, **changed)


def _build(cls: Any, data: dict[str, Any], what: str) -> Any:
    hints = get_type_hints(cls)
    unknown = [name for name in data if name.replace("-", "_") not in hints]
    if unknown:
        near = get_close_matches(unknown[0].replace("-", "_"), hints, 1)
        known = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(hints)}."
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
    return value


_KINDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def _toml(config: Config) -> list[str]:
    """The lines of a TOML file: plain values first, then tables."""
    lines, tables = [], []
    for f in fields(config):
        value = getattr(config, f.name)
        if value is None or value == {}:
            continue
        if f.name == "groups":
            tables += ["", "[groups]", *(f"{_key(k)} = {_text(list(v))}" for k, v in value.items())]
        elif f.name == "ensemble":
            tables += ["", "[ensemble]", *_ensemble_lines(value)]
        else:
            lines.append(f"{f.name} = {_text(value)}")
    return lines + tables


def _ensemble_lines(ensemble: Ensemble) -> list[str]:
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
        # JSON's escapes are TOML's too; DEL is the one character that only TOML wants escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_text(v) for v in value)}]"
    return repr(value)
