"""Output of the command line: messages, progress, and exit codes that scripts can rely on."""

from __future__ import annotations

import logging
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
    errors.LedgerError: 9,
    errors.AccuracyError: 8,
    errors.MissingDependencyError: 7,
    errors.UnfinishedRunError: 6,
    errors.OutputError: 5,
    errors.UnsupportedModelError: 4,
    errors.CorruptModelError: 4,
    errors.NotFittedError: 4,
    errors.ModelMismatchError: 4,
    errors.InputError: 3,
}
"""0 done, 1 a bug in gigrad, 2 wrong usage, 3 invalid input, 4 an unusable model, 5 output that cannot be written, 6 an
interrupted run with other inputs or settings, 7 a package that is absent, 8 less accurate than --max-error allows, 9
records that do not verify, 130 interrupted, 143 terminated."""


class Terminated(BaseException):
    """Raised on SIGTERM, to stop a command as an interrupt does."""


@contextmanager
def guarded(resumable: bool = False) -> Iterator[None]:
    """Turn every failure into one sentence on stderr and an exit code; GIGRAD_TRACEBACK=1 shows the traceback."""
    warnings.showwarning = _show_warning
    try:
        with _terminable():
            yield
    except errors.GigradError as error:
        _fail(str(error), next((code for kind, code in CODES.items() if isinstance(error, kind)), 3))
    except (KeyboardInterrupt, Terminated) as stopped:
        _interrupted(resumable, stopped)
    except BrokenPipeError:
        # The reader of our output has closed it, as `| head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except MemoryError:
        _fail("There is not enough memory; try fewer rows at a time (--batch-rows) or fewer reference rows.", 3)
    except Exception as error:
        cause = error.__cause__
        if isinstance(cause, (KeyboardInterrupt, Terminated)):  # Python wraps one raised while a class is being created
            _interrupted(resumable, cause)
        _fail(f"gigrad failed unexpectedly ({type(error).__name__}: {error}). Please report this; "
              "GIGRAD_TRACEBACK=1 shows where it happened.", 1)  # fmt: skip
    finally:
        while _listening:  # the next command of this process may have another stderr
            logging.getLogger("gigrad").removeHandler(_listening.pop())


def say(text: str = "") -> None:
    """Print a line of the result to stdout."""
    print(text)


def note(text: str, quiet: bool = False) -> None:
    """Print a line about the work to stderr, unless `quiet`."""
    if not quiet:
        print(text, file=sys.stderr)


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """A callback that shows progress: a bar with rate and time left in a terminal, occasional lines elsewhere."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _bar() as bar:
            yield _Bar(bar)
    else:
        yield _Lines()


def _bar() -> Any:
    """A progress bar for a terminal."""
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
    """A progress bar for each phase of a job."""

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
    """Show the warnings that users should act on; others are for developers."""
    shown = (errors.AccuracyWarning, errors.IdWarning, errors.ReasonsWarning, errors.StatementWarning)
    if issubclass(category, shown):
        note(f"Warning: {message}")


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM, by which schedulers and containers end a job, stop a command as cleanly as Ctrl-C does."""

    def stop(number: int, frame: Any) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Terminated

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not the main thread, the only one that receives signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


_listening: list[logging.Handler] = []


def listen(level: str | None) -> None:
    """Show the log messages of gigrad on stderr, from a level on."""
    if level is None:
        return
    known = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING}
    if level.lower() not in known:
        raise errors.InputError(f"--log-level must be debug, info or warning; got {level!r}.")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger("gigrad")
    root.addHandler(handler)
    _listening.append(handler)
    root.setLevel(known[level.lower()])


def _interrupted(resumable: bool, how: BaseException) -> NoReturn:
    """End after Ctrl-C or a termination signal, and say whether the job can be resumed."""
    # A second signal, or a library that got this one too, must not interrupt the cleanup.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    word, code = ("Terminated.", 143) if isinstance(how, Terminated) else ("Interrupted.", 130)
    _fail(word + (" The same command resumes where it stopped." if resumable else ""), code)


def _fail(text: str, code: int) -> NoReturn:
    """End with a message, or a traceback if GIGRAD_TRACEBACK=1."""
    from .._common.log import logger

    logger("cli").error("exit code %d: %s", code, text)
    if os.environ.get("GIGRAD_TRACEBACK") == "1" and code not in (130, 143):
        raise  # the error that is being handled
    print(f"Error: {text}", file=sys.stderr)
    sys.exit(code)
