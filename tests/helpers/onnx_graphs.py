"""ONNX models made of a few operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
helper, T = onnx.helper, onnx.TensorProto


def model(nodes: list[Any], constants: dict[str, Any] | None = None, width: int = 3, kind: int = T.FLOAT) -> Any:
    """A model that reads X and gives Y."""
    graph = helper.make_graph(
        nodes,
        "made",
        [helper.make_tensor_value_info("X", kind, [None, width])],
        [helper.make_tensor_value_info("Y", kind, None)],
        [onnx.numpy_helper.from_array(np.asarray(v), k) for k, v in (constants or {}).items()],
    )
    versions = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=versions, ir_version=9)


def node(kind: str, reads: str = "X", gives: str = "Y", domain: str = "", **attributes: Any) -> Any:
    return helper.make_node(kind, reads.split(), gives.split(), domain=domain, **attributes)
