"""Keras models: what is read, from objects and files, and what is refused."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conformance import data
from conformance.rows_keras import KNOWN, columns_by_name

import gigrad as gig
from gigrad._io.modelfiles import load_model
from gigrad._io.modelfiles.keras_archive import load_keras

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras", reason="Keras is not installed, and all models here are of it")
h5py = pytest.importorskip("h5py", reason="h5py is not installed, which reads the weights of .keras files")
layers = keras.layers


def net() -> Any:
    keras.utils.set_random_seed(1)
    return keras.Sequential([keras.Input((4,)), layers.Dense(3, activation="relu"), layers.Dense(1)])


ON_TENSORFLOW = """
from conformance.rows_keras import ROWS
from gigrad.testing import check_importer

for row in ROWS:
    check_importer(*row.build())
"""


def test_models_of_the_tensorflow_backend_are_read() -> None:
    """All rows of the table, in a process of its own: Keras has one backend a process."""
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed, and the models here are of it")
    tests = str(Path(__file__).parents[1])
    path = os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow", "PYTHONPATH": path}
    command = [sys.executable, "-c", ON_TENSORFLOW]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


FROM_FILES = [row for row in KNOWN if row.model == "Functional" or "Normalization" in row.options]


@pytest.mark.parametrize("row", FROM_FILES, ids=lambda row: row.name)
def test_a_file_is_the_model_that_wrote_it(row: Any, tmp_path: Path) -> None:
    model, X = row.build()
    model.save(tmp_path / "net.keras")
    graph, own = load_model(tmp_path / "net.keras"), gig.import_model(model)
    assert graph.columns == own.columns
    assert graph.output_names == own.output_names
    np.testing.assert_array_equal(graph.predict(X), own.predict(X))


def test_a_file_is_read_without_keras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    net().save(tmp_path / "net.keras")
    monkeypatch.setitem(sys.modules, "keras", None)
    graph = load_keras(tmp_path / "net.keras")
    graph.save(tmp_path / "net.gig")
    again = gig.Graph.load(tmp_path / "net.gig")
    np.testing.assert_array_equal(again.predict(data.numbers()), graph.predict(data.numbers()))


def test_columns_are_known_by_name_and_codes_are_categories() -> None:
    model, table = columns_by_name()
    explained = gig.explain(model, table[["count", "grade", "job", "amount"]].head(3), table.tail(20))
    assert explained.feature_names == ("amount", "job", "grade", "count")
    assert np.abs(explained.gap).max() < 1e-6
    with pytest.raises(gig.InputError, match=r"'job'; 6.0 is not one of its"):
        gig.explain(model, table.head(3).assign(job=6.0), table.tail(20))


def test_an_ensemble_of_trees_under_a_keras_head() -> None:
    """The paper's ensembles: trees whose scores a Keras net reads."""
    from sklearn.ensemble import GradientBoostingRegressor

    X, y = data.numbers(), data.target()
    trees = [GradientBoostingRegressor(n_estimators=3, max_depth=2, random_state=i).fit(X, y) for i in (0, 1)]
    keras.utils.set_random_seed(2)
    head = keras.Sequential([keras.Input((2,)), layers.Dense(3, activation="tanh"), layers.Dense(1)])
    explained = gig.explain(gig.stack(trees, head=head), X[:5], X[5:15])
    own = head.predict(np.stack([t.predict(X[:5]) for t in trees], axis=1), verbose=0)[:, 0]
    np.testing.assert_allclose(explained.predictions, own, rtol=1e-6)
    assert np.abs(explained.gap).max() < 1e-6


# ------------------------------------------------------------ refused


def with_layers(*made: Any, **options: Any) -> Any:
    return keras.Sequential([keras.Input((4,), **options), *made])


