"""torch modules, skorch nets and plain functions as models."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest
import skorch
import torch
from unchecked import unchecked

import gigrad as gig
from gigrad._io.tables import read_rows
from gigrad.graph import Affine, Elementwise, Graph, Node, Opaque, Smooth, evaluate, own_values, topological
from gigrad.testing import gradient

nn = torch.nn
Module: Any = nn.Module
RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 6))


def norm(width: int) -> Any:
    """A batch norm that has seen data."""
    layer = nn.BatchNorm1d(width)
    with torch.no_grad():
        for part in (layer.running_mean, layer.weight, layer.bias):
            part.normal_()
        layer.running_var.uniform_(0.5, 2.0)
    return layer


def compare(graph: Graph, x: Any) -> Any:
    return own_values(graph.score, graph.witnesses, graph.input, read_rows(x, graph, what="X"))


def opaque(node: Node) -> list[str]:
    return [n.label for n in topological(node) if isinstance(n, Opaque)]


KNOWN = {
    "ReLU": nn.ReLU(), "LeakyReLU": nn.LeakyReLU(0.2), "PReLU": nn.PReLU(), "ELU": nn.ELU(0.7), "SELU": nn.SELU(),
    "Tanh": nn.Tanh(), "Sigmoid": nn.Sigmoid(), "LogSigmoid": nn.LogSigmoid(), "Softplus": nn.Softplus(),
    "Softplus beta": nn.Softplus(beta=3.0), "GELU": nn.GELU(), "GELU tanh": nn.GELU(approximate="tanh"),
    "SiLU": nn.SiLU(), "ReLU6": nn.ReLU6(), "Hardtanh": nn.Hardtanh(-0.5, 0.7), "Hardsigmoid": nn.Hardsigmoid(),
    "Softmax": nn.Softmax(dim=1), "LogSoftmax": nn.LogSoftmax(dim=-1), "Identity": nn.Identity(),
    "Dropout": nn.Dropout(0.5), "Flatten": nn.Flatten(), "BatchNorm1d": norm(5),
    "LayerNorm": nn.LayerNorm(5), "RMSNorm": nn.RMSNorm(5),
    "LayerNorm without weights": nn.LayerNorm(5, elementwise_affine=False),
}  # fmt: skip
OTHER = {
    "Mish": nn.Mish(), "PReLU": nn.PReLU(5), "Softsign": nn.Softsign(),
    "Softmax": nn.Softmax(dim=0),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_known_layers_become_nodes_without_torch(name: str) -> None:
    torch.manual_seed(0)
    for net in (
        nn.Sequential(nn.Linear(6, 5), KNOWN[name], nn.Linear(5, 2)),
        nn.Sequential(
            norm(6), nn.Linear(6, 5, bias=False), norm(5), nn.Sequential(KNOWN[name], norm(5)), nn.Linear(5, 1)
        ),
        nn.Sequential(nn.Linear(6, 5), KNOWN[name]),
    ):
        graph = gig.import_model(net.eval())
        assert not opaque(graph.score)
        for scale in (1.0, 30.0):
            own = compare(graph, scale * X)
            with torch.no_grad():
                double = copy.deepcopy(net).double()(torch.from_numpy(scale * X)).numpy()
            np.testing.assert_allclose(graph.predict(scale * X).reshape(own.shape), double, rtol=1e-8, atol=1e-9)
            np.testing.assert_allclose(own, double, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", [n for n in OTHER if n != "Softmax"])
def test_an_unknown_layer_alone_goes_through_autograd(name: str) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 5), OTHER[name], nn.ReLU(), nn.Linear(5, 2)).eval()
    graph = gig.import_model(net)
    assert opaque(graph.score) == [type(OTHER[name]).__name__]
    compare(graph, X)
    for output in (0, 1):
        slopes = gradient(graph.score, graph.input, X, output)
        x = torch.from_numpy(X).requires_grad_(True)
        (want,) = torch.autograd.grad(copy.deepcopy(net).double()(x)[:, output].sum(), x)
        np.testing.assert_allclose(slopes, want.numpy(), rtol=1e-10, atol=1e-12)


def test_batch_norm_is_folded_into_the_linear_layers() -> None:
    net = nn.Sequential(norm(6), nn.Linear(6, 5), norm(5), nn.ReLU(), norm(5), nn.Dropout(), nn.Linear(5, 1)).eval()
    nodes = topological(gig.import_model(net).score)
    assert [type(n) for n in nodes[1:]] == [Affine, Elementwise, Affine]


class Net(Module):
    """A module that only autograd can see through."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 5), nn.Linear(5, 1)

    def forward(self, x: Any) -> Any:
        return self.last(torch.tanh(self.first(x)) + torch.sin(x[:, :5])).squeeze(1)


