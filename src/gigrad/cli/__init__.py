"""The command line: `app.py` has the commands, `config.py` what they can be told, `build.py` how that is an explainer,
`commands.py` and `info.py` what they do, `console.py` what the user sees."""

from __future__ import annotations

import atexit
import os
import sys


def main() -> None:
    """The console script `gigrad`."""
    try:
        _main()
    except KeyboardInterrupt:  # before a command had begun
        print("Error: Interrupted.", file=sys.stderr)
        sys.exit(130)
    except SystemExit as end:
        if isinstance(end.code, int) and end.code and "pyarrow" in sys.modules:
            _leave(end.code)
        raise


def _leave(code: int) -> None:
    """Exit at once, with a code that scripts can rely on.

    A thread of Arrow's may still be busy with a CSV file that a failed command was reading. It asks for Python's lock
    to release our function for broken lines, and where Python is being torn down just then, the process is aborted.
    """
    try:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _main() -> None:
    from ..errors import MissingDependencyError

    try:
        from .app import app
    except MissingDependencyError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(7)
    app()
