"""A bounded queue in front of a few threads: when it is full, requests are refused at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from .limits import Limits
from .problems import Problem

Answer = TypeVar("Answer")


class Work:
    """Runs functions in threads, `limits.workers` at a time, with at most `limits.queue` waiting.

    Attributes
    ----------
    count : int
        Requests that are computed or queued.
    stopping : bool
        Whether the server is shutting down: readiness probes fail, and requests already accepted are still answered.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits, self.count, self.stopping = limits, 0, False
        self._threads = ThreadPoolExecutor(limits.workers, thread_name_prefix="gigrad")

    async def do(self, function: Callable[[], Answer]) -> Answer:
        """Run a function in a thread and return its result; a Problem if the queue is full or the time is up."""
        if self.count >= self.limits.workers + self.limits.queue:
            raise Problem(
                "overloaded", f"The server has {self.count} requests, which is its limit; try again in a second."
            )
        loop = asyncio.get_running_loop()
        self.count += 1
        future = self._threads.submit(function)
        future.add_done_callback(lambda _: self._tell(loop))
        try:
            # cancels a queued computation; a running one continues to its end and keeps its slot until then
            async with asyncio.timeout(self.limits.timeout):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise Problem(
                "timeout", f"The response was not ready within {self.limits.timeout:g} seconds; send fewer rows."
            ) from None

    def _tell(self, loop: asyncio.AbstractEventLoop) -> None:
        with suppress(RuntimeError):  # an abandoned computation may end after the event loop
            loop.call_soon_threadsafe(self._done)

    def _done(self) -> None:
        self.count -= 1

    def close(self) -> None:
        """Wait until running computations have finished; no new ones are started."""
        self.stopping = True
        self._threads.shutdown(wait=True, cancel_futures=True)
