"""Keras layers and models that no nodes are built for: asked for values and gradients, in float64, through autograd.

All tests run on the backend of this process; one starts processes with the other backends that are installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conformance import data

import gigrad as gig
from gigrad._io.modelfiles.keras_archive import load_keras
from gigrad.graph import Opaque, topological
from gigrad.testing import check_importer

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras", reason="Keras is not installed, and all models here are of it")
torch = pytest.importorskip("torch", reason="torch is not installed, which the layers written by hand are in")
BACKEND = keras.config.backend()
on_torch = pytest.mark.skipif(BACKEND != "torch", reason="Keras has another backend than torch in this process")
traced = pytest.mark.skipif(BACKEND == "torch", reason="Keras on torch is not traced; another test starts processes")
layers, ops = keras.layers, keras.ops
base_layer: Any = layers.Layer
base_model: Any = keras.Model
RNG = np.random.default_rng(0)
ENDS, STARTS = RNG.normal(size=(2, 4)), RNG.normal(size=(3, 4))


@pytest.fixture(autouse=True)
def seeded() -> None:
    keras.utils.set_random_seed(3)


def net(*made: Any, **options: Any) -> Any:
    return keras.Sequential([keras.Input((4,), **options), *made])


def functions(model: Any) -> list[str]:
    return [n.label for n in topological(gig.import_model(model).score) if isinstance(n, Opaque)]


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


# ------------------------------------------------------------ what is refused or warned about


class Random(base_layer):
    def __init__(self) -> None:
        super().__init__()
        self.seeds = keras.random.SeedGenerator(1)

    def call(self, x: Any) -> Any:
        return x + keras.random.normal(ops.shape(x), seed=self.seeds)


REFUSED: dict[str, tuple[Callable[[], Any], str | dict[str, str]]] = {
    "rounding": (lambda: net(layers.Lambda(lambda x: ops.floor(x)), layers.Dense(1)), "it jumps with 'x0'"),
    "whole numbers": (
        lambda: net(layers.Lambda(lambda x: ops.cast(ops.cast(x, "int32"), "float32")), layers.Dense(1)),
        "must be continuous in every column of numbers; it jumps",
    ),
    "no gradient": (
        lambda: net(layers.Lambda(lambda x: ops.stop_gradient(x) * 2.0), layers.Dense(1)),
        "must have a gradient by every column it depends on; it has none by 'x0'",
    ),
    "NumPy inside": (
        lambda: net(layers.Lambda(in_numpy, output_shape=(4,)), layers.Dense(1)),
        {"torch": "it has none by 'x0'", "tensorflow": "operation EagerPyFunc", "jax": "operation pure_callback"},
    ),
    "rows that depend on others": (
        lambda: net(layers.Lambda(lambda x: x - ops.mean(x, axis=0, keepdims=True)), layers.Dense(1)),
        "must score every row by itself",
    ),
    "no rows": (
        lambda: net(layers.Lambda(lambda x: ops.reshape(x, (-1, 2)), output_shape=(2,)), layers.Dense(1)),
        "must score every row by itself",
    ),
    "random numbers": (lambda: net(Random(), layers.Dense(1)), "must score every row by itself"),
    "memory": (
        lambda: keras.Sequential([keras.Input((2, 2), batch_size=2), layers.LSTM(2, stateful=True), layers.Dense(1)]),
        "remembers rows that it was asked before",
    ),
    "a mask of numbers": (
        lambda: net(layers.Reshape((2, 2)), layers.Masking(), layers.LSTM(2)), "equal a number exactly, a jump",
    ),
    "codes that do not begin with 0": (
        lambda: net(layers.Lambda(lambda x: ops.take(ops.ones((3, 2)), ops.cast(x[:, 0], "int32") + 7, axis=0))),
        "must take a row of zeros",
    ),
    "columns that cannot be told": (lambda: two_inputs(), "How many columns a Two reads cannot be told"),
}  # fmt: skip


class Two(base_model):
    def __init__(self) -> None:
        super().__init__()
        self.dense = layers.Dense(1)

    def call(self, x: Any) -> Any:
        return self.dense(x[0]) + x[1]


def in_numpy(x: Any) -> Any:
    if BACKEND == "torch":
        return torch.from_numpy(np.sin(x.detach().numpy()))
    if BACKEND == "tensorflow":
        import tensorflow as tf

        return tf.py_function(np.sin, [x], tf.float32)
    import jax

    return jax.pure_callback(np.sin, x, x)


def two_inputs() -> Any:
    model = Two()
    model([np.zeros((2, 3), np.float32), np.zeros((2, 1), np.float32)])
    return model


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_gradient_cannot_tell_is_refused_by_name(what: str) -> None:
    make, said = REFUSED[what]
    said = said if isinstance(said, str) else said[BACKEND]
    with pytest.raises(gig.GigradError, match=said):
        gig.explain(make(), ENDS, STARTS)


def test_a_jump_on_the_way_is_warned_about() -> None:
    model = net(layers.Lambda(lambda x: ops.where(x > 0.0, x + 1.0, x)), layers.Dense(1))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        explained = gig.explain(model, ENDS, STARTS)
    assert any("The credits of row" in str(w.message) and "jumps by" in str(w.message) for w in said)
    assert explained.error.max() > 0.1


def test_low_precision_is_said_and_counted() -> None:
    """A layer that computes in half precision is explained in float64; what its own predictions lose is in `error`."""
    model = net(layers.Lambda(lambda x: ops.cast(ops.sin(ops.cast(x, "bfloat16")), "float32")), layers.Dense(1))
    with pytest.warns(gig.AccuracyWarning, match="computes in low precision"):
        explained = gig.explain(model, ENDS, STARTS)
    assert 1e-5 < np.abs(explained.gap).max() <= explained.error.max()


def test_a_model_that_was_trained_on_is_another() -> None:
    model = net(layers.EinsumDense("ab,bc->ac", 2), layers.Dense(1))
    explainer = gig.Explainer(model, STARTS)
    model.layers[0].set_weights([w * 2.0 for w in model.layers[0].get_weights()])
    with pytest.raises(gig.ModelMismatchError):
        explainer(ENDS)


def test_a_model_that_is_frozen_is_the_same() -> None:
    """Freezing a layer puts its variables in another order, and changes nothing else."""
    model = net(layers.EinsumDense("ab,bc->ac", 4), layers.BatchNormalization(), layers.Reshape((2, 2)), layers.GRU(2))
    model.set_weights([RNG.uniform(0.5, 1.5, np.shape(w)) for w in model.get_weights()])
    explainer = gig.Explainer(model, STARTS, target=1)
    before = explainer(ENDS).values
    model.trainable = False
    np.testing.assert_array_equal(explainer(ENDS).values, before)
    np.testing.assert_array_equal(gig.explain(model, ENDS, STARTS, target=1).values, before)


def test_the_fingerprint_holds_the_weights() -> None:
    model = net(layers.EinsumDense("ab,bc->ac", 2), layers.Dense(1))
    first = gig.explain(model, ENDS, STARTS).provenance["model"]["fingerprint"]
    assert gig.explain(model, ENDS, STARTS).provenance["model"]["fingerprint"] == first
    model.layers[0].set_weights([w * 2.0 for w in model.layers[0].get_weights()])
    assert gig.explain(model, ENDS, STARTS).provenance["model"]["fingerprint"] != first


@on_torch
def test_other_threads_compute_as_ever() -> None:
    """What makes float64 of Keras's float32 is seen by the thread that explains, and by no other."""
    seen: list[Any] = []

    def slow(x: Any) -> Any:
        other = threading.Thread(target=lambda: seen.append((torch.zeros(2).float() * 0.5).dtype))
        other.start()
        other.join()
        return ops.sin(x)

    gig.explain(net(layers.Lambda(slow), layers.Dense(1)), ENDS, STARTS)
    assert {*seen} == {torch.float32}


