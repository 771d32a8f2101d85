"""Progress of long work: nothing for two seconds, then a bar if tqdm is installed, else occasional lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from typing import Any

from .. import kernels
from ..errors import InputError

PATIENCE = 2.0
"""Seconds before anything is shown: most calls are done by then."""

EVERY = 5.0
"""Seconds between two lines without tqdm."""


class Meter:
    """Shows the progress of some work on standard error.

    Parameters
    ----------
    what : str
        "explaining"
    total : int
        Of `unit`s.
    """

    def __init__(self, what: str, total: int, unit: str = "rows") -> None:
        self.what, self.total, self.unit = what, total, unit
        self.began = self.said = time.monotonic()
        self.bar: Any = None
        self.last = 0.0

    def __call__(self, done: float) -> None:
        now = time.monotonic()
        if done < self.last:  # another stage of the work begins
            self.began = self.said = now
            if self.bar is not None:
                self.bar.reset(self.total)
        self.last = done
        if now - self.began < PATIENCE and self.bar is None:
            return
        if self.bar is None:
            self.bar = _tqdm(self.what, self.total, self.unit)
        if self.bar is not False:
            self.bar.update(round(done * self.total) - self.bar.n)
        elif now - self.said >= EVERY or self.said == self.began:
            self.said = now
            print(self.line(now), file=sys.stderr, flush=True)

    def line(self, now: float) -> str:
        """One line: how much is done, the rate, and the remaining time at that rate."""
        seconds = now - self.began
        rate = self.last * self.total / seconds if seconds > 0 else 0.0
        left = f", {span(seconds * (1.0 - self.last) / self.last)} left" if self.last > 0 else ""
        return f"{self.what}: {self.last:.0%} of {self.total:,} {self.unit}, {rate:,.3g} a second{left}"

    def close(self) -> None:
        """Finish the bar, if there is one."""
        if self.bar:
            self.bar.close()


def _tqdm(what: str, total: int, unit: str) -> Any:
    """A bar of tqdm, for a terminal or a notebook; False where it is not installed.

    In notebooks too it is a text bar: a widget needs another package, and in a saved notebook it stays at 0%.
    """
    try:
        where = sys.stdout if _in_notebook() else sys.stderr  # notebooks show stderr on a red background
        return import_module("tqdm").tqdm(total=total, desc=what, unit=f" {unit}", leave=False, file=where)
    except ImportError:
        return False


def span(seconds: float) -> str:
    """A duration as text: 0.4 s, 25 s, 3 min, 1.5 h."""
    if seconds < 90:
        return f"{seconds:.1g} s" if seconds < 1 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def is_watched() -> bool:
    """Whether the output is a terminal or a notebook."""
    return sys.stderr.isatty() or _in_notebook()


def _in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def wanted(progress: bool | None, default: bool | None) -> bool:
    """Whether to show progress: as given, else as configured, else in a terminal or a notebook."""
    for choice in (progress, default):
        if choice not in (None, True, False):
            raise InputError(f"progress must be True, False or None; got {choice!r}.")
        if choice is not None:
            return choice
    return is_watched()


@contextmanager
def part(begin: float, end: float) -> Iterator[None]:
    """Report the progress of native work inside the block as the part from `begin` to `end` of the whole.

    Several calls may run inside, one after another: the progress shown never decreases.
    """
    outer = kernels.watcher()
    if outer is None:
        yield
        return
    furthest = begin

    def inner(done: float) -> None:
        nonlocal furthest
        furthest = max(furthest, begin + (end - begin) * done)
        outer(furthest)

    with kernels.watched(inner):
        yield
    outer(end)


def parts(*sizes: float) -> Iterator[AbstractContextManager[None]]:
    """Consecutive `part`s for stages of work, with durations in proportion to `sizes`."""
    total, begin = sum(sizes) or 1.0, 0.0
    for size in sizes:
        yield part(begin / total, (begin + size) / total)
        begin += size


@contextmanager
def shown(show: bool, what: str, total: int, unit: str = "rows") -> Iterator[None]:
    """Show the progress of native work inside the block; nested blocks show nothing of their own."""
    if not show or kernels.watcher() is not None:
        yield
        return
    meter = Meter(what, total, unit)
    try:
        with kernels.watched(meter):
            yield
    finally:
        meter.close()
