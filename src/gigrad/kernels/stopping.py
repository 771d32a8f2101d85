"""Cancellation of work in other threads: signals reach only the main thread, which sets an event that they check."""

from __future__ import annotations

from contextvars import ContextVar
from threading import Event

stopped: ContextVar[Event | None] = ContextVar("stopped", default=None)
"""Set by the thread that waits for the work of this one, to cancel it; None where that is not possible."""


class Stopped(BaseException):
    """Raised in a thread whose work has been cancelled."""


def check_stopped(_: float = 0.0) -> None:
    """Raise `Stopped` if the work of this thread has been cancelled.

    To be called between steps of a tenth of a second at most. Native calls check by themselves; see `watched`.
    """
    event = stopped.get()
    if event is not None and event.is_set():
        raise Stopped
