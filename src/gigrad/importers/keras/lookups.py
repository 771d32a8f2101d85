"""StringLookup and IntegerLookup: columns of labels become codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import CorruptModelError
from .values import NO_CODE, Labels, Value
from .walk import Layer, Walk


def looked_up_labels(layer: Layer, value: Value, walk: Walk) -> tuple[Value, int]:
    """The codes of columns of labels, and the number of codes: a mask (for "int" only), unknown labels, the others."""
    config, mode = layer.config, layer.config.get("output_mode", "int")
    mask, several = config.get("mask_token"), int(config.get("num_oov_indices", 1))
    if config.get("invert") or several > 1 or mode not in ("int", "one_hot", "multi_hot", "count"):
        raise layer.refuse(
            "must turn labels into codes, all that it does not know into one (invert=False, num_oov_indices of 0 or 1, "
            "and no tf_idf), to be imported"
        )
    if value.node is not None or not value.raw:
        raise layer.refuse("must read columns of the table themselves to be imported")
    kind = str if layer.kind == "StringLookup" else int
    labels = [v if kind is str and isinstance(v, str) else _whole(layer, v, kind) for v in _vocabulary(layer)]
    special = [mask] * (mask is not None and mode == "int") + [config.get("oov_token")] * several
    if labels[: len(special)] == special:
        labels = labels[len(special) :]
    codes: dict[Any, int] = {label: code for code, label in enumerate(labels, len(special))}
    if len(codes) < len(labels) or not codes:
        raise CorruptModelError(f"The layer {layer.name!r} ({layer.kind}) must have labels, each of them once.")
    if mask is not None:
        codes[mask] = 0 if mode == "int" else NO_CODE
    other = len(special) - 1 if several else None
    found = tuple(Labels(j, codes, other, len(special) + len(labels)) for j in value.raw)
    walk.lookups += found
    size = int(config["max_tokens"]) if config.get("pad_to_max_tokens") else found[0].size
    return Value(value.shape, labels=found), size


def _vocabulary(layer: Layer) -> list[Any]:
    """The labels of a look-up layer."""
    found = layer.config.get("vocabulary")
    if isinstance(found, Mapping):  # a list of NumPy numbers in Keras's serialisation
        found = found.get("config", {}).get("value")
    if not isinstance(found, Sequence) or isinstance(found, str):
        raise layer.refuse("has no vocabulary; call adapt on it before training, or give it a list of labels")
    return list(found)


def _whole(layer: Layer, label: Any, kind: type) -> Any:
    """A label as a whole number, which an IntegerLookup must have."""
    if kind is str or isinstance(label, bool) or not isinstance(label, (int, np.integer)):
        what = "texts" if kind is str else "whole numbers"
        raise CorruptModelError(f"The layer {layer.name!r} ({layer.kind}) must have {what}; it has {label!r:.60}.")
    return int(label)
