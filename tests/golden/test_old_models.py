"""Models that older releases of their libraries saved, read with the installed ones: files of 2022 are still in use.

The files of models/ were written by the releases in their names (make_models.sh), and predictions/ has what these said
about rows.csv.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gigrad as gig
from gigrad._io.modelfiles import _kind, _load_xgboost, load_model

HERE = Path(__file__).parent / "models"
PREDICTED = {
    name: numbers
    for path in sorted(HERE.glob("predictions/*.json"))
    for name, numbers in json.loads(path.read_text())["predicted"].items()
}
FLOAT32 = 2.0**-22  # two units of float32 at 1: XGBoost adds and links in it, each release in its own order
TOLERANCE = {"xgboost": FLOAT32, "lightgbm": 1e-14, "catboost": 1e-14, "sklearn": 1e-12}


def newer(release: str, installed: str) -> bool:
    """Whether a file's release is newer than what is installed; nobody promises to read such a file."""
    return [int(v) for v in release.split(".")] > [int(v) for v in installed.split(".")[:3]]


def read(path: Path) -> Any:
    """As users read it for models with categories; the others without the child process, which takes a second each."""
    rehearsed = "categories" in path.name or path.suffix == ".skops"
    return load_model(path) if rehearsed else _kind(path, ()).load(path)


def rows_for(name: str) -> Any:
    rows = np.genfromtxt(HERE / "rows.csv", delimiter=",", skip_header=1)
    if name.startswith("catboost") and "categories" in name:
        rows = rows.astype(object)
        rows[:, 4] = [str(int(v)) for v in rows[:, 4]]
    return rows


def test_every_file_has_its_predictions() -> None:
    files = {p.name for p in HERE.iterdir() if p.is_file()} - {"rows.csv"}
    assert files == set(PREDICTED)


@pytest.mark.parametrize("name", PREDICTED)
def test_a_model_of_an_older_release_scores_as_it_did_or_is_refused(name: str) -> None:
    library, release, *_ = name.split("-")
    pytest.importorskip({"sklearn": "skops"}.get(library, library))
    if newer(release, importlib.import_module(library).__version__):
        pytest.skip(f"the installed {library} is older than the file")
    rows, before = rows_for(name), np.array(PREDICTED[name])
    refusals = (gig.UnsupportedModelError, gig.CorruptModelError) if library == "sklearn" else ()
    try:
        model = read(HERE / name)
    except refusals:  # scikit-learn promises nothing between versions: never another score
        return
    e = gig.explain(model, rows, rows[:8], n_threads=1)
    scale = max(1.0, float(np.abs(before).max()))
    np.testing.assert_allclose(e.predictions, before, rtol=0, atol=TOLERANCE[library] * scale)
    np.testing.assert_allclose(e.base_values, before[:8].mean(), rtol=0, atol=TOLERANCE[library] * scale)
    # Fills of missing values are integrated numerically: their gap is within `error`, which is within tol.
    assert (np.abs(e.gap) <= e.error + TOLERANCE[library] * scale).all()
    assert e.error.max() <= 1e-6 * scale


@pytest.mark.parametrize("ending", [".json", ".ubj"])
def test_a_file_that_a_newer_xgboost_saved_is_refused(ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """XGBoost 2.0 reads a file of 3.1 without a word, and scores 0.44 too high: it loses the base score."""
    xgboost = pytest.importorskip("xgboost")
    path = HERE / f"xgboost-3.1.3-binary{ending}"
    monkeypatch.setattr(xgboost, "__version__", "3.0.5")
    with pytest.raises(gig.UnsupportedModelError, match=r"it was saved by 3\.1\.3\. Install xgboost>=3\.1\.3"):
        _load_xgboost(path)
    monkeypatch.setattr(xgboost, "__version__", "3.1.0")
    _load_xgboost(path)
