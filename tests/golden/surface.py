"""The public surface as data: names with their parameters, commands with their options.

python tests/golden/surface.py writes surface.json anew, before a release; test_surface_stays.py holds the next to it.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import gigrad

FILE = Path(__file__).parent / "surface.json"


def parameters(thing: Any) -> list[str]:
    """The names by which arguments can be given; none where they cannot be told."""
    try:
        found = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in found if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name != "self"]


def described(thing: Any) -> Any:
    """Parameters of a function; of a class its own and those of its public members."""
    if inspect.isclass(thing):
        own = {name: member for name, member in vars(thing).items() if not name.startswith("_")}
        members = {name: parameters(getattr(thing, name)) if callable(m) else None for name, m in sorted(own.items())}
        return {"parameters": [] if issubclass(thing, Exception) else parameters(thing), "members": members}
    if inspect.ismodule(thing):
        return {name: described(getattr(thing, name)) for name in sorted(getattr(thing, "__all__", ()))}
    return parameters(thing) if callable(thing) else None


def names() -> dict[str, Any]:
    return {name: described(getattr(gigrad, name)) for name in sorted(gigrad.__all__)}


def commands() -> dict[str, list[str]]:
    """Commands with their options. Needs the extra `cli`."""
    import typer.main

    from gigrad.cli.app import app

    found: Any = typer.main.get_command(app)
    return {
        name: sorted(flag for p in command.params for flag in p.opts if flag.startswith("--"))
        for name, command in sorted(found.commands.items())
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps({"names": names(), "commands": commands()}, indent=1) + "\n")
