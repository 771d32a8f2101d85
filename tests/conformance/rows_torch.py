"""The rows of torch modules and skorch nets in the conformance table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import data
from .row import Fitted, Row

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "ReLU": lambda nn: nn.ReLU(),
    "LeakyReLU": lambda nn: nn.LeakyReLU(0.2),
    "PReLU": lambda nn: nn.PReLU(),
    "ELU": lambda nn: nn.ELU(0.7),
    "SELU": lambda nn: nn.SELU(),
    "Tanh": lambda nn: nn.Tanh(),
    "Sigmoid": lambda nn: nn.Sigmoid(),
    "LogSigmoid": lambda nn: nn.LogSigmoid(),
    "Softplus": lambda nn: nn.Softplus(beta=2.0),
    "GELU": lambda nn: nn.GELU(),
    "GELU, by tanh": lambda nn: nn.GELU(approximate="tanh"),
    "SiLU": lambda nn: nn.SiLU(),
    "ReLU6": lambda nn: nn.ReLU6(),
    "Hardtanh": lambda nn: nn.Hardtanh(-0.5, 0.7),
    "Hardsigmoid": lambda nn: nn.Hardsigmoid(),
}


def sequential(options: str, task: str, layers: Callable[[Any], list[Any]]) -> Row:
    def build() -> Fitted:
        import torch

        torch.manual_seed(0)
        net = torch.nn.Sequential(*layers(torch.nn))
        net(torch.from_numpy(data.numbers()).float())  # in training mode: batch norms see the data
        return net.eval(), data.numbers()

    return Row("PyTorch", "torch", "Sequential", task, options, build)


def activation(name: str) -> Row:
    return sequential(name, "any", lambda nn: [nn.Linear(4, 6), ACTIVATIONS[name](nn), nn.Linear(6, 1)])


def own_module() -> Fitted:
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = torch.nn.Linear(4, 5), torch.nn.Linear(5, 1)

        def forward(self, x: Any) -> Any:
            return self.last(torch.tanh(self.first(x)) * torch.sin(x[:, :1])).squeeze(1)

    torch.manual_seed(0)
    return Net().eval(), data.numbers()


def skorch(kind: str, task: str, options: str, outputs: int, criterion: str, y: Callable[[], Any], *last: str) -> Row:
    def build() -> Fitted:
        import skorch
        import torch

        torch.manual_seed(0)
        nn = torch.nn
        ending = [getattr(nn, name)(*((-1,) if name == "Softmax" else ())) for name in last]
        module = nn.Sequential(nn.Linear(4, 5), nn.Dropout(0.2), nn.Tanh(), nn.Linear(5, outputs), *ending)
        net = getattr(skorch, kind)(
            module, criterion=getattr(nn, criterion), max_epochs=2, verbose=0, train_split=None, lr=0.05
        )
        return net.fit(data.numbers().astype(np.float32), y()), data.numbers()

    return Row("skorch", "skorch", kind, task, options, build)


def floats(y: Any) -> Any:
    return np.asarray(y, np.float32)


ROWS = (
    *(activation(name) for name in ACTIVATIONS),
    sequential("BatchNorm1d, Dropout, nested", "any", lambda nn: [
        nn.BatchNorm1d(4), nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Sequential(nn.ReLU(), nn.Dropout(0.3)),
        nn.BatchNorm1d(6), nn.Linear(6, 5), nn.Identity(), nn.Tanh(), nn.Flatten(), nn.Linear(5, 1)]),
    sequential("Softmax", "multiclass", lambda nn: [nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3), nn.Softmax(dim=1)]),
    sequential("LogSoftmax", "multiclass", lambda nn: [nn.Linear(4, 3), nn.LogSoftmax(dim=-1)]),
    sequential("an unknown layer among them", "any", lambda nn: [
        nn.Linear(4, 6), nn.LayerNorm(6), nn.Tanh(), nn.Linear(6, 1)]),
    Row("PyTorch", "torch", "Module", "any", "any other, through autograd", own_module),
    skorch("NeuralNetClassifier", "binary", "CrossEntropyLoss", 2, "CrossEntropyLoss", lambda: data.binary()),
    skorch("NeuralNetClassifier", "multiclass", "CrossEntropyLoss", 3, "CrossEntropyLoss", lambda: data.class_codes()),
    skorch("NeuralNetClassifier", "binary", "NLLLoss", 2, "NLLLoss", lambda: data.binary(), "Softmax"),
    skorch("NeuralNetBinaryClassifier", "binary", "BCEWithLogitsLoss", 1, "BCEWithLogitsLoss",
           lambda: floats(data.binary())),
    skorch("NeuralNetRegressor", "regression", "", 1, "MSELoss", lambda: floats(data.target()[:, None])),
)  # fmt: skip