def quantised(*made: Any) -> Any:
    model = with_layers(*made)
    model.quantize("int8")
    return model


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "half precision": (lambda: with_layers(layers.Dense(2, dtype="mixed_float16")), "computes in mixed_float16"),
    "8 bits": (lambda: quantised(layers.Dense(2)), "is quantised: it rounds numbers"),
    "8 bits in other layers": (lambda: quantised(layers.EinsumDense("ab,bc->ac", 2)), "is quantised: it rounds"),
    "a jump": (lambda: with_layers(layers.ReLU(threshold=0.5)), "at which it jumps"),
    "bins of a score": (
        lambda: with_layers(layers.Dense(1), layers.Discretization([0.0], output_mode="one_hot")), "must read columns",
    ),
    "codes of a score": (lambda: with_layers(layers.Dense(1), layers.Embedding(3, 2)), "another layer computes them"),
    "multi_hot of several": (lambda: with_layers(layers.CategoryEncoding(3), dtype="int32"), "each column by itself"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_exact_is_refused_by_name(what: str) -> None:
    make, said = REFUSED[what]
    with pytest.raises(gig.UnsupportedModelError, match=said):
        gig.import_model(make())


IN_FILES: dict[str, tuple[Callable[[], Any], str]] = {
    "Lambda": (lambda: with_layers(layers.Lambda(lambda x: x * 2)), "is a Lambda, which is not read"),
    "a layer of sequences": (lambda: with_layers(layers.Reshape((2, 2)), layers.LSTM(2)), "is a LSTM"),
    "dense over a matrix": (lambda: with_layers(layers.Reshape((2, 2)), layers.Dense(2)), "reads the shape \\(2, 2\\)"),
    "an unknown activation": (lambda: with_layers(layers.Dense(2, activation="sparse_sigmoid")), "sparse_sigmoid"),
    "an operation": (lambda: keras.Model(x := keras.Input((4,)), x * 2.0), "is not imported"),
}  # fmt: skip


@pytest.mark.parametrize("what", IN_FILES)
def test_what_needs_keras_is_refused_in_files(what: str, tmp_path: Path) -> None:
    make, said = IN_FILES[what]
    make().save(tmp_path / "net.keras")
    with pytest.raises(gig.UnsupportedModelError, match=f"{said}.*load the model with keras.*hand over the object"):
        load_keras(tmp_path / "net.keras")


def test_a_model_without_weights_is_not_fitted() -> None:
    with pytest.raises(gig.NotFittedError, match="no weights yet"):
        gig.import_model(keras.Sequential([layers.Dense(2)]))


# ------------------------------------------------------------ damaged and hostile files


def parts(tmp_path: Path) -> dict[str, bytes]:
    net().save(tmp_path / "good.keras")
    with zipfile.ZipFile(tmp_path / "good.keras") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def changed_config(found: dict[str, bytes], change: Callable[[Any], None]) -> dict[str, bytes]:
    config = json.loads(found["config.json"])
    change(config)
    return {**found, "config.json": json.dumps(config).encode()}


def changed_weights(found: dict[str, bytes], change: Callable[[Any], None]) -> dict[str, bytes]:
    held = io.BytesIO(found["model.weights.h5"])
    with h5py.File(held, "a") as file:
        change(file)
    return {**found, "model.weights.h5": held.getvalue()}


FIRST = "layers/dense/vars"


def link_elsewhere(file: Any) -> None:
    del file[f"{FIRST}/0"]
    file[f"{FIRST}/0"] = h5py.ExternalLink("/etc/hostname", "/")


def unfold(file: Any) -> None:
    del file[f"{FIRST}/0"]
    file[FIRST].create_dataset("0", shape=(1 << 20, 1 << 12), chunks=(1 << 10, 1 << 10), compression="gzip", dtype="f4")


def no_number(file: Any) -> None:
    file[f"{FIRST}/0"][0, 0] = np.nan


def replaced(file: Any, data: Any) -> None:
    del file[f"{FIRST}/0"]
    file[f"{FIRST}/0"] = data


HOSTILE: dict[str, tuple[Callable[[dict[str, bytes]], dict[str, bytes]], str]] = {
    "no weights": (lambda f: {"config.json": f["config.json"]}, "must be a zip with config.json and"),
    "no JSON": (lambda f: {**f, "config.json": b"{"}, "must hold the configuration"),
    "a list": (lambda f: {**f, "config.json": b"[]"}, "must hold the configuration"),
    "deep JSON": (lambda f: {**f, "config.json": b"[" * 200_000}, "must hold the configuration"),
    "cut weights": (lambda f: {**f, "model.weights.h5": f["model.weights.h5"][:700]}, "cannot be read"),
    "a link to elsewhere": (lambda f: changed_weights(f, link_elsewhere), "links elsewhere"),
    "a bomb": (lambda f: changed_weights(f, unfold), "must not decompress"),
    "not a number": (lambda f: changed_weights(f, no_number), "finite weights"),
    "another shape": (lambda f: changed_weights(f, lambda h: replaced(h, np.ones((2, 2)))), "weights of shape"),
    "text": (lambda f: changed_weights(f, lambda h: replaced(h, b"text")), "plain arrays"),
    "a layer that reads nothing": (
        lambda f: changed_config(f, lambda c: c["config"]["layers"][1].update(config={})), "'name'",
    ),
    "another layer's weights": (
        lambda f: changed_config(f, lambda c: c["config"]["layers"][1]["config"].update(name="d7")),
        "order of its layers",
    ),
    "a huge input": (
        lambda f: changed_config(f, lambda c: c["config"]["layers"][0]["config"].update(batch_shape=[None, 1 << 40])),
        "must be rows of numbers",
    ),
    "a layer of someone's": (
        lambda f: changed_config(f, lambda c: c["config"]["layers"][1].update(module="os")),
        "os.Dense, which is not one of Keras's own",
    ),
    "hashed labels": (
        lambda f: changed_config(f, lambda c: c["config"]["layers"][2].update(class_name="Hashing")),
        "use StringLookup or IntegerLookup",
    ),
    "a model of someone's": (lambda f: changed_config(f, lambda c: c.update(module="mine")), "holds a mine.Sequential"),
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_is_a_clear_error(what: str, tmp_path: Path) -> None:
    change, said = HOSTILE[what]
    with zipfile.ZipFile(tmp_path / "bad.keras", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in change(parts(tmp_path)).items():
            archive.writestr(name, content)
    with pytest.raises((gig.CorruptModelError, gig.UnsupportedModelError), match=said):
        load_keras(tmp_path / "bad.keras")


def test_a_file_that_is_no_zip(tmp_path: Path) -> None:
    (tmp_path / "bad.keras").write_bytes(b"PK but not a zip")
    with pytest.raises(gig.CorruptModelError, match="must be a zip"):
        load_keras(tmp_path / "bad.keras")
