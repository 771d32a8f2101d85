"""The identity of a run: everything that its result depends on, and the metadata written into the result."""

from __future__ import annotations

import hashlib
import json
import platform
from typing import Any

from .._io import provenance
from ..configuration import config
from .sources import Source
from .targets import Target
from .tasks import OnError, Task

PROCESSOR = "kind of processor (architecture and SIMD level)"
"""Rounding depends on it: a result from parts of two kinds of processor would differ from that of either."""


def identity_of(task: Task, source: Source, target: Target, on_error: OnError, rows: int) -> dict[str, Any]:
    """Everything that the bytes of the result depend on, under the names used in messages."""
    explainer = task.explainer
    record = explainer.provenance
    model = {"model": record["model"]["fingerprint"], "output": record["output"]["fingerprint"]}
    if "not_in_fingerprint" in record["model"]:
        # The code of a function cannot be compared; its scores on the reference are instead.
        model["scores"] = provenance.array_fingerprint(explainer.scorer.own(explainer.reference))
    return {
        "model": model,
        "reference": record["reference"]["fingerprint"],
        "settings": record["settings"],
        "definition": record["definition"],
        "choice of discrete columns": record["choice"],
        "data": source.fingerprint(),
        "id columns": list(task.layout.ids),
        "columns": list(task.layout.columns),
        "on_error": on_error,
        "batch_rows": rows,
        "format": target.format,
        "kind of result": task.record,
        "version of gigrad": record["versions"]["gigrad"],
        "max_error": None if on_error == "fail" else task.max_error,  # else the bytes do not depend on it
        PROCESSOR: {"machine": platform.machine(), "simd": config.simd},
    }


def fingerprint_of(identity: dict[str, Any]) -> str:
    """SHA-256 of the identity without the processor: the same for the same run on any machine."""
    asked = {key: value for key, value in identity.items() if key != PROCESSOR}
    return hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()


def head_of_run(task: Task, identity: dict[str, Any]) -> dict[str, Any]:
    """The metadata of the result, which `Explanation.load` needs to read results of `run`."""
    scorer, grouping = task.explainer.scorer, task.explainer.grouping
    data = {"files": identity["data"], "on_error": identity["on_error"]}
    return {
        "format": 1,
        "kind": task.kind,
        "ids": list(task.layout.ids),
        "feature_names": list(grouping.members),
        "output_names": list(scorer.output_names),
        "outputs_axis": scorer.node.width > 1,
        "columns": [grouping.names[c] for c in grouping.order],
        "groups": grouping.groups,
        "data": {"library": "none"},
        "paths": None,
        "task": task.record,
        "run": fingerprint_of(identity),
        "provenance": {**task.explainer.provenance, "data": data},
    }
