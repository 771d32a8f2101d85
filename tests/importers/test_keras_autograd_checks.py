"""Keras layers without nodes: what is refused or warned about, and when a model counts as another one."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keras_nets import BACKEND, ENDS, RNG, STARTS, base_layer, base_model, keras, layers, net, on_torch, ops, torch

import gigrad as gig
from gigrad._io.modelfiles.keras_archive import load_keras


@pytest.fixture(autouse=True)
def seeded() -> None:
    keras.utils.set_random_seed(3)


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
        "keeps its state from one call to the next",
    ),
    "a mask of numbers": (
        lambda: net(layers.Reshape((2, 2)), layers.Masking(), layers.LSTM(2)), "equal a number exactly, a jump",
    ),
    "codes that do not begin with 0": (
        lambda: net(layers.Lambda(lambda x: ops.take(ops.ones((3, 2)), ops.cast(x[:, 0], "int32") + 7, axis=0))),
        "must take a row of zeros",
    ),
    "an unknown number of columns": (lambda: two_inputs(), "The number of columns of a Two cannot be inferred"),
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
