"""`gigrad serve`: starts the service from its options."""

from __future__ import annotations

from typing import Any

from .. import portable
from ..errors import InputError
from ..kernels import threads
from ..serve.limits import Limits
from ..serve.run import application, name_of, run


def serve(file: str, name: str | None, host: str, port: int, limits: dict[str, Any], rules: dict[str, Any]) -> None:
    """Serve an explainer until a signal ends it."""
    if not file.endswith(portable.SUFFIX):
        raise InputError(
            f"The file of a service must be an explainer, a .gig file; got {file}. Make one from a model and its "
            "reference with gigrad save."
        )
    within = Limits(**limits | {"workers": limits["workers"] or threads(None)})
    run(application(portable.load(file, n_threads=1), name or name_of(file), within, **rules), host, port)
