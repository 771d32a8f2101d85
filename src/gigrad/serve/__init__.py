"""A service around one portable explainer: `gigrad serve x.gig`.

    protocol    limits on connections: time and size of a request's head, slow clients
    app         paths, bodies, responses: plain ASGI, so that uvicorn is the one package it needs
    work        a bounded queue in front of a few threads: computation never blocks the event loop
    service     records in, credits or reasons out
    kserve      the same as tensors: the Open Inference Protocol, which KServe calls V2
    metrics     counts and durations for Prometheus
    run         the process: address, signals, shutdown

No web framework: the explainer defines what a record must hold and gives its own error messages, so that a second
schema (in pydantic, say) would only be another source of mistakes. A request never names a file.
"""

from .limits import Limits
from .run import application, run
from .service import Service

__all__ = ["Limits", "Service", "application", "run"]
