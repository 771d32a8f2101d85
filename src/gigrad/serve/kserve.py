"""The Open Inference Protocol (KServe's V2) over HTTP: one tensor a column in, credits and scores as tensors out.

It follows the specification at github.com/kserve/open-inference-protocol, but for missing values, which are null in a
tensor's data: JSON has no NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from reprlib import repr as shown  # short, however deep or long the value
from typing import Any, NoReturn

import numpy as np

from .. import __version__
from .._explain.explanation import Explanation
from .problems import Problem
from .service import Answered, Service, dumped, parsed

OUTPUTS = ("prediction", "base", "credits", "gap", "error")
_WHOLE = ("UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64")
_KINDS: dict[str, tuple[type, ...]] = {
    "BOOL": (bool,), "BYTES": (str,), **dict.fromkeys(("FP16", "FP32", "FP64"), (int, float)),
    **dict.fromkeys(_WHOLE, (int,)),
}  # fmt: skip

_BOUNDS = {name: (int(np.iinfo(name.lower()).min), int(np.iinfo(name.lower()).max)) for name in _WHOLE}


def server_metadata() -> dict[str, Any]:
    """GET v2."""
    return {"name": "gigrad", "version": __version__, "extensions": []}


def model_metadata(service: Service) -> dict[str, Any]:
    """GET v2/models/name."""
    scorer, names = service.explainer.scorer, service.explainer.reference.names
    several = [len(scorer.output_names)] if len(scorer.output_names) > 1 else []
    features = [len(service.explainer.grouping.members)]
    shapes = {name: [-1, *(features if name == "credits" else []), *several] for name in OUTPUTS}
    return {
        "name": service.name,
        "versions": [service.version],
        "platform": "gigrad",
        "inputs": [
            {"name": name, "datatype": "FP64" if column.labels is None else _datatype(column.labels), "shape": [-1]}
            for name, column in zip(names, scorer.columns, strict=True)
        ],
        "outputs": [{"name": name, "datatype": "FP64", "shape": shape} for name, shape in shapes.items()],
    }


def infer(service: Service, body: bytes) -> Answered:
    """POST v2/models/name/infer."""
    asked = parsed(body)
    if not isinstance(asked, dict) or not isinstance(asked.get("inputs"), list):
        _refuse('The body must be an object with "inputs", a list of tensors.')
    if not isinstance(asked.get("id", ""), str):
        _refuse("id must be a text.")
    wanted = list(_wanted(asked.get("outputs")))
    columns = dict(_tensor(one, service.limits.rows) for one in asked["inputs"])
    if len(columns) < len(asked["inputs"]):
        _refuse("inputs must name each tensor once.")
    sizes = {len(values) for values in columns.values()}
    if len(sizes) != 1 or not min(sizes):
        _refuse("inputs must be tensors of one length, at least one.")
    records = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    explanations = service.explained(records)
    out: dict[str, Any] = {"model_name": service.name, "model_version": service.version}
    if "id" in asked:
        out["id"] = asked["id"]
    out["outputs"] = [_output(name, explanations) for name in wanted]
    return Answered(dumped(out), len(records))


def _wanted(outputs: Any) -> Iterator[str]:
    """The names of the tensors to be returned; all by default."""
    if outputs is None:
        yield from OUTPUTS
        return
    if not isinstance(outputs, list) or not outputs:
        _refuse('outputs must be a list such as [{"name": "credits"}], or left out.')
    named = [one.get("name") if isinstance(one, dict) else one for one in outputs]
    for i, name in enumerate(named):
        if name not in OUTPUTS or name in named[:i]:  # each once, which bounds the size of a response
            _refuse(f"outputs must be among {', '.join(OUTPUTS)}, each once; got {shown(name)}.")
        yield str(name)


def _tensor(one: Any, most: int) -> tuple[str, list[Any]]:
    """The name and the values of an input: a column of n rows, of shape [n] or [n, 1]."""
    if not isinstance(one, dict) or not isinstance(one.get("name"), str):
        _refuse("Every input must be an object with a name, a shape, a datatype and data.")
    name, shape, kind, data = one["name"], one.get("shape"), one.get("datatype"), one.get("data")
    if not isinstance(kind, str) or kind not in _KINDS:
        _refuse(f"The datatype of {name!r} must be one of {', '.join(_KINDS)}; got {shown(kind)}.")
    if not isinstance(shape, list) or not shape or shape[1:] not in ([], [1]) or type(shape[0]) is not int:
        _refuse(f"The shape of {name!r} must be [n] or [n, 1]; got {shown(shape)}.")
    if not isinstance(data, list):
        _refuse(f"The data of {name!r} must be a list.")
    flat = [v[0] if isinstance(v, list) and len(v) == 1 else v for v in data]
    if len(flat) != shape[0]:
        _refuse(f"The data of {name!r} must have the {shape[0]} values that its shape says; got {len(flat)}.")
    if len(flat) > most:
        raise Problem("too_large", f"A request may have {most} records; got {len(flat)}. Send several requests.")
    for value in flat:
        if value is not None and not _is_of(value, kind):
            _refuse(f"The data of {name!r} must be {kind} or null; got {shown(value)}.")
    return name, flat


def _is_of(value: Any, kind: str) -> bool:
    """Whether a value belongs to a datatype of the protocol."""
    if not isinstance(value, _KINDS[kind]) or isinstance(value, bool) != (kind == "BOOL"):
        return False
    low, high = _BOUNDS.get(kind, (-np.inf, np.inf))
    number: Any = value
    return kind == "BYTES" or bool(low <= number <= high)


def _output(name: str, explanations: list[Explanation]) -> dict[str, Any]:
    """One output tensor in KServe's format, NaN and infinity as null."""
    part = {"prediction": "predictions", "base": "base_values", "credits": "values"}.get(name, name)
    values = np.concatenate([getattr(e, part) for e in explanations])
    flat = [v if np.isfinite(v) else None for v in values.ravel().tolist()]
    return {"name": name, "datatype": "FP64", "shape": list(values.shape), "data": flat}


def _datatype(labels: tuple[Any, ...]) -> str:
    """The type of the labels of a category."""
    if all(isinstance(v, (bool, np.bool_)) for v in labels):
        return "BOOL"
    if all(isinstance(v, (int, np.integer)) for v in labels):
        return "INT64"
    return "FP64" if all(isinstance(v, (int, float, np.number)) for v in labels) else "BYTES"


def _refuse(sentence: str) -> NoReturn:
    raise Problem("invalid_request", sentence)
