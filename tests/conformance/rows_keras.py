"""The rows of Keras models in the conformance table, on the torch backend unless KERAS_BACKEND says otherwise."""

from __future__ import annotations

import os
from collections.abc import Callable
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


ROWS = (
    *(sequential(name, "any", lambda nn, name=name: [nn.Dense(6, activation=name), nn.Dense(1)])
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
)  # fmt: skip
