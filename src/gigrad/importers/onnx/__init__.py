"""ONNX models, from the operators of their graph: what many libraries write, also those no longer installed.

    __init__.py    the graph of a model, and its own predictions
    proto.py       the file's message as plain data, checked
    network.py     the operators traversed from the inputs to the score
    values.py      values between operators: constants, single columns, numbers
    shape.py       the axes of a tensor, one of which counts rows
    reshaping.py   operators that only move numbers
    columns.py     operators that work on columns one by one: casts, scalers, imputers, encoders
    column_steps.py  those that make step functions of columns: comparisons, ArgMax
    layers.py      operators that mix columns or are not linear: arithmetic, layers of nets, linear models
    reductions.py  sums over columns, norms, functions with kinks
    score_steps.py  operators that make step functions of computed numbers
    score_trees.py  the trees over scores that represent them
    support_vectors.py  support vector machines
    distances.py   distances from constant rows, and kernels of them
    medians.py     the weighted median of some scores
    folding.py     operators on constants
    trees.py       TreeEnsembleRegressor, TreeEnsembleClassifier, TreeEnsemble

ONNX computes in the type of its tensors, mostly float32. Trees decide exactly as it does; sums are compared with
its own predictions up to float32 rounding, which is propagated through the operators.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..._io.tables import Rows
from ...errors import InputError
from ...graph import Affine, Array, Elementwise, Graph, KernelMachine, TreeEnsemble, Witness, needed, topological
from ..common.links import DOUBLE, SINGLE, trees_error
from ..common.rounding import KernelScale, NodeScale
from .network import read_network
from .proto import Model, read_model, well_formed

__all__ = ["import_onnx"]

SIGMOID = 4.0
"""The error of onnxruntime's Sigmoid, in units of roundoff of 1: it is one half plus a quotient of polynomials, so that
small probabilities have as large an error as others (2.8 units at most on 2,000,001 numbers from -30 to 30)."""

AT_A_THRESHOLD = (
    "Where trees read a score, one that lies at a threshold in float32 may fall on either side of it, by the order in "
    "which it is summed up: leave such rows out, or explain the model that the file was converted from. If most rows "
    "differ, please report this model."
)


def import_onnx(model: Any) -> Graph:
    """The graph of an onnx.ModelProto; the score is a classifier's probabilities, or a regressor's or net's output."""
    content = read_model(model)
    read = well_formed(read_network, content)
    graph = read.graph
    inner = topological(graph.score)
    unit = SINGLE if content.single else DOUBLE
    scale: NodeScale | KernelScale = NodeScale(graph.input, graph.score)
    machines = tuple(n for n in inner if isinstance(n, KernelMachine))
    if machines and all(n.slope_is_constant for n in needed((graph.score,), set(machines))):
        scale = KernelScale(machines)
    units, error = scale.units * unit / DOUBLE, trees_error(graph.score, unit)
    if any(isinstance(n, Elementwise) and n.name == "sigmoid" for n in inner):
        error += SIGMOID * unit
    own = OwnPrediction(read.asked, content, read.score_name, read.picked, read.axis)
    witness = Witness(graph.score, own, graph.label, rtol=units, atol=units * 1e-3 + error, scale=scale)
    below = [m for n in inner if isinstance(n, TreeEnsemble) for m in topological(n.source)]
    if any(isinstance(m, (Affine, TreeEnsemble)) for m in below):
        witness = replace(witness, advice=AT_A_THRESHOLD)
    return replace(graph, witnesses=(witness,))


@dataclass(frozen=True, eq=False)
class OwnPrediction:
    """The model's own prediction, by onnxruntime, or by onnx's reference evaluator if that is not installed.

    Attributes
    ----------
    content : bytes
        A model whose only output is the score.
    picked : tuple of int
        The columns of that output that are explained.
    axis : int
        The axis of that output which counts rows.
    """

    content: bytes
    model: Model
    output: str
    picked: tuple[int, ...]
    axis: int
    _session: dict[str, Any] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_session": {}}

    def __call__(self, rows: Rows) -> Array:
        feeds = self.model.feeds(rows)
        fixed = self.model.fixed_rows
        count = len(rows)
        step = count if fixed is None else fixed
        parts = []
        for first in range(0, count, max(step, 1)):
            part = {name: table[first : first + step] for name, table in feeds.items()}
            short = step - len(next(iter(part.values())))
            if short:  # the model has a fixed number of rows: the last ones are repeated
                part = {name: np.concatenate([table, np.repeat(table[-1:], short, 0)]) for name, table in part.items()}
            out = np.asarray(self._run(part), np.float64)
            parts.append((np.moveaxis(out, self.axis, 0) if self.axis else out).reshape(step, -1))
        if not parts:
            return np.zeros((0, len(self.picked)))
        found = np.concatenate(parts)[:count]
        return found[:, list(self.picked)] if found.shape[1] > max(self.picked) else found

    def _run(self, feeds: dict[str, Any]) -> Any:
        """The output for these inputs, by the session that is opened when it is first needed."""
        try:
            if "run" not in self._session:
                self._session["run"] = self._open()
            return self._session["run"](feeds)
        except Exception as error:  # onnxruntime has classes of its own, of which none is public
            why = " ".join(str(error).split())
            raise InputError(f"The ONNX model itself fails on these rows: {why:.300}") from error

    def _open(self) -> Any:
        """A function that runs the model: by onnxruntime, or by onnx's reference evaluator without it."""
        try:
            import onnxruntime
        except ImportError:
            from onnx.reference import ReferenceEvaluator

            evaluator = ReferenceEvaluator(self.content)
            return lambda feeds: evaluator.run([self.output], feeds)[0]
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(self.content, options, providers=["CPUExecutionProvider"])
        return lambda feeds: session.run([self.output], feeds)[0]
