"""JSON schemas of the Open Inference Protocol, written from the objects that its specification for REST defines."""

from __future__ import annotations

from typing import Any

TEXT: dict[str, Any] = {"type": "string"}
DATATYPE: dict[str, Any] = {
    "enum": ["BOOL", "BYTES", "FP16", "FP32", "FP64", *(f"{k}{b}" for k in ("UINT", "INT") for b in (8, 16, 32, 64))]
}
PARAMETERS: dict[str, Any] = {"type": "object"}


def exactly(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """An object with these members and no others."""
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
        "additionalProperties": False,
    }


def listed(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


SHAPE = listed({"type": "integer", "minimum": 0})
TENSOR = exactly({"name": TEXT, "datatype": DATATYPE, "shape": listed({"type": "integer", "minimum": -1})})
DATA = listed({"type": ["number", "string", "boolean", "array", "null"]})
INPUT = exactly({"name": TEXT, "shape": SHAPE, "datatype": DATATYPE, "data": DATA}, {"parameters": PARAMETERS})
REQUEST_OUTPUT = exactly({"name": TEXT}, {"parameters": PARAMETERS})

SERVER_METADATA = exactly({"name": TEXT, "version": TEXT, "extensions": listed(TEXT)})
MODEL_METADATA = exactly(
    {"name": TEXT, "platform": TEXT, "inputs": listed(TENSOR), "outputs": listed(TENSOR)}, {"versions": listed(TEXT)}
)
LIVE = {"type": "object", "properties": {"live": {"type": "boolean"}}, "required": ["live"]}
MODEL_READY = exactly({"name": TEXT, "ready": {"type": "boolean"}})
REQUEST = exactly({"inputs": listed(INPUT)}, {"id": TEXT, "parameters": PARAMETERS, "outputs": listed(REQUEST_OUTPUT)})
RESPONSE = exactly(
    {"model_name": TEXT, "outputs": listed(INPUT)}, {"model_version": TEXT, "id": TEXT, "parameters": PARAMETERS}
)
ERROR = {"type": "object", "properties": {"error": TEXT}, "required": ["error"]}
