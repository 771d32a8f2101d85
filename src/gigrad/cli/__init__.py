"""The command line: `app.py` has the commands, `config.py` what they can be told, `build.py` how that is an explainer,
`commands.py` and `info.py` what they do, `console.py` what the user sees."""

from __future__ import annotations

import sys


def main() -> None:
    """The console script `gigrad`."""
    try:
        _main()
    except KeyboardInterrupt:  # before a command had begun
        print("Error: Interrupted.", file=sys.stderr)
        sys.exit(130)


def _main() -> None:
    from ..errors import MissingDependencyError

    try:
        from .app import app
    except MissingDependencyError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(7)
    app()