def test_any_other_module_is_one_opaque_node() -> None:
    net = Net().eval()
    before = net.first.weight.clone()
    graph = gig.import_model(net)
    assert opaque(graph.score) == ["Net"]
    own = compare(graph, X)
    with torch.no_grad():
        np.testing.assert_array_equal(own[:, 0], net(torch.from_numpy(X).float()).numpy())
    assert net.first.weight.dtype == torch.float32
    assert torch.equal(net.first.weight, before)
    assert net.first.weight.requires_grad, "the user's module is left as it was"
    slope = gradient(graph.score, graph.input, X, 0)
    step = np.zeros(6)
    step[2] = 1e-6
    difference = (graph.predict(X + step) - graph.predict(X - step)) / 2e-6
    np.testing.assert_allclose(slope[:, 2], difference, rtol=1e-6, atol=1e-8)


class FloatIn(Net):
    def forward(self, x: Any) -> Any:
        return super().forward(x.float())


class FloatOut(Net):
    def forward(self, x: Any) -> Any:
        return super().forward(x).float()


class Pair(Net):
    def forward(self, x: Any) -> Any:
        return super().forward(x), x


class Total(Net):
    def forward(self, x: Any) -> Any:
        return super().forward(x).sum()


class Ranked(Net):
    """Scores every row against the mean of its batch."""

    def forward(self, x: Any) -> Any:
        out = super().forward(x)
        return out - out.mean()


class Slice(Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, x: Any) -> Any:
        return self.layer(x[:, :3])


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "training": (lambda: Net(), gig.InputError, "must be in eval mode"),
    "training inside": (lambda: nn.Sequential(nn.Linear(6, 1), nn.Dropout().train()), gig.InputError, r"\.eval\(\)"),
    "float32 inside": (lambda: FloatIn().eval(), gig.UnsupportedModelError, "forces float32 somewhere"),
    "float32 out": (lambda: FloatOut().eval(), gig.UnsupportedModelError, "gave torch.float32"),
    "a tuple": (lambda: Pair().eval(), gig.InputError, "one tensor; it gave a tuple"),
    "a total": (lambda: Total().eval(), gig.InputError, r"shape \(rows,\) or \(rows, outputs\)"),
    "rows that depend on each other": (lambda: Ranked().eval(), gig.InputError, "score every row by itself"),
    "a batch's own statistics": (
        lambda: nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5, track_running_stats=False)).eval(),
        gig.UnsupportedModelError,
        "running statistics",
    ),
    "an unknown width": (lambda: Slice().eval(), gig.UnsupportedModelError, r"gigrad.function\(module"),
    "no layers": (lambda: nn.Sequential(nn.Tanh()).eval(), gig.UnsupportedModelError, "The number of columns of a"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_modules_that_cannot_be_explained_say_why(name: str) -> None:
    make, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        compare(gig.import_model(make()), X)


def test_a_softmax_over_rows_is_noticed() -> None:
    with pytest.raises(gig.InputError, match="score every row by itself"):
        compare(gig.import_model(nn.Sequential(nn.Linear(6, 5), nn.Softmax(dim=0)).eval()), X)


def test_a_module_whose_columns_are_said() -> None:
    graph = gig.function(Slice().eval(), "autograd", list("abcdef"))
    assert graph.feature_names == tuple("abcdef")
    compare(graph, X)
    assert not gradient(graph.score, graph.input, X, 0)[:, 3:].any()
    stack = nn.Sequential(nn.Linear(6, 2), nn.Tanh()).eval()
    named = gig.function(stack, "autograd", 6, outputs=["up", "down"])
    assert named.output_names == ("up", "down")
    assert not opaque(named.score)
    with pytest.raises(gig.InputError, match=r"must give 1 numbers a row .*; it gives 2"):
        gig.function(stack, "autograd", 6)


def test_a_double_module_is_its_own_exact_self() -> None:
    net = nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 1)).double().eval()
    graph = gig.import_model(net)
    np.testing.assert_allclose(compare(graph, X)[:, 0], graph.predict(X), rtol=1e-12, atol=1e-14)


# ---------------------------------------------------------------- functions


def test_a_formula_with_its_gradient() -> None:
    graph = gig.function(
        lambda x: np.sin(x[:, 0] * x[:, 1]),
        lambda x: np.cos(x[:, :1] * x[:, 1:]) * x[:, ::-1],
        ["a", "b"],
        label="sine of a product",
    )
    assert (graph.named, graph.label, graph.output_names) == (True, "sine of a product", ("prediction",))
    np.testing.assert_allclose(compare(graph, X[:, :2])[:, 0], np.sin(X[:, 0] * X[:, 1]))
    by_torch = gig.function(lambda x: torch.sin(x[:, 0] * x[:, 1]), "autograd", ["a", "b"])
    np.testing.assert_allclose(
        gradient(graph.score, graph.input, X[:, :2], 0), gradient(by_torch.score, by_torch.input, X[:, :2], 0)
    )


def test_a_function_of_several_outputs() -> None:
    weight = RNG.normal(size=(3, 4))
    graph = gig.function(lambda x: x**2 @ weight.T, lambda x: 2 * x[:, None, :] * weight, 4, outputs=["u", "v", "w"])
    assert isinstance(graph.score, Smooth)
    x, cotangent = X[:, :4], RNG.normal(size=(30, 3))
    np.testing.assert_allclose(evaluate((graph.score,), {graph.input: x})[graph.score], x**2 @ weight.T)
    np.testing.assert_allclose(graph.score.pullback(cotangent, x)[0], (cotangent @ weight) * 2 * x)


