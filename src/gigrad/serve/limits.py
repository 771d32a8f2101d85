"""Limits on size, time and number of requests."""

from __future__ import annotations

from dataclasses import dataclass

from .._common import checks
from ..errors import InputError


@dataclass(frozen=True)
class Limits:
    """The limits of a service; a request beyond one is refused with the HTTP status given here.

    Attributes
    ----------
    body : int
        Bytes of a request's body: 413 beyond.
    rows : int
        Records of a request: 413 beyond.
    workers : int
        Requests that are computed at the same time, each by one thread.
    queue : int
        Requests that wait for one of them: 503 with Retry-After beyond.
    timeout : float
        Seconds that a request may wait and be computed: 504 beyond.
    patience : float
        Seconds for a client to send the head of a request, and again for its body: 408 beyond; and to continue reading
        a response: disconnected beyond.
    head : int
        Bytes of a request's head: 431 beyond.
    connections : int
        Open connections: 503 beyond.

    Examples
    --------
    >>> from gigrad.serve import Limits
    >>> Limits(rows=10).rows
    10
    """

    body: int = 2**20
    rows: int = 100
    workers: int = 1
    queue: int = 64
    timeout: float = 10.0
    patience: float = 10.0
    head: int = 2**15
    connections: int = 1000

    def __post_init__(self) -> None:
        for name in ("body", "rows", "workers", "head", "connections"):
            checks.whole(getattr(self, name), name)
        checks.whole(self.queue, "queue", least=0)
        for name in ("timeout", "patience"):
            value = getattr(self, name)
            if not checks.is_number(value) or not 0 < value < 86400:
                raise InputError(f"{name} must be a number of seconds, above 0 and below a day; got {value!r}.")
