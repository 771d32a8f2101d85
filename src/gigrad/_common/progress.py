"""How far long work is: nothing for two seconds, then a bar where tqdm is installed, else a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from .. import kernels
from ..errors import InputError

PATIENCE = 2.0
"""Seconds of silence: most calls are done by then."""

EVERY = 5.0
"""Seconds between two lines, where there is no bar."""


class Meter:
    """Shows the part of some work that is done, on standard error.

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
        """One line: how much is done, how fast, and how long the rest takes at that rate."""
        seconds = now - self.began
        rate = self.last * self.total / seconds if seconds > 0 else 0.0
        left = f", {_span(seconds * (1.0 - self.last) / self.last)} left" if self.last > 0 else ""
        return f"{self.what}: {self.last:.0%} of {self.total:,} {self.unit}, {rate:,.3g} a second{left}"

    def close(self) -> None:
        """Finish the bar, if there is one."""
        if self.bar:
            self.bar.close()


def _tqdm(what: str, total: int, unit: str) -> Any:
    """A bar of tqdm, for a terminal or a notebook; False where it is not installed."""
    try:
        return import_module("tqdm.auto").tqdm(total=total, desc=what, unit=f" {unit}", leave=False)
    except ImportError:
        return False


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def is_watched() -> bool:
    """Whether somebody is likely to look: a terminal, or a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return sys.stderr.isatty() or type(shell).__name__ == "ZMQInteractiveShell"


def wanted(progress: bool | None, default: bool | None) -> bool:
    """Whether to show progress: as asked, as configured, or where somebody is likely to look."""
    for choice in (progress, default):
        if choice not in (None, True, False):
            raise InputError(f"progress must be True, False or None; got {choice!r}.")
        if choice is not None:
            return choice
    return is_watched()


@contextmanager
def shown(show: bool, what: str, total: int, unit: str = "rows") -> Iterator[None]:
    """Show how far the native work inside is. Work inside of work that is shown already is not shown again."""
    if not show or kernels.watcher() is not None:
        yield
        return
    meter = Meter(what, total, unit)
    try:
        with kernels.watched(meter):
            yield
    finally:
        meter.close()
