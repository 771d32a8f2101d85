"""Keras models that read labels: from files everywhere, from objects where TensorFlow is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conformance.rows_keras import ROWS
from keras_lookups import FILES, MODELS, build, table

import gigrad as gig
from gigrad._io.modelfiles import load_model
from gigrad._io.tables import read_rows
from gigrad.testing import brute_force, check_importer

pytest.importorskip("h5py", reason="h5py is not installed, which reads the weights of .keras files")

ON_TENSORFLOW = os.environ.get("KERAS_BACKEND") == "tensorflow" and find_spec("tensorflow") is not None
needs_tensorflow = pytest.mark.skipif(
    not ON_TENSORFLOW, reason="Keras runs lookups on TensorFlow alone; another test starts a process with that backend"
)


@pytest.mark.parametrize("name", MODELS)
def test_a_file_gives_what_the_model_gave(name: str) -> None:
    graph = load_model(FILES / f"lookups_{name}.keras")
    expected = json.loads((FILES / f"lookups_{name}.json").read_text())
    np.testing.assert_allclose(graph.predict(table()), expected, rtol=1e-6, atol=1e-7)
    assert [c.kind for c in graph.columns] == ["category", "category", "number"]
    rows = read_rows(table(), graph, what="X").matrix
    for start, end in ((0, 7), (3, 30), (11, 42), (25, 59)):
        credit = gig.explain_pairs(graph, table().iloc[[start]], table().iloc[[end]]).values[0]
        np.testing.assert_allclose(credit, brute_force(graph, rows[start], rows[end])[:, 0], atol=1e-9)


def test_labels_are_those_that_the_lookups_know() -> None:
    graph = load_model(FILES / "lookups_given.keras")
    assert graph.columns[0].labels == ("clerk", "smith", "café", "baker")
    assert graph.columns[1].labels == (10, 20, 35)
    X = table().head(2).assign(job=["never seen", "another"], branch=[1, 2], amount=0.5)
    assert len(set(graph.predict(X).tolist())) == 1  # all labels that it does not know are one
    start, end = X.head(1), X.head(1).assign(job="clerk")
    credit = gig.explain_pairs(graph, start, end).values[0]
    np.testing.assert_allclose(credit, [*(graph.predict(end) - graph.predict(start)), 0.0, 0.0], atol=1e-12)


def test_a_file_joins_the_portable_ones(tmp_path: Path) -> None:
    graph = load_model(FILES / "lookups_adapted.keras")
    graph.save(tmp_path / "net.gig")
    np.testing.assert_array_equal(gig.Graph.load(tmp_path / "net.gig").predict(table()), graph.predict(table()))


Members = dict[str, bytes]


def lookup_of(members: Members, change: Callable[[Any], None]) -> Members:
    config = json.loads(members["config.json"])
    for layer in config["config"]["layers"]:
        if layer["class_name"] == "StringLookup":
            change(layer["config"])
    return {**members, "config.json": json.dumps(config).encode()}


ASSET = "assets/layers/integer_lookup/vocabulary.txt"
HOSTILE: dict[str, tuple[str, Callable[[Members], Members], str]] = {
    "no text": ("adapted", lambda m: {**m, ASSET: b"\xff\xfe"}, "must be whole numbers, one a line"),
    "no vocabulary": ("adapted", lambda m: {k: v for k, v in m.items() if k != ASSET}, "has no vocabulary"),
    "too many labels": ("given", lambda m: lookup_of(m, lambda c: c.update(vocabulary=list("abcdefghij"))), "fewer"),
    "a label twice": ("given", lambda m: lookup_of(m, lambda c: c.update(vocabulary=["a", "a"])), "each of them once"),
    "numbers for texts": ("given", lambda m: lookup_of(m, lambda c: c.update(vocabulary=[1, 2])), "must have texts"),
    "several unknown": ("given", lambda m: lookup_of(m, lambda c: c.update(num_oov_indices=3)), "num_oov_indices"),
    "inverted": ("given", lambda m: lookup_of(m, lambda c: c.update(invert=True)), "invert=False"),
    "no list": ("given", lambda m: lookup_of(m, lambda c: c.update(vocabulary="abc")), "has no vocabulary"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_is_a_clear_error(what: str, tmp_path: Path) -> None:
    name, change, said = HOSTILE[what]
    with zipfile.ZipFile(FILES / f"lookups_{name}.keras") as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    with zipfile.ZipFile(tmp_path / "bad.keras", "w") as archive:
        for n, content in change(members).items():
            archive.writestr(n, content)
    with pytest.raises((gig.CorruptModelError, gig.UnsupportedModelError), match=said):
        load_model(tmp_path / "bad.keras")


@needs_tensorflow
@pytest.mark.parametrize("name", MODELS)
def test_objects_are_read_as_their_files_are(name: str, tmp_path: Path) -> None:
    model = build(name)
    check_importer(model, table())
    model.save(tmp_path / "net.keras")
    np.testing.assert_array_equal(
        load_model(tmp_path / "net.keras").predict(table()), gig.import_model(model).predict(table())
    )


@needs_tensorflow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row_of_the_conformance_table(row: Any) -> None:
    check_importer(*row.build())


@pytest.mark.slow
@pytest.mark.skipif(find_spec("tensorflow") is None, reason="TensorFlow is not installed, and the backend is it")
@pytest.mark.skipif(ON_TENSORFLOW, reason="this process has that backend already")
def test_keras_on_tensorflow() -> None:
    """All tests of this file again, in a process whose backend is TensorFlow."""
    here = Path(__file__).resolve()
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(here)],
        env={**os.environ, "KERAS_BACKEND": "tensorflow"}, capture_output=True, text=True, timeout=1800, check=False,
        cwd=here.parents[2],
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-3000:]
