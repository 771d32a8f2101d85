"""Threads whose results are returned in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from threading import Event
from typing import TypeVar

from ... import kernels
from ...kernels import stopping

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(function: Callable[[Item], Result], items: Iterable[Item], workers: int) -> Iterator[Result]:
    """The results of `function` for all items, in order, by several threads; at most two results a thread are buffered.

    Items are taken in the caller's thread, one after another. Its NumPy error state holds in all threads.
    """
    if workers == 1:
        yield from map(function, items)
        return
    waiting: deque[Future[Result]] = deque()
    enough = Event()

    def piece(item: Item) -> Result:
        stopping.stopped.set(enough)  # in a context of its own
        with kernels.watched(stopping.check_stopped):
            return function(item)

    with ThreadPoolExecutor(workers) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(copy_context().run, piece, item))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:  # the caller stopped, or an item failed: the others need not start or continue
            enough.set()
            for future in waiting:
                future.cancel()
