"""The Open Inference Protocol: every message fits the specification's objects, and the numbers are the library's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import kserve_schema as schema
import numpy as np
import pytest
from served import Server, applicants, as_records, saved_explainer, server

import gigrad as gig

pytest.importorskip("uvicorn", reason="the extra serve is not installed")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kserve") / "loans.gig"


@pytest.fixture(scope="module")
def explainer(place: Path) -> gig.Explainer:
    return saved_explainer(place)


@pytest.fixture(scope="module")
def running(place: Path, explainer: gig.Explainer) -> Iterator[Server]:
    with server(place, "--max-rows", "8") as one:
        yield one


KINDS = {"amount": "FP64", "age": "INT64", "late": "INT32", "owns_car": "BOOL", "purpose": "BYTES", "home": "BYTES"}


def request(rows: int = 5, seed: int = 3, **more: Any) -> dict[str, Any]:
    records = as_records(applicants(rows, seed))
    inputs = [
        {"name": name, "shape": [rows], "datatype": kind, "data": [r[name] for r in records]}
        for name, kind in KINDS.items()
    ]
    return {"inputs": inputs, **more}


def test_health_and_metadata_fit_the_specification(running: Server, explainer: gig.Explainer) -> None:
    version = explainer.provenance["output"]["fingerprint"][:12]
    for path, fits in {
        "/v2": schema.SERVER_METADATA,
        "/v2/health/live": schema.LIVE,
        "/v2/health/ready": schema.LIVE,
        "/v2/models/loans": schema.MODEL_METADATA,
        f"/v2/models/loans/versions/{version}": schema.MODEL_METADATA,
        "/v2/models/loans/ready": schema.MODEL_READY,
        f"/v2/models/loans/versions/{version}/ready": schema.MODEL_READY,
    }.items():
        status, told = running.ask("GET", path)
        assert status == 200, path
        jsonschema.validate(told, fits)
    told = running.ask("GET", "/v2/models/loans")[1]
    assert told["versions"] == [version]
    assert {t["name"]: t["datatype"] for t in told["inputs"]} == {
        n: "BYTES" if k == "BYTES" else "FP64" for n, k in KINDS.items()
    }
    assert {t["name"]: t["shape"] for t in told["outputs"]}["credits"] == [-1, 6]


@pytest.mark.parametrize("column", [False, True])
def test_inference_gives_the_numbers_of_the_library(running: Server, explainer: gig.Explainer, column: bool) -> None:
    asked = request(id="42", parameters={"why": "not"})
    if column:  # the same as tensors of one column
        asked["inputs"] = [i | {"shape": [5, 1], "data": [[v] for v in i["data"]]} for i in asked["inputs"]]
    jsonschema.validate(asked, schema.REQUEST)
    status, told = running.ask("POST", "/v2/models/loans/infer", asked)
    assert status == 200
    jsonschema.validate(told, schema.RESPONSE)
    assert (told["id"], told["model_name"]) == ("42", "loans")
    ones = [explainer.one(record) for record in as_records(applicants(5, 3))]
    found = {t["name"]: np.array(t["data"]).reshape(t["shape"]) for t in told["outputs"]}
    assert list(found) == ["prediction", "base", "credits", "gap", "error"]
    np.testing.assert_array_equal(found["credits"], np.concatenate([e.values for e in ones]))
    np.testing.assert_array_equal(found["prediction"], np.concatenate([e.predictions for e in ones]))
    np.testing.assert_array_equal(found["base"], np.concatenate([e.base_values for e in ones]))


def test_only_the_outputs_that_are_asked_for(running: Server) -> None:
    asked = request(outputs=[{"name": "credits"}])
    jsonschema.validate(asked, schema.REQUEST)
    told = running.ask("POST", "/v2/models/loans/infer", asked)[1]
    jsonschema.validate(told, schema.RESPONSE)
    assert [t["name"] for t in told["outputs"]] == ["credits"]
    assert "id" not in told


def changed(which: str, **change: Any) -> dict[str, Any]:
    asked = request()
    asked["inputs"] = [i | change if i["name"] == which else i for i in asked["inputs"]]
    return asked


@pytest.mark.parametrize(
    ("asked", "status", "said"),
    [
        ({}, 400, '"inputs", a list of tensors'),
        ([], 400, '"inputs", a list of tensors'),
        (request(id=7), 400, "id must be a text"),
        (request(outputs=[{"name": "shap"}]), 400, "outputs must be among"),
        (changed("age", datatype="INT128"), 400, "must be one of BOOL"),
        (changed("age", datatype=["INT64"]), 400, "must be one of BOOL"),
        (changed("age", shape=[5, 2]), 400, r"must be [n] or [n, 1]"),
        (changed("age", shape=[]), 400, r"must be [n] or [n, 1]"),
        (changed("age", shape=[7]), 400, "must have the 7 values that its shape says; got 5"),
        (changed("age", data=[1, 2, 3, 4, "5"]), 400, "must be INT64 or null; got '5'"),
        (changed("age", data=[1, 2, 3, 4, True]), 400, "must be INT64 or null; got True"),
        (changed("owns_car", data=[1, 0, 1, 0, 1]), 400, "must be BOOL or null; got 1"),
        (changed("age", data=7), 400, "must be a list"),
        (changed("age", shape=[1], data=[3]), 400, "tensors of one length"),
        (changed("age", name="aeg"), 422, "'age' is not there"),
        (changed("age", name="late"), 400, "name each tensor once"),
        (changed("home", data=["own", "rent", "tent", "own", "own"]), 422, "Record 2: .*'tent' is not one of"),
        (request(rows=9), 413, "A request may have 8 records; got 9"),
    ],
)  # fmt: skip
def test_refusals_fit_the_specification_too(running: Server, asked: Any, status: int, said: str) -> None:
    got, told = running.ask("POST", "/v2/models/loans/infer", asked)
    jsonschema.validate(told, schema.ERROR)
    assert got == status
    assert re.search(said, told["error"]) or said in told["error"]
