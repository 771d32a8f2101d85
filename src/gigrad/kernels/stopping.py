"""How work in other threads ends early: signals reach the main thread alone, which tells the others here."""

from __future__ import annotations

from contextvars import ContextVar
from threading import Event

stopped: ContextVar[Event | None] = ContextVar("stopped", default=None)
"""Set by the thread that waits for a piece of work when it has had enough; None where nobody can."""


class Stopped(BaseException):
    """Ends a piece of work whose result nobody waits for any more."""


def check_stopped(_: float = 0.0) -> None:
    """End the piece of work that this thread is at, if nobody waits for it any more.

    To be called between steps of a tenth of a second at most. Native calls ask by themselves, as `watched`.
    """
    event = stopped.get()
    if event is not None and event.is_set():
        raise Stopped
