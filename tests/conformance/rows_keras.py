"""The rows of Keras models in the conformance table, on the torch backend unless KERAS_BACKEND says otherwise."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from . import data
from .row import Fitted, Row

ACTIVATIONS = (
    "relu", "leaky_relu", "elu", "selu", "tanh", "sigmoid", "softplus", "gelu", "silu", "mish", "softsign", "relu6",
    "hard_sigmoid", "hard_silu", "hard_tanh", "log_sigmoid", "tanh_shrink", "exponential",
)  # fmt: skip


def keras() -> Any:
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras

    keras.utils.set_random_seed(0)
    return keras


def row(model: str, task: str, options: str, build: Callable[[], Fitted]) -> Row:
    return Row("Keras", "keras", model, task, options, build)


def sequential(options: str, task: str, layers: Callable[[Any], list[Any]]) -> Row:
    def build() -> Fitted:
        library = keras()
        net = library.Sequential([library.Input((4,)), *layers(library.layers)])
        net(data.numbers().astype(np.float32), training=True)  # batch norms see the data
        return net, data.numbers()

    return row("Sequential", task, options, build)


def lending() -> Any:
    """An amount, a job in six codes, a grade in three, and a count."""
    rng = np.random.default_rng(3)
    return np.column_stack(
        [data.numbers()[:, 0], rng.integers(0, 6, data.N), rng.integers(0, 3, data.N), rng.integers(0, 5, data.N)]
    ).astype(float)


def columns_by_name() -> Fitted:
    """Every column an input: numbers, codes in an embedding and in one-hot form, bins."""
    import pandas as pd

    library = keras()
    layers = library.layers
    amount = library.Input((1,), name="amount")
    job, grade = (library.Input((1,), name=name, dtype="int32") for name in ("job", "grade"))
    count = library.Input((1,), name="count")
    normal = layers.Normalization()
    normal.adapt(lending()[:, :1])
    parts = [
        normal(amount),
        layers.Flatten()(layers.Embedding(6, 2)(job)),
        layers.CategoryEncoding(3, output_mode="one_hot")(grade),
        layers.Discretization([-0.5, 0.1, 0.7], output_mode="one_hot")(amount),
        layers.Flatten()(layers.Embedding(4, 2)(layers.Discretization([1.0, 2.0, 4.0])(count))),
        layers.Rescaling(0.25, -0.5)(count),
    ]
    hidden = layers.Dense(5, activation="relu")(layers.Concatenate()(parts))
    out = layers.Dense(1, activation="sigmoid")(hidden)
    table = pd.DataFrame(lending(), columns=["amount", "job", "grade", "count"])
    return library.Model([amount, job, grade, count], out), table


def branches() -> Fitted:
    """Shared layers, a model inside, and everything that joins branches."""
    library = keras()
    layers = library.layers
    x = library.Input((4,))
    shared = layers.Dense(3, activation="tanh")
    a, b = shared(x), shared(layers.Rescaling(0.5)(x))
    inner = library.Sequential([library.Input((3,)), layers.Dense(3, activation="relu"), layers.Dense(3)])
    joined = [
        layers.Add()([a, b]), layers.Subtract()([a, b]), layers.Multiply()([a, b, inner(a)]),
        layers.Average()([a, b]), layers.Maximum()([a, b]), layers.Minimum()([a, inner(b)]),
    ]  # fmt: skip
    return library.Model(x, layers.Dense(2)(layers.Concatenate()(joined))), data.numbers()


def two_outputs() -> Fitted:
    library = keras()
    x = library.Input((4,))
    hidden = library.layers.Dense(4, activation="tanh")(x)
    ends = [library.layers.Dense(1, activation="sigmoid")(hidden), library.layers.Dense(2)(hidden)]
    return library.Model(x, ends), data.numbers()


def several_codes() -> Fitted:
    library = keras()
    layers = library.layers
    x = library.Input((2,), dtype="int32")
    out = layers.Dense(1)(layers.Reshape((6,))(layers.Embedding(6, 3)(x)))
    rng = np.random.default_rng(4)
    return library.Model(x, out), rng.integers(0, 6, (60, 2)).astype(float)


def attention() -> Fitted:
    """A small transformer: attention over steps, a residual, a normalisation."""
    library = keras()
    layers = library.layers
    x = library.Input((4,))
    steps = layers.Dense(3)(layers.Reshape((2, 2))(x))
    mixed = layers.MultiHeadAttention(2, 2)(steps, steps)
    joined = layers.LayerNormalization(epsilon=0.1)(layers.Add()([steps, mixed]))
    return library.Model(
        x, layers.Dense(1, activation="sigmoid")(layers.GlobalAveragePooling1D()(joined))
    ), data.numbers()


def own_model() -> Fitted:
    library = keras()
    base: Any = library.Model

    class Net(base):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = library.layers.Dense(5, activation="tanh"), library.layers.Dense(1)

        def call(self, x: Any) -> Any:
            return self.last(self.first(x)) * library.ops.sin(x[:, :1])

    model = Net()
    model(data.numbers()[:2].astype(np.float32))
    return model, data.numbers()


def masked() -> Fitted:
    library = keras()
    layers = library.layers
    x = library.Input((3,), dtype="int32")
    out = layers.Dense(1)(layers.GRU(2)(layers.Embedding(4, 2, mask_zero=True)(x)))
    return library.Model(x, out), np.random.default_rng(6).integers(0, 4, (60, 3)).astype(float)


def lookups() -> Fitted:
    """Text and whole numbers as labels; Keras has such layers on TensorFlow alone."""
    import pytest

    library = keras()
    if library.config.backend() != "tensorflow":
        pytest.skip("Keras runs StringLookup and IntegerLookup on TensorFlow alone, and this process has another")
    layers = library.layers
    job, branch = library.Input((1,), name="job", dtype="string"), library.Input((1,), name="branch", dtype="int64")
    amount = library.Input((1,), name="amount")
    parts = [
        layers.Flatten()(layers.Embedding(5, 2)(layers.StringLookup(vocabulary=["clerk", "smith", "baker"])(job))),
        layers.IntegerLookup(vocabulary=[10, 20, 35], output_mode="one_hot")(branch),
        amount,
    ]
    hidden = layers.Dense(4, activation="relu")(layers.Concatenate()(parts))
    model = library.Model([job, branch, amount], layers.Dense(1, activation="sigmoid")(hidden))
    import pandas as pd

    rng = np.random.default_rng(5)
    columns = {"job": rng.choice(["clerk", "smith", "other"], 60), "branch": rng.choice([10, 20, 77], 60)}
    return model, pd.DataFrame({**columns, "amount": data.numbers()[:60, 0]})


def activated(name: str, nn: Any) -> list[Any]:
    return [nn.Dense(6, activation=name), nn.Dense(1)]


KNOWN = (
    *(sequential(name, "any", partial(activated, name))
      for name in ACTIVATIONS),
    sequential("BatchNormalization, Dropout", "binary", lambda nn: [
        nn.BatchNormalization(), nn.Dense(6, use_bias=False), nn.BatchNormalization(scale=False), nn.Activation("relu"),
        nn.Dropout(0.3), nn.GaussianNoise(0.1), nn.Dense(1, activation="sigmoid")]),
    sequential("LayerNormalization", "any", lambda nn: [
        nn.Dense(5), nn.LayerNormalization(), nn.Activation("tanh"), nn.Dense(1)]),
    sequential("ReLU, LeakyReLU, PReLU, ELU as layers", "any", lambda nn: [
        nn.Dense(5), nn.ReLU(max_value=0.7), nn.Dense(5), nn.LeakyReLU(negative_slope=0.1), nn.Dense(5),
        nn.PReLU(alpha_initializer="random_normal"), nn.Dense(5), nn.ELU(alpha=0.5),
        nn.ReLU(max_value=0.5, negative_slope=0.2), nn.Dense(1)]),
    sequential("softmax", "multiclass", lambda nn: [nn.Dense(5, activation="tanh"), nn.Dense(3, activation="softmax")]),
    sequential("log_softmax, Softmax layer", "multiclass", lambda nn: [
        nn.Dense(4, activation="log_softmax"), nn.Dense(3), nn.Softmax()]),
    row("Functional", "binary", "an input for each column, embeddings, one-hot codes, bins", columns_by_name),
    row("Functional", "any", "shared layers, models inside, all joins", branches),
    row("Functional", "several targets", "two outputs", two_outputs),
    row("Functional", "regression", "one embedding of several columns", several_codes),
    Row("Keras", "tensorflow", "Functional", "binary", "StringLookup, IntegerLookup on text and numbers", lookups),
)  # fmt: skip
AUTOGRAD = (
    sequential("Conv1D, pooling", "any", lambda nn: [
        nn.Reshape((4, 1)), nn.Conv1D(3, 2, activation="tanh"), nn.AveragePooling1D(2), nn.Flatten(), nn.Dense(1)]),
    sequential("LSTM", "binary", lambda nn: [nn.Reshape((2, 2)), nn.LSTM(3), nn.Dense(1, activation="sigmoid")]),
    sequential("GRU, Bidirectional", "multiclass", lambda nn: [
        nn.Reshape((2, 2)), nn.Bidirectional(nn.GRU(2)), nn.Dense(3, activation="softmax")]),
    sequential("EinsumDense, Dense over steps", "any", lambda nn: [
        nn.EinsumDense("ab,bc->ac", 4), nn.Reshape((2, 2)), nn.Dense(3, activation="elu"), nn.Flatten(), nn.Dense(1)]),
    sequential("Lambda", "any", lambda nn: [nn.Lambda(lambda x: x**3), nn.Dense(1)]),
    row("Functional", "binary", "MultiHeadAttention, any other layer or operation, through autograd", attention),
    row("Functional", "regression", "an embedding with a mask before a recurrent layer", masked),
    row("Model", "any", "a class of its own, through autograd", own_model),
)  # fmt: skip
"""Layers that are explained through the backend's autograd."""

ROWS = (*KNOWN, *AUTOGRAD)
