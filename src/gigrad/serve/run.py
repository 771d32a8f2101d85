"""The server process: one address, uvicorn's event loop, and a graceful shutdown that answers accepted requests."""

from __future__ import annotations

import logging
import re
import signal
import socket
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .._common.log import logger
from .._common.optional import require
from .._explain.explainer import Explainer
from ..errors import InputError
from .app import Application
from .limits import Limits
from .service import Service

BACKLOG = 128
"""The backlog of the listening socket: connections not yet accepted."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def application(explainer: Explainer, name: str = "model", limits: Limits | None = None, **rules: Any) -> Application:
    """An ASGI application around an explainer; `run` serves it with the intended limits on connections.

    Parameters
    ----------
    explainer, name, limits, **rules
        As in `Service`.

    Examples
    --------
    >>> import gigrad as gig
    >>> from gigrad.serve import application
    >>> app = application(gig.Explainer(tree, [[0, 0]]), "tree")
    >>> sorted(app.routes)[:3]
    ['health/live', 'health/ready', 'metrics']
    """
    return Application(Service(explainer, checked_name(name), limits, **rules))


def checked_name(name: str) -> str:
    """A name that can be a part of a path."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", name):
        raise InputError(f"name must be letters, digits, dots, dashes and underscores; got {name!r}.")
    return name


def name_of(path: str) -> str:
    """The default name of the model: that of its file."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", Path(path).stem).strip("-._")[:128] or "model"


def run(
    app: Application, host: str = "127.0.0.1", port: int = 8080, tell: Callable[[str], object] | None = None
) -> None:
    """Serve until SIGTERM or SIGINT; requests accepted before that are answered.

    Parameters
    ----------
    app : Application
    host : str
        The address to listen at; 0.0.0.0 for all. There is no authentication: use a proxy that has one.
    port : int
        0 takes any free port.
    tell : callable, optional
        Called with the address, such as "http://127.0.0.1:8080", once the server listens; by default it is printed.
    """
    uvicorn = require("uvicorn", "serve")
    require("httptools", "serve")
    from .protocol import guarded

    limits = app.service.limits
    opened = _listening(host, port)
    # The responses contain what warnings say (error, settled); Python's registry of warning texts would keep growing.
    warnings.simplefilter("ignore")
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    config = uvicorn.Config(
        app, http=guarded(limits, app.metrics), ws="none", lifespan="off", access_log=False, log_config=None,
        server_header=False, date_header=False, backlog=BACKLOG,
        timeout_graceful_shutdown=int(limits.timeout + 2 * limits.patience),
    )  # fmt: skip
    server = uvicorn.Server(config)
    server.capture_signals = lambda: _stopping(server, app)
    shown = f"[{host}]" if ":" in host else host
    (tell or _print)(f"http://{shown}:{opened.getsockname()[1]}")
    try:
        server.run(sockets=[opened])
    finally:
        app.close()
        logger("serve").info("stopped after %d requests", sum(app.metrics.requests.values()))


def _print(address: str) -> None:
    print(address, flush=True)


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens already, so that clients may connect once the address is printed."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # asyncio sets TCP_NODELAY only where the protocol is named. Without it the body of a response, which is written
        # after its head, waits for the client's delayed acknowledgement: 44 ms instead of 2.
        opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
        opened.listen(BACKLOG)  # before the address is printed: clients may connect at once
    except (OSError, OverflowError) as error:
        why = (getattr(error, "strerror", None) or str(error)).lower()
        raise InputError(f"The server cannot listen at {host} port {port}: {why}.") from None
    return opened


@contextmanager
def _stopping(server: Any, app: Application) -> Iterator[None]:
    """Shut down gracefully at the first signal and at once at the second; uvicorn alone would raise it again."""

    def stop(number: int, frame: Any) -> None:
        if app.work.stopping:
            sys.exit(128 + number)
        app.work.stopping = True
        server.handle_exit(number, frame)

    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