def test_other_backends_are_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    model = net(layers.EinsumDense("ab,bc->ac", 2), layers.Dense(1))
    monkeypatch.setattr(keras.config, "backend", lambda: "openvino")
    with pytest.raises(gig.UnsupportedModelError, match=r"EinsumDense .*has openvino.*KERAS_BACKEND is torch"):
        gig.import_model(model)


def test_a_file_says_what_to_do(tmp_path: Path) -> None:
    model = net(layers.Reshape((4, 1)), layers.Conv1D(2, 2), layers.Flatten(), layers.Dense(1))
    model.save(tmp_path / "net.keras")
    with pytest.raises(gig.UnsupportedModelError, match=r"is a Conv1D, which .*load the model with keras.* hand over"):
        load_keras(tmp_path / "net.keras")
    again = keras.saving.load_model(tmp_path / "net.keras")
    np.testing.assert_array_equal(gig.explain(again, ENDS, STARTS).values, gig.explain(model, ENDS, STARTS).values)
    with pytest.raises(gig.GigradError, match="Conv1D"):
        gig.import_model(model).save(tmp_path / "net.gig")


# ------------------------------------------------------------ backends that are traced


def test_several_threads_ask_at_once() -> None:
    """The first calls trace the program; all of them give what one thread is given."""
    model = net(layers.Reshape((2, 2)), layers.GRU(3), layers.Dense(1))
    X = np.random.default_rng(4).normal(size=(40, 4))
    (node,) = (n for n in topological(gig.import_model(model).score) if isinstance(n, Opaque))
    (other,) = (n for n in topological(gig.import_model(model).score) if isinstance(n, Opaque))
    ones = np.ones((1, node.width))
    want = [(node.value(x[None]), node.gradient(x[None], ones)) for x in X]
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda x: (other.value(x[None]), other.gradient(x[None], ones)), X))
    np.testing.assert_array_equal([v for v, _ in got], [v for v, _ in want])
    np.testing.assert_array_equal([g for _, g in got], [g for _, g in want])


