"""Keras layers and models that no nodes are built for: values and gradients in float64, through autograd.

All tests run on the backend of this process; test_keras_autograd_backends.py runs them again on the others that are
installed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conformance import data
from keras_nets import BACKEND, ENDS, STARTS, base_layer, base_model, functions, keras, layers, net, ops, torch

import gigrad as gig
from gigrad.testing import check_importer


@pytest.fixture(autouse=True)
def seeded() -> None:
    keras.utils.set_random_seed(3)


def integrated(f: Callable[[Any], Any], start: Any, end: Any) -> Any:
    """Integrated gradients by 100 Gauss nodes, from a function of float64 tensors."""
    nodes, weights = np.polynomial.legendre.leggauss(100)
    times = torch.from_numpy((nodes + 1) / 2)[:, None]
    x = ((1 - times) * torch.from_numpy(start) + times * torch.from_numpy(end)).requires_grad_(True)
    (slopes,) = torch.autograd.grad(f(x).sum(), x)
    return (weights / 2) @ slopes.numpy() * (end - start)


def doubles(layer: Any) -> list[Any]:
    return [torch.from_numpy(np.asarray(w, np.float64)) for w in layer.get_weights()]


# ------------------------------------------------------------ credits


def test_a_convolution_by_hand_in_torch() -> None:
    """The same layer written in torch, in float64, gives the same credits: none of Keras's rounding is in them."""
    model = net(layers.Reshape((4, 1)), layers.Conv1D(3, 2, activation="tanh"), layers.Flatten(), layers.Dense(1))
    kernel, bias = doubles(model.layers[1])
    weight, shift = doubles(model.layers[3])

    def by_hand(x: Any) -> Any:
        steps = torch.stack([x[:, :-1], x[:, 1:]], dim=2)  # (n, 3, 2)
        return torch.tanh(steps @ kernel[:, 0] + bias).reshape(len(x), -1) @ weight + shift

    explained = gig.explain(model, ENDS, STARTS, tol=1e-10)
    want = np.mean([[integrated(by_hand, s, e) for s in STARTS] for e in ENDS], axis=1)
    np.testing.assert_allclose(explained.values, want, atol=1e-11)
    np.testing.assert_array_equal(explained.predictions, model.predict(ENDS.astype(np.float32), verbose=0)[:, 0])
    assert functions(model) == [f"Conv1D {model.layers[1].name!r}"]


def test_a_recurrent_layer_by_hand_in_torch() -> None:
    model = net(layers.Reshape((2, 2)), layers.SimpleRNN(3), layers.Dense(1, activation="sigmoid"))
    kernel, recurrent, bias = doubles(model.layers[1])
    weight, shift = doubles(model.layers[2])

    def by_hand(x: Any) -> Any:
        state = torch.tanh(x[:, :2] @ kernel + bias)
        return torch.tanh(x[:, 2:] @ kernel + state @ recurrent + bias) @ weight + shift

    want = np.mean([[integrated(by_hand, s, e) for s in STARTS] for e in ENDS], axis=1)
    np.testing.assert_allclose(gig.explain(model, ENDS, STARTS, output="margin", tol=1e-10).values, want, atol=1e-11)


def test_layers_that_are_known_are_explained_alike_as_functions() -> None:
    """The nodes of a net, and the same net through autograd, give the same credits."""
    model = net(layers.Dense(5, activation="relu"), layers.LayerNormalization(), layers.Dense(1))
    nodes = gig.explain(model, ENDS, STARTS, tol=1e-10)
    whole = gig.explain(gig.function(model, "autograd", 4), ENDS, STARTS, tol=1e-10)
    assert not functions(model)
    np.testing.assert_allclose(nodes.values, whole.values, atol=1e-9)


