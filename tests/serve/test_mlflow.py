"""Explainers in a real MLflow, on a store of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from served import applicants, saved_explainer

import gigrad as gig

mlflow = pytest.importorskip("mlflow", reason="the extra mlflow is not installed")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store: SQLite for what is known (which takes MLflow seconds to set up), a folder for what is stored."""
    place = tmp_path_factory.mktemp("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{place}/mlflow.db")
    mlflow.set_registry_uri(f"sqlite:///{place}/mlflow.db")
    mlflow.set_experiment(experiment_id=mlflow.create_experiment("loans", artifact_location=str(place / "store")))
    return place


@pytest.fixture(autouse=True)
def no_open_run() -> Iterator[None]:
    yield
    mlflow.end_run()


def test_an_explainer_comes_back_the_same(store: Path) -> None:
    from gigrad.mlflow import load_explainer, log_explainer

    explainer = saved_explainer(store / "x.gig")
    X = applicants(12, seed=2)
    before = explainer(X)
    info = log_explainer(explainer, registered_model_name="loans", metadata={"owner": "risk"})
    for uri in (info.model_uri, "models:/loans/1"):
        after = load_explainer(uri, n_threads=1)(X)
        for part in ("values", "base_values", "predictions", "gap", "error"):
            np.testing.assert_array_equal(getattr(after, part), getattr(before, part))
    assert info.metadata["owner"] == "risk"
    assert info.metadata["output_fingerprint"] == explainer.provenance["output"]["fingerprint"]
    assert not [p for p in (store / "store").rglob("*") if p.suffix in (".pkl", ".pickle", ".joblib")]


def test_mlflow_itself_scores_its_example_by_its_signature(store: Path) -> None:
    from gigrad.mlflow import log_explainer

    explainer = saved_explainer(store / "x.gig")
    info = log_explainer(explainer)
    scored = mlflow.pyfunc.load_model(info.model_uri)
    example = scored.input_example
    assert list(example.columns) == list(explainer.reference.names)
    assert [str(c.type) for c in info.signature.inputs] == ["DataType.double"] * 4 + ["DataType.string"] * 2
    told = scored.predict(example)
    assert list(told.columns) == [c.name for c in info.signature.outputs]
    mine = explainer(example)
    for j, name in enumerate(mine.feature_names):
        assert told[f"credit_{name}"].tolist() == mine.values[:, j].tolist()
    with pytest.raises(Exception, match="age"):  # MLflow holds tables to the signature
        scored.predict(example.drop(columns="age"))


def test_the_callers_own_example_gives_the_types(store: Path) -> None:
    from gigrad.mlflow import log_explainer

    explainer = saved_explainer(store / "x.gig")
    X = applicants(6, seed=4).dropna().astype({"purpose": str, "home": str})
    info = log_explainer(explainer, "own", example=X)
    kinds = [str(c.type).removeprefix("DataType.") for c in info.signature.inputs]
    assert kinds == ["double", "long", "long", "boolean", "string", "string"]
    told = mlflow.pyfunc.load_model(info.model_uri).predict(X)
    assert told["credit_age"].tolist() == explainer(X).values[:, 1].tolist()
    with pytest.raises(gig.errors.InputError, match="'age' is missing"):
        log_explainer(explainer, "none", example=X.drop(columns="age"))


def test_another_model_is_not_loaded(store: Path) -> None:
    from gigrad.mlflow import load_explainer

    model: Any = mlflow.pyfunc.PythonModel

    class Other(model):
        def predict(self, context: Any, model_input: pd.DataFrame, params: Any = None) -> Any:
            return model_input

    info = mlflow.pyfunc.log_model(name="other", python_model=Other(), pip_requirements=["pandas"])
    with pytest.raises(gig.errors.InputError, match="must name an explainer that log_explainer stored"):
        load_explainer(info.model_uri)


def test_what_cannot_be_portable_cannot_be_logged(store: Path) -> None:
    from gigrad.mlflow import log_explainer

    X = np.arange(20.0).reshape(10, 2)
    only = gig.function(lambda x: x[:, 0] * x[:, 1], lambda x: x[:, ::-1], ["a", "b"])
    with pytest.raises(gig.errors.GigradError, match="cannot be saved"):
        log_explainer(gig.Explainer(only, X))
