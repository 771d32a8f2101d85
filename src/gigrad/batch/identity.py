"""What a run is: everything that decides a byte of its result, and what the result says about itself."""

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
"""Sums are rounded by it: parts that two kinds have made do not add up to what either would have made."""


def identity_of(task: Task, source: Source, target: Target, on_error: OnError, rows: int) -> dict[str, Any]:
    """What decides every byte of the result; the keys are what a message calls them."""
    explainer = task.explainer
    record = explainer.provenance
    model = {"model": record["model"]["fingerprint"], "output": record["output"]["fingerprint"]}
    if "not_in_fingerprint" in record["model"]:
        # A function cannot be looked into; its scores on the reference must do.
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
        "max_error": None if on_error == "fail" else task.max_error,  # which else decides nothing of the bytes
        PROCESSOR: {"machine": platform.machine(), "simd": config.simd},
    }


def fingerprint_of(identity: dict[str, Any]) -> str:
    """SHA-256 of all that was asked for: the same question has the same one on any processor."""
    asked = {key: value for key, value in identity.items() if key != PROCESSOR}
    return hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()


def head_of_run(task: Task, identity: dict[str, Any]) -> dict[str, Any]:
    """What the result says about itself; `Explanation.load` reads results of `run` by it."""
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
