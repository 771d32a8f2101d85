"""Keras layers without nodes on TensorFlow and JAX, where they are traced into programs in float64.

The tests that start other processes run on torch, and need the other backends to be installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conformance import data
from keras_nets import BACKEND, ENDS, STARTS, functions, keras, layers, net, on_torch, ops, traced

import gigrad as gig
from gigrad.graph import Opaque, topological
from gigrad.testing import check_importer


@pytest.fixture(autouse=True)
def seeded() -> None:
    keras.utils.set_random_seed(3)


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
    """All tests of layers without nodes again, in a process with that backend."""
    if find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed, and the backend is it")
    here = Path(__file__).resolve().parent
    files = sorted(map(str, here.glob("test_keras_autograd*.py")))
    assert len(files) == 3
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *files],
        env={**os.environ, "KERAS_BACKEND": backend}, capture_output=True, text=True, timeout=1800, check=False,
        cwd=here.parents[1],
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-3000:]