class Gate(base_layer):
    """A layer of someone's, which does not tell its name, with dropout inside and a constant."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.dense, self.drop = layers.Dense(4), layers.Dropout(0.5)

    def call(self, x: Any) -> Any:
        return x * ops.sigmoid(self.drop(self.dense(x))) + ops.convert_to_tensor([0.1, 0.2, 0.3, 0.4])

    def get_config(self) -> dict[str, Any]:
        return {}


class NotSaved(base_layer):
    """A layer that Keras cannot write down."""

    def __init__(self, power: Any) -> None:
        super().__init__()
        self.power = power

    def call(self, x: Any) -> Any:
        return self.power(x)

    def get_config(self) -> dict[str, Any]:
        raise NotImplementedError


class Net(base_model):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = layers.Dense(5, activation="tanh"), layers.Dense(1)

    def call(self, x: Any) -> Any:
        return self.last(self.first(x)) * ops.sin(x[:, :1])


def built() -> Any:
    model = Net()
    model(np.zeros((2, 4), np.float32))
    return model


def in_the_backend(x: Any) -> Any:
    """The backend's own functions, with casts to float32."""
    if BACKEND == "torch":
        return torch.sin(x.float()) * torch.tensor([0.1, 0.2, 0.3, 0.4]) + torch.zeros(4)
    if BACKEND == "tensorflow":
        import tensorflow as tf

        return tf.function(lambda t: tf.sin(tf.cast(t, tf.float32)))(x) * tf.constant([0.1, 0.2, 0.3, 0.4])
    import jax.numpy as jnp

    return jnp.sin(x.astype("float32")) * jnp.array([0.1, 0.2, 0.3, 0.4]) + jnp.zeros(4)


def attention() -> Any:
    x = keras.Input((4,))
    steps = layers.Dense(3)(layers.Reshape((2, 2))(x))
    mixed = layers.MultiHeadAttention(2, 2)(steps, value=steps, use_causal_mask=True)
    joined = layers.LayerNormalization(epsilon=0.1)(layers.Add()([steps, mixed]))
    return keras.Model(x, layers.Dense(1, activation="sigmoid")(layers.Flatten()(joined)))


def several_outputs_of_a_layer() -> Any:
    x = keras.Input((2, 2))
    steps, state, cell = layers.LSTM(2, return_sequences=True, return_state=True)(x)
    return keras.Model(x, layers.Dense(1)(layers.Concatenate()([layers.Flatten()(steps), state, cell])))


def operations() -> Any:
    x = keras.Input((4,))
    return keras.Model(x, ops.sum(ops.sin(x[:, 1:]) * 2.0 + x[:, :1], axis=1, keepdims=True))


def inside_another() -> Any:
    inner = keras.Sequential([keras.Input((4,)), Gate(), layers.Dense(3, activation="relu")])
    x = keras.Input((4,))
    return keras.Model(x, layers.Dense(2)(layers.Add()([inner(x), layers.Dense(3)(x)])))


MODELS: dict[str, Callable[[], Any]] = {
    "a layer of someone's": lambda: net(Gate(), layers.Dense(1)),
    "one that Keras cannot write": lambda: net(NotSaved(lambda x: x**3), layers.Dense(1)),
    "a lambda": lambda: net(layers.Lambda(lambda x: ops.sin(x)), layers.Dense(1)),
    "an activation of someone's": lambda: net(layers.Dense(3, activation=lambda x: ops.tanh(x) ** 3), layers.Dense(1)),
    "the backend inside": lambda: net(layers.Lambda(in_the_backend, output_shape=(4,)), layers.Dense(1)),
    "a class of its own": built,
    "attention": attention,
    "several outputs of a layer": several_outputs_of_a_layer,
    "operations, slices, constants": operations,
    "inside another model": inside_another,
    "spectral normalisation": lambda: net(layers.SpectralNormalization(layers.Dense(3)), layers.Dense(1)),
}


@pytest.mark.parametrize("what", MODELS)
def test_anything_else_is_explained_and_left_as_it_is(what: str) -> None:
    model = MODELS[what]()
    before = [np.array(w) for w in model.get_weights()]
    gradients = [getattr(v.value, "grad", None) for v in model.trainable_variables]
    with warnings.catch_warnings():
        warnings.simplefilter("error", gig.AccuracyWarning)
        report = check_importer(model, data.numbers())
    assert report.largest_difference < 1e-9
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)
    assert [getattr(v.value, "grad", None) for v in model.trainable_variables] == gradients
    assert {keras.backend.standardize_dtype(v.value.dtype) for v in model.trainable_variables} <= {"float32"}


