"""The command line: `app.py` defines the commands, `options.py` and `config.py` their options and files, `build.py`
makes an explainer of them, `commands.py` and `info.py` do the work, `console.py` writes messages and progress."""

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

    A thread of Arrow may still be reading a CSV file for a failed command. It needs the GIL to release our callback for
    broken lines, and if Python is shutting down just then, the process is aborted.
    """
    try:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _main() -> None:
    """The command `gigrad`; says what to install where its libraries are missing."""
    from ..errors import MissingDependencyError

    try:
        from .app import app
    except MissingDependencyError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(7)
    app()
