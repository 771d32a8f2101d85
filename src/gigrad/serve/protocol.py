"""Time and size limits of connections, against slow clients.

uvicorn limits how long an idle connection is kept, but not the duration or size of a request's head, how long a client
sends a body after the response (413, 404), nor how long it leaves a response unread: a client that sends or reads a
byte now and then (slow-loris, slow-read) would hold its connection for ever.

    head      the next request, until all of its headers have arrived   408 beyond
    body      a body that still arrives after the response              closed beyond
    unread    the response, until the client has read it                disconnected beyond

Reading also pauses while pipelined requests wait for their responses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .limits import Limits
from .metrics import Metrics
from .problems import Problem

LEAST = 2**14
"""Bytes of a response that a client must read within `patience`; a modem of 1995 needs seven seconds."""


class _Deadline:
    """A timer that calls a function after some seconds, unless it is stopped before."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, then: Callable[[], None]) -> None:
        self.loop, self.seconds, self.then = loop, seconds, then
        self.timer: asyncio.TimerHandle | None = None

    def start(self, seconds: float | None = None) -> None:
        self.stop()
        self.timer = self.loop.call_later(self.seconds if seconds is None else seconds, self._over)

    def stop(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _over(self) -> None:
        self.timer = None
        self.then()


class Guarded(HttpToolsProtocol):
    """uvicorn's protocol with limits, which also counts refused requests; both are attributes of a subclass."""

    limits: Limits
    metrics: Metrics

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._head = _Deadline(self.loop, self.limits.patience, self._too_slow)
        self._body = _Deadline(self.loop, self.limits.patience, self._close)
        self._unread = _Deadline(self.loop, self.limits.patience, self._see_progress)
        self._size = self._left = 0
        self._begun, self._whole = True, True  # a silent new connection gets a 408, a reused one is just closed
        self._head.start()

    # ------------------------------------------------------------ the connection

    def connection_lost(self, exc: Exception | None) -> None:
        for deadline in (self._head, self._body, self._unread):
            deadline.stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count the bytes of a request's head, and refuse one that is too large."""
        before = self._head.timer
        super().data_received(data)
        if before is not None and self._head.timer is before:  # all of it was head, which is not complete yet
            self._size += len(data)
            if self._size > self.limits.head:
                self._refuse("head_too_large", f"The head of a request may have {self.limits.head} bytes; got more.")

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread.stop()

    # ------------------------------------------------------------ the request

    def on_message_begin(self) -> None:
        """A request begins: its head must arrive in time."""
        super().on_message_begin()
        if self._head.timer is None or not self._begun:  # the first request's timer began with the connection
            self._begun, self._size = True, 0
            self._head.start()
        self._whole = False

    def on_headers_complete(self) -> None:
        self._head.stop()
        self.scope["state"]["crowded"] = len(self.connections) > self.limits.connections
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request's body has arrived."""
        super().on_message_complete()
        self._whole = True
        self._body.stop()
        if self.cycle.response_complete:  # answered before its body had arrived
            self._await_next()

    def on_response_complete(self) -> None:
        """The answer is written: wait for the next request, or for the client to read it."""
        super().on_response_complete()
        if self.transport.get_write_buffer_size() and self._unread.timer is None:
            self._await_reader()
        if self.transport.is_closing():
            return
        if self.pipeline:  # uvicorn resumes reading after every response: pipelined requests would pile up
            self.flow.pause_reading()
            return
        if self._whole:
            self._await_next()
        else:  # let the client finish sending and read the response: closed at once, it would see a reset
            self._body.start()

    # ------------------------------------------------------------ deadlines and refusals

    def send_400_response(self, msg: str) -> None:
        self._refuse("invalid_request", "The request must be valid HTTP/1.1; it is not.")

    def _await_next(self) -> None:
        """Start the timer of the next request; uvicorn does not close one that sends empty lines."""
        self._begun, self._size = False, 0
        self._head.start(max(self.limits.patience, 2 * self.timeout_keep_alive))

    def _await_reader(self) -> None:
        self._left = self.transport.get_write_buffer_size()
        self._unread.start()

    def _see_progress(self) -> None:
        """Close the connection of a client that reads its answer too slowly."""
        left = self.transport.get_write_buffer_size()
        if left and self._left - left < LEAST:
            self.metrics.refusals["slow_client"] += 1
            self.transport.abort()
        elif left:
            self._await_reader()

    def _too_slow(self) -> None:
        """Refuse a request whose head does not arrive in time; close an idle connection."""
        if self._begun:
            self._refuse(
                "slow_client", f"The head of a request must arrive within {self.limits.patience:g} seconds; it did not."
            )
        else:
            self._close()

    def _refuse(self, code: str, sentence: str) -> None:
        """Answer with a problem and close the connection."""
        self._head.stop()
        if not self.transport.is_closing():
            problem = Problem(code, sentence)
            self.metrics.refuse("other", problem, 0.0)
            self.transport.write(problem.response)
            self._close()

    def _close(self) -> None:
        """Close the connection once its answer is read, or the client is too slow."""
        if not self.transport.is_closing():
            self.transport.close()
        if self.transport.get_write_buffer_size():
            self._await_reader()


def guarded(limits: Limits, metrics: Metrics) -> type[HttpToolsProtocol]:
    """A subclass of `Guarded`, which uvicorn makes objects of, with these limits and counts."""

    class Limited(Guarded):
        pass

    Limited.limits, Limited.metrics = limits, metrics
    return Limited
