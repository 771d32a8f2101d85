"""Paths, bodies and responses, as an ASGI application.

The event loop reads bodies and waits for responses; worker threads parse, compute and write JSON.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from .._common.log import logger
from . import kserve
from .metrics import Metrics
from .problems import Problem
from .service import Answered, Service
from .work import Work

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
_JSON = b"application/json"
_TEXT = b"text/plain; version=0.0.4; charset=utf-8"


class Route(NamedTuple):
    """A path's name in metrics, its HTTP method, and its handler: run at once, or by a worker with the body."""

    name: str
    method: str
    now: Callable[[], Any] | None = None
    work: Callable[[bytes], Answered] | None = None


class Application:
    """The service over HTTP; call it as ASGI does."""

    def __init__(self, service: Service) -> None:
        self.service, self.work = service, Work(service.limits)
        self.metrics = Metrics(service.name, service.version)
        live, ready = Route("live", "GET", lambda: {"live": True}), Route("ready", "GET", self._ready)
        model = f"v2/models/{service.name}"
        self.routes = {
            "v1/explain": Route("explain", "POST", work=service.explain),
            "v1/reasons": Route("reasons", "POST", work=service.reasons),
            "v1/metadata": Route("metadata", "GET", service.metadata),
            "metrics": Route("metrics", "GET", self._metrics),
            "health/live": live,
            "health/ready": ready,
            "v2": Route("v2_server", "GET", kserve.server_metadata),
            "v2/health/live": live,
            "v2/health/ready": ready,
        }
        for path in (model, f"{model}/versions/{service.version}"):
            self.routes[path] = Route("v2_model", "GET", lambda: kserve.model_metadata(service))
            self.routes[f"{path}/ready"] = Route("v2_model_ready", "GET", self._model_ready)
            self.routes[f"{path}/infer"] = Route("infer", "POST", work=lambda body: kserve.infer(service, body))

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        began = time.perf_counter()
        endpoint, problem, answer = "other", None, b""
        try:
            route = self._route(scope)
            endpoint = route.name
            answer = await self._answer(route, scope, receive)
        except Problem as refused:
            problem = refused
        except _Gone:
            self.metrics.count(endpoint, 499, time.perf_counter() - began)
            return
        except Exception:
            logger("serve").exception("a request to %s failed", endpoint)
            problem = Problem("internal", "The server failed unexpectedly; its log has the traceback.")
        kind = _TEXT if endpoint == "metrics" else _JSON
        status, headers, seconds = 200, list[tuple[bytes, bytes]](), time.perf_counter() - began
        if problem is None:
            self.metrics.count(endpoint, status, seconds)
        else:
            answer, status, headers, kind = problem.body, problem.status, problem.headers, _JSON
            self.metrics.refuse(endpoint, problem, seconds)
        if _is_crowded(scope):
            headers = [*headers, (b"connection", b"close")]
        head = [(b"content-type", kind), (b"content-length", str(len(answer)).encode()), *headers]
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": answer})

    def close(self) -> None:
        """Wait until running computations have finished."""
        self.work.close()

    def _route(self, scope: Message) -> Route:
        """The route of a request, or the problem that there is none."""
        route = self.routes.get(scope["path"].strip("/"))
        if route is None:
            raise Problem(
                "not_found", f"There is nothing at {scope['path'][:200]!r}; GET /v1/metadata says what is served."
            )
        if scope["method"] != route.method:
            raise Problem("method_not_allowed", f"The method must be {route.method}; got {scope['method']}.")
        return route

    async def _answer(self, route: Route, scope: Message, receive: Receive) -> bytes:
        """The body of the answer: facts at once, work by the worker threads."""
        if route.now is not None:
            told = route.now()
            return told.encode() if isinstance(told, str) else json.dumps(told, default=str).encode()
        work = route.work
        assert work is not None
        if _is_crowded(scope):  # probes and metrics are still answered: they cost nothing
            most = self.service.limits.connections
            raise Problem(
                "overloaded", f"The server has {most} connections, which is its limit; try again in a second."
            )
        body = await self._body(scope, receive)
        answered = await self.work.do(lambda: work(body))
        self.metrics.rows[route.name] += answered.rows
        return answered.body

    async def _body(self, scope: Message, receive: Receive) -> bytes:
        """The whole body, within the limits of size and time."""
        limits = self.service.limits
        too_large = Problem("too_large", f"A body may have {limits.body} bytes; this one has more. Send fewer rows.")
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > limits.body:
            raise too_large
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(limits.patience):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _Gone
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > limits.body:
                        raise too_large
                    if not message.get("more_body"):
                        return b"".join(parts)
        except TimeoutError:
            raise Problem("slow_client", f"The body must arrive within {limits.patience:g} seconds.") from None

    def _ready(self) -> dict[str, Any]:
        if self.work.stopping:
            raise Problem("stopping", "The server is shutting down; send requests to another one.")
        return {"live": True, "ready": True}

    def _model_ready(self) -> dict[str, Any]:
        return {"name": self.service.name, "ready": self._ready()["ready"]}

    def _metrics(self) -> str:
        limits = self.service.limits
        return self.metrics.text(self.work.count, limits.workers + limits.queue)


def _is_crowded(scope: Message) -> bool:
    """Whether there are more connections than allowed, as `protocol` has noted in the scope."""
    return bool(scope.get("state", {}).get("crowded"))


class _Gone(Exception):
    """The client has disconnected before its request was complete."""
