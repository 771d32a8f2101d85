"""skorch nets: their module, and the link that their criterion implies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._io.tables import Rows
from ..errors import NotFittedError, UnsupportedModelError
from ..graph import Affine, Array, Elementwise, Graph, Node, Opposite, Select, Softmax
from .common.links import plain_outputs
from .torch import graph_of
from .torch.call import TorchValue
from .torch.copy import double_copy


def import_skorch(net: Any) -> Graph:
    """NeuralNetClassifier, NeuralNetBinaryClassifier, NeuralNetRegressor and NeuralNet, once fitted."""
    if not net.initialized_:
        raise NotFittedError(f"This {type(net).__name__} has not been fitted; call fit first.")
    graph = graph_of(net.module_)
    link = _link(net)
    score, margin = _linked(graph.score, link, net)
    label, inner = type(net).__name__, graph.witnesses[0]
    module = double_copy(net.module_)
    witnesses = [replace(inner, predict=_Own(net, "forward", graph.score.width), label=label)]
    if score is not graph.score:
        own, exact = _Own(net, "predict_proba", score.width), _Exact(net, module, score.width)
        witnesses.append(replace(inner, node=score, predict=own, exact=exact, label=label))
    classifier = _is(net, "Classifier") or link != "identity"
    names = _names(net, score.width) if classifier else plain_outputs(score.width)
    return replace(
        graph, score=score, margin=margin, output_names=names, margin_names=names, witnesses=tuple(witnesses),
        label=label, opposite=_opposite(net, link) if classifier and score.width == 1 else None,
    )  # fmt: skip


def _is(net: Any, kind: str) -> bool:
    return any(kind in cls.__name__ for cls in type(net).__mro__)


def _link(net: Any) -> str:
    """The name of the function that skorch applies to the module's output in `predict_proba`."""
    import torch

    if net.predict_nonlinearity is None:
        return "identity"
    if net.predict_nonlinearity != "auto":
        raise UnsupportedModelError(
            f"A {type(net).__name__} with a predict_nonlinearity of its own cannot be imported; put that function at "
            "the end of the module."
        )
    criterion = net.criterion_
    if isinstance(criterion, torch.nn.CrossEntropyLoss):
        return "softmax"
    if isinstance(criterion, torch.nn.BCEWithLogitsLoss):
        return "sigmoid"
    if isinstance(criterion, torch.nn.BCELoss):
        return "probability"
    return "identity"


def _linked(output: Node, link: str, net: Any) -> tuple[Node, Node]:
    """Score and margin, the positive class alone where there are two."""
    if link == "softmax" and output.width == 2:
        margin = Affine(output, np.array([[-1.0, 1.0]]), np.zeros(1))
        return Elementwise(margin, "sigmoid"), margin
    if link == "softmax":
        return Softmax(output), output
    if link == "sigmoid":
        return Elementwise(output, "sigmoid"), output
    if _is(net, "Classifier") and link == "identity" and output.width == 2:
        positive = Select(output, (1,))
        return positive, positive
    return output, output


def _names(net: Any, width: int) -> tuple[str, ...]:
    """The names of outputs: the classes if they are known."""
    try:
        names = tuple(str(c) for c in net.classes_)
    except AttributeError:  # fitted without y: the classes are not known
        return plain_outputs(width)
    names = names[1:] if width == 1 and len(names) == 2 else names
    return names if len(names) == width else plain_outputs(width)


def _opposite(net: Any, link: str) -> Opposite | None:
    """The class that a single output leaves out; None for outputs that need not be probabilities."""
    try:
        classes = list(net.classes_)
    except AttributeError:  # fitted without y: the classes are not known
        classes = [0, 1]
    if len(classes) != 2:
        return None
    total = None if link == "identity" else 1.0
    return Opposite((str(classes[0]),), total, total if link in ("identity", "probability") else 0.0)


def _positive(out: Array, width: int) -> Array:
    out = out.reshape(len(out), -1)
    return out[:, 1:] if out.shape[1] == width + 1 == 2 else out


@dataclass(frozen=True)
class _Own:
    """The net's own output, in its own precision: "forward" for the module's output, or "predict_proba"."""

    net: Any
    method: str
    width: int

    def __call__(self, rows: Rows) -> Array:
        import torch

        first = next((p for p in self.net.module_.parameters() if p.is_floating_point()), torch.zeros(1))
        x = rows.matrix.astype(str(first.dtype).removeprefix("torch."))
        out = getattr(self.net, self.method)(x)
        return _positive(out.cpu().numpy() if isinstance(out, torch.Tensor) else np.asarray(out), self.width)


@dataclass(frozen=True)
class _Exact:
    """The net's output in float64: that of a copy of the module, mapped by skorch's own function."""

    net: Any
    module: Any
    width: int

    def __call__(self, rows: Rows) -> Array:
        import torch

        out = torch.from_numpy(TorchValue(self.module, type(self.net).__name__)(rows.matrix))
        if _is(self.net, "BinaryClassifier") or (out.shape[1] == 1 and self.width == 1):
            out = out.reshape(-1)
        return _positive(np.asarray(self.net._get_predict_nonlinearity()(out).numpy()), self.width)