@traced
def test_the_program_has_the_constants_of_the_model() -> None:
    """An epsilon of 1e-3 is the float32 next to it in the model, and in its program; nodes have 1e-3 itself."""
    model = net(layers.Reshape((2, 2)), layers.LayerNormalization(epsilon=1e-3), layers.Flatten(), layers.Dense(1))
    gamma, beta, weight, shift = (np.asarray(w, np.float64) for w in model.get_weights())
    steps = ENDS.reshape(2, 2, 2)
    centred = steps - steps.mean(axis=2, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(axis=2, keepdims=True) + np.float64(np.float32(1e-3)))
    want = (normal * gamma + beta).reshape(2, 4) @ weight + shift
    np.testing.assert_allclose(gig.import_model(model).predict(ENDS), want[:, 0], rtol=1e-14)


@traced
def test_precision_is_left_as_it_is() -> None:
    gig.explain(net(layers.EinsumDense("ab,bc->ac", 2), layers.Dense(1)), ENDS, STARTS)
    assert keras.config.floatx() == "float32"
    assert keras.backend.standardize_dtype((ops.zeros(2) * 0.5).dtype) == "float32"
    assert keras.backend.standardize_dtype(ops.convert_to_tensor(np.zeros(2, np.float32)).dtype) == "float32"


@traced
def test_constants_that_a_function_holds() -> None:
    """Tensors from outside of a function are read in float64 too."""
    held = ops.convert_to_tensor(np.random.default_rng(5).normal(size=(4, 40)).astype(np.float32))
    check_importer(net(layers.Lambda(lambda x: ops.sin(x @ held), output_shape=(40,)), layers.Dense(1)), data.numbers())


@pytest.mark.skipif(BACKEND != "tensorflow", reason="Keras has another backend than TensorFlow in this process")
def test_variables_that_keras_does_not_know_of_are_refused() -> None:
    import tensorflow as tf

    held = tf.Variable(np.float32(2.0))
    with pytest.raises(gig.UnsupportedModelError, match=r"not among its weights.*self.add_weight"):
        gig.import_model(net(layers.Lambda(lambda x: ops.sin(x) * held), layers.Dense(1)))


@pytest.mark.skipif(BACKEND != "tensorflow", reason="Keras runs lookups of labels on TensorFlow alone")
def test_labels_beside_a_function() -> None:
    job, branch = keras.Input((1,), name="job", dtype="string"), keras.Input((1,), name="branch", dtype="int64")
    steps = keras.Input((3, 1), name="paid")
    known = [
        layers.Embedding(4, 2)(layers.StringLookup(vocabulary=["clerk", "smith", "baker"])(job)),
        layers.Embedding(4, 2)(layers.IntegerLookup(vocabulary=[10, 20, 35])(branch)),
    ]
    joined = layers.Concatenate()([*map(layers.Flatten(), known), layers.LSTM(2)(steps)])
    model = keras.Model([job, branch, steps], layers.Dense(1, activation="sigmoid")(joined))
    rng = np.random.default_rng(6)
    table = pd.DataFrame({"job": rng.choice(["clerk", "smith"], 60), "branch": rng.choice([10, 20, 77], 60)})
    table[["paid_0", "paid_1", "paid_2"]] = data.numbers()[:60, :3]
    assert [label.split()[0] for label in functions(model)] == ["LSTM"]
    check_importer(model, table)


SAVED = """
import sys

import numpy as np

import gigrad as gig
import keras

layers = keras.layers
keras.utils.set_random_seed(5)
x = keras.Input((4,))
steps = layers.Bidirectional(layers.GRU(3, return_sequences=True))(layers.Reshape((2, 2))(x))
mixed = layers.Add()([steps, layers.MultiHeadAttention(2, 2)(steps, steps)])
waves = keras.ops.sin(layers.Conv1D(3, 2, activation="silu")(mixed))
model = keras.Model(x, layers.Dense(1, activation="sigmoid")(layers.Flatten()(waves)))
model.save(sys.argv[1] + "/net.keras")
ends, starts = np.load(sys.argv[1] + "/rows.npy")
np.save(sys.argv[1] + "/credits.npy", gig.explain_pairs(model, ends, starts, tol=1e-10).values)
"""


@on_torch
@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_a_file_is_explained_alike_on_every_backend(backend: str, tmp_path: Path) -> None:
    pytest.importorskip(backend, reason=f"{backend} is not installed, and the model here is saved on it")
    rows = np.random.default_rng(7).normal(size=(2, 6, 4))
    np.save(tmp_path / "rows.npy", rows)
    command, environment = [sys.executable, "-c", SAVED, str(tmp_path)], {**os.environ, "KERAS_BACKEND": backend}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    here = gig.explain_pairs(keras.saving.load_model(tmp_path / "net.keras"), *rows, tol=1e-10)
    np.testing.assert_allclose(np.load(tmp_path / "credits.npy"), here.values, atol=1e-9)


@on_torch
@pytest.mark.slow
@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_the_same_on_other_backends(backend: str) -> None:
    """All tests of this file again, in a process with that backend."""
    if find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed, and the backend is it")
    here = Path(__file__).resolve()
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", str(here)],
        env={**os.environ, "KERAS_BACKEND": backend}, capture_output=True, text=True, timeout=1800, check=False,
        cwd=here.parents[2],
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-3000:]