def test_functions_that_cannot_be() -> None:
    def good(x: Any) -> Any:
        return x.sum(axis=1)

    for columns in (0, [], ["a", "a"], "ab"):
        with pytest.raises(gig.InputError, match="columns must be"):
            gig.function(good, good, columns)
    with pytest.raises(gig.InputError, match='a function or "autograd"'):
        gig.function(good, "numerical", 2)
    with pytest.raises(gig.InputError, match="value must be a function"):
        gig.function(unchecked(3.0), good, 2)
    bent = gig.function(good, lambda x: x[:, :1], 2)
    with pytest.raises(gig.InputError, match=r"must have shape \(30, 2\)"):
        gradient(bent.score, bent.input, X[:, :2], 0)
    with pytest.raises(gig.InputError, match="score every row by itself"):
        compare(gig.function(lambda x: good(x) / good(x).sum(), np.zeros_like, 2), X[:, :2])
    with pytest.raises(gig.UnsupportedModelError, match="cannot be imported"):
        gig.import_model(good)


# ---------------------------------------------------------------- skorch


def tower(outputs: int, *more: Any) -> Any:
    return nn.Sequential(nn.Linear(6, 5), nn.Dropout(0.3), nn.Tanh(), nn.Linear(5, outputs), *more)


class Flat(Module):
    """One logit a row, without a column of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = tower(1)

    def forward(self, x: Any) -> Any:
        return self.layers(x).squeeze(-1)


SKORCH: dict[str, tuple[str, Any, Any, str, tuple[str, ...]]] = {
    "cross entropy, two": ("NeuralNetClassifier", lambda: tower(2), nn.CrossEntropyLoss, "two", ("1",)),
    "cross entropy, three": ("NeuralNetClassifier", lambda: tower(3), nn.CrossEntropyLoss, "three", ("0", "1", "2")),
    "probabilities, two": ("NeuralNetClassifier", lambda: tower(2, nn.Softmax(-1)), nn.NLLLoss, "two", ("1",)),
    "probabilities, three": (
        "NeuralNetClassifier", lambda: tower(3, nn.Softmax(-1)), nn.NLLLoss, "three", ("0", "1", "2")
    ),
    "logit": ("NeuralNetBinaryClassifier", lambda: tower(1), nn.BCEWithLogitsLoss, "float", ("1",)),
    "flat logit": ("NeuralNetBinaryClassifier", Flat, nn.BCEWithLogitsLoss, "float", ("1",)),
    "probability": ("NeuralNetBinaryClassifier", lambda: tower(1, nn.Sigmoid()), nn.BCELoss, "float", ("1",)),
    "regressor": ("NeuralNetRegressor", lambda: tower(1), nn.MSELoss, "real", ("prediction",)),
    "two targets": ("NeuralNetRegressor", lambda: tower(2), nn.MSELoss, "pair", ("0", "1")),
}  # fmt: skip


def fit_skorch(name: str) -> Any:
    kind, module, criterion, target, _ = SKORCH[name]
    x = X.astype(np.float32)
    y = {
        "two": (x[:, 0] > 0).astype(np.int64), "three": np.digitize(x[:, 0], [-0.4, 0.4]), "real": x[:, :1],
        "float": (x[:, 0] > 0).astype(np.float32), "pair": x[:, :2],
    }[target]  # fmt: skip
    torch.manual_seed(0)
    net = getattr(skorch, kind)(module(), criterion=criterion, max_epochs=2, verbose=0, train_split=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return net.fit(x, y)


@pytest.mark.parametrize("name", SKORCH)
def test_skorch_nets(name: str) -> None:
    net = fit_skorch(name)
    graph = gig.import_model(net)
    assert graph.output_names == SKORCH[name][-1]
    own = compare(graph, X)
    given = net.predict_proba(X.astype(np.float32)).reshape(len(X), -1)
    np.testing.assert_array_equal(own, given[:, -graph.score.width :])
    np.testing.assert_allclose(graph.predict(X).reshape(own.shape), own, rtol=1e-5, atol=1e-6)
    margin = own_values(graph.margin, graph.witnesses, graph.input, read_rows(X, graph, what="X"))
    raw = net.forward(X.astype(np.float32)).numpy().reshape(len(X), -1).astype(np.float64)
    wanted = raw[:, 1:] - raw[:, :1] if name == "cross entropy, two" else raw[:, -graph.margin.width :]
    np.testing.assert_allclose(margin, wanted, rtol=1e-12, atol=1e-12)


def test_skorch_nets_that_cannot_be_imported() -> None:
    with pytest.raises(gig.NotFittedError, match="has not been fitted"):
        gig.import_model(skorch.NeuralNetRegressor(tower(1)))
    net = fit_skorch("logit").set_params(predict_nonlinearity=torch.sigmoid)
    with pytest.raises(gig.UnsupportedModelError, match="predict_nonlinearity of its own"):
        gig.import_model(net)