def test_what_is_known_stays_nodes() -> None:
    """Only the layer that is not known is a function: the margin and the embedding are those of nodes."""
    x, job = keras.Input((3,), name="amount"), keras.Input((1,), name="job", dtype="int32")
    steps = layers.LSTM(2)(layers.Reshape((3, 1))(x))
    joined = layers.Concatenate()([steps, layers.Flatten()(layers.Embedding(5, 2)(job))])
    model = keras.Model([x, job], layers.Dense(1, activation="sigmoid")(joined))
    graph = gig.import_model(model)
    assert graph.margin is not graph.score
    assert [c.kind for c in graph.columns] == ["number"] * 3 + ["category"]
    assert [label.split()[0] for label in functions(model)] == ["LSTM"]
    table = np.column_stack([data.numbers()[:, :3], np.arange(data.N) % 5])
    check_importer(model, table)


def test_bins_before_a_function() -> None:
    """Bins are taken in float32, as Keras does; the graph is held to the model's own predictions then."""
    x = keras.Input((1,), name="amount")
    bins = layers.Discretization([-0.5, 0.1, 0.7], output_mode="one_hot")(x)
    model = keras.Model(x, layers.Dense(1)(layers.EinsumDense("ab,bc->ac", 3)(layers.Concatenate()([bins, x]))))
    check_importer(model, data.numbers()[:, :1])


# ------------------------------------------------------------ columns that are read as codes


class Embeds(base_layer):
    def __init__(self) -> None:
        super().__init__()
        self.table = layers.Embedding(5, 3)

    def call(self, x: Any) -> Any:
        return ops.concatenate([self.table(ops.cast(x[:, 0], "int32")), ops.tanh(x[:, 1:])], axis=1)


def test_a_column_that_is_looked_up_inside_a_layer_is_a_category() -> None:
    model = net(Embeds(), layers.Dense(1))
    table = np.column_stack([np.arange(60) % 5, data.numbers()[:60, 1:]])
    graph = gig.import_model(model)
    assert [c.kind for c in graph.columns] == ["category", "number", "number", "number"]
    check_importer(model, table)
    with pytest.raises(gig.InputError, match=r"'x0'; 5.0 is not one of its"):
        gig.explain(model, np.array([[5.0, 0, 0, 0]]), table)


def test_masks_pass_from_layer_to_layer() -> None:
    """Codes of 0 are left out by the layers behind; a net of layers one by one would lose that."""
    x = keras.Input((3,), dtype="int32")
    model = keras.Model(x, layers.Dense(1)(layers.LSTM(2)(layers.Embedding(4, 2, mask_zero=True)(x))))
    table = np.random.default_rng(1).integers(0, 4, (60, 3)).astype(float)
    graph = gig.import_model(model)
    assert [c.kind for c in graph.columns] == ["category"] * 3
    assert functions(model) == ["Functional"]
    np.testing.assert_allclose(graph.predict(table), model.predict(table.astype(np.int32), verbose=0)[:, 0], atol=1e-6)
    check_importer(model, table)


def test_codes_can_be_declared() -> None:
    """A column that is compared inside has no gradient; as a category it needs none."""
    model = net(layers.Lambda(lambda x: ops.where(x[:, :1] > 1.5, x, -x) * x[:, 1:2]), layers.Dense(1))
    table = np.column_stack([np.arange(60) % 3 + 1, data.numbers()[:60, 1:]])
    graph = gig.function(model, "autograd", ["grade", "a", "b", "c"], categories={"grade": [1, 2, 3]})
    explained = gig.explain(graph, table[:4], table[4:])
    assert np.abs(explained.gap).max() < 1e-6
    np.testing.assert_allclose(
        explained.predictions, model.predict(table[:4].astype(np.float32), verbose=0)[:, 0], rtol=1e-6
    )
