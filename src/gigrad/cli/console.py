"""What the user sees: messages, progress, and exit codes that scripts can rely on."""

from __future__ import annotations

import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from .. import errors

CODES: dict[type[BaseException], int] = {
    errors.MissingDependencyError: 7,
    errors.UnfinishedRunError: 6,
    errors.OutputError: 5,
    errors.UnsupportedModelError: 4,
    errors.CorruptModelError: 4,
    errors.NotFittedError: 4,
    errors.ModelMismatchError: 4,
    errors.InputError: 3,
}
"""0 done, 1 a fault of gigrad's own, 2 wrong usage, 3 input that cannot be used, 4 a model that cannot be used, 5
output that cannot be written, 6 an interrupted run in the way, 7 a package that is absent, 130 interrupted."""


@contextmanager
def guarded(resumable: bool = False) -> Iterator[None]:
    """Turn every failure into one sentence on stderr and an exit code; GIGRAD_TRACEBACK=1 shows the traceback."""
    warnings.showwarning = _show_warning
    try:
        yield
    except errors.GigradError as error:
        _fail(str(error), next((code for kind, code in CODES.items() if isinstance(error, kind)), 3))
    except KeyboardInterrupt:
        _interrupted(resumable)
    except BrokenPipeError:
        # The reader of our output has gone, say `| head`: nothing is left to be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except MemoryError:
        _fail("There is not enough memory; try fewer rows at a time (--batch-rows) or fewer reference rows.", 3)
    except Exception as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # Python wraps one that comes while a class is made
            _interrupted(resumable)
        _fail(f"gigrad failed in a way it should not ({type(error).__name__}: {error}). Please report this; "
              "GIGRAD_TRACEBACK=1 shows where it happened.", 1)  # fmt: skip


def say(text: str = "") -> None:
    """A line of the answer itself."""
    print(text)


def note(text: str, quiet: bool = False) -> None:
    """A line about the work, which is not part of the answer."""
    if not quiet:
        print(text, file=sys.stderr)


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """How far a run is: a bar with rate and time left in a terminal, a line now and then elsewhere."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _bar() as bar:
            yield _Bar(bar)
    else:
        yield _Lines()


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,.0f} of {task.total:,.0f} rows"),
        TextColumn("{task.fields[rate]}"), TimeRemainingColumn(), console=Console(stderr=True),
    )  # fmt: skip


class _Clock:
    """Rows a second since a phase began: a resumed run begins with rows already done."""

    def __init__(self) -> None:
        self.phase, self.began, self.first = "", 0.0, 0

    def rate(self, phase: str, done: int) -> float:
        if phase != self.phase:
            self.phase, self.began, self.first = phase, time.monotonic(), done
        return (done - self.first) / max(time.monotonic() - self.began, 1e-9)


class _Bar:
    def __init__(self, bar: Any) -> None:
        self.bar, self.clock = bar, _Clock()
        self.tasks: dict[str, Any] = {}

    def __call__(self, phase: str, done: int, total: int) -> None:
        rate = self.clock.rate(phase, done)
        if phase not in self.tasks:
            self.tasks[phase] = self.bar.add_task(phase, total=max(total, 1), rate="")
        self.bar.update(self.tasks[phase], completed=done, total=max(total, done, 1), rate=f"{rate:,.0f}/s")


class _Lines:
    """A line when a phase begins and ends, and every ten seconds."""

    def __init__(self) -> None:
        self.clock, self.last, self.phase = _Clock(), 0.0, ""

    def __call__(self, phase: str, done: int, total: int) -> None:
        rate = self.clock.rate(phase, done)
        now = time.monotonic()
        if phase == self.phase and done < total and now - self.last < 10:
            return
        self.phase, self.last = phase, now
        left = f", {(total - done) / rate:,.0f} s left" if rate > 0 and done < total else ""
        speed = f", {rate:,.0f} rows/s" if rate > 0 else ""
        note(f"{phase}: {done:,} of {total:,} rows{speed}{left}")


def _show_warning(
    message: Any, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    if issubclass(category, (errors.AccuracyWarning, errors.ReasonsWarning, errors.StatementWarning)):
        note(f"Warning: {message}")


def _interrupted(resumable: bool) -> NoReturn:
    # A library that had the signal too, or an impatient second one, must not break off the tidying up.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _fail("Interrupted." + (" The same command goes on where it stopped." if resumable else ""), 130)


def _fail(text: str, code: int) -> NoReturn:
    if os.environ.get("GIGRAD_TRACEBACK") == "1" and code != 130:
        raise  # the error that is being handled
    print(f"Error: {text}", file=sys.stderr)
    sys.exit(code)
