"""Model files: what is read, what is refused and why, and no harm from damaged ones."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import catboost
import joblib
import lightgbm
import numpy as np
import pytest
import xgboost
from skops import io

import gigrad as gig
from gigrad._io.modelfiles import load_model
from gigrad._io.modelfiles.ubj import read_ubj

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
Y = (X[:, 0] + X[:, 1] > 0).astype(int)


def xgboost_file(path: Path, **options: Any) -> Any:
    model = xgboost.XGBClassifier(n_estimators=4, max_depth=3, n_jobs=1, **options).fit(X, Y)
    model.save_model(path)
    return model


def lightgbm_file(path: Path, **options: Any) -> Any:
    model = lightgbm.LGBMClassifier(n_estimators=4, num_leaves=6, n_jobs=1, verbose=-1, **options).fit(X, Y)
    model.booster_.save_model(path)
    return model


def skops_file(path: Path) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    model = RandomForestClassifier(4, max_depth=3, random_state=0).fit(X, Y)
    io.dump(model, path)
    return model


def catboost_file(path: Path) -> Any:
    model = catboost.CatBoostClassifier(iterations=4, depth=3, thread_count=1, verbose=0, allow_writing_files=False)
    model.fit(X, Y).save_model(path, format=path.suffix[1:])
    return model


MAKERS = {
    "m.json": xgboost_file, "m.ubj": xgboost_file, "m.txt": lightgbm_file, "m.skops": skops_file,
    "m.cbm": catboost_file, "c.json": catboost_file,
}  # fmt: skip


@pytest.mark.parametrize("name", MAKERS)
def test_a_file_explains_as_the_model_that_wrote_it(name: str, tmp_path: Path) -> None:
    model = MAKERS[name](tmp_path / name)
    loaded = load_model(tmp_path / name)
    expected = gig.explain(model, X[:20], X[20:30], output="margin" if name != "m.skops" else None, n_threads=1)
    found = gig.explain(loaded, X[:20], X[20:30], output="margin" if name != "m.skops" else None, n_threads=1)
    digits = 1e-14 if name == "c.json" else 0.0  # CatBoost's JSON has one digit too few
    assert np.allclose(found.values, expected.values, rtol=digits, atol=digits)
    assert np.allclose(found.predictions, expected.predictions, rtol=digits, atol=digits)
    own = model.predict_proba(X[:20])[:, 1]
    probability = gig.import_model(loaded).predict(X[:20])
    assert np.allclose(probability, own, rtol=1e-6, atol=1e-7)


def test_an_early_stopped_wrapper_keeps_its_best_iteration(tmp_path: Path) -> None:
    noise = RNG.integers(0, 2, 200)
    model = xgboost.XGBClassifier(n_estimators=60, max_depth=6, n_jobs=1, early_stopping_rounds=2, learning_rate=0.9)
    model.fit(X, noise, eval_set=[(X[::-1], noise)], verbose=False)
    for name in ("m.json", "m.ubj"):
        model.save_model(tmp_path / name)
        found = gig.import_model(load_model(tmp_path / name)).predict(X)
        assert np.allclose(found, model.predict_proba(X)[:, 1], rtol=1e-5, atol=1e-6)
    assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds(), "all trees would not be the same"


def test_a_booster_stays_a_booster(tmp_path: Path) -> None:
    booster = xgboost.train({"objective": "binary:logistic", "nthread": 1}, xgboost.DMatrix(X, Y), 4)
    booster.save_model(tmp_path / "b.ubj")
    loaded = load_model(tmp_path / "b.ubj")
    assert type(loaded) is xgboost.Booster
    assert np.allclose(gig.import_model(loaded).predict(X), booster.predict(xgboost.DMatrix(X)), rtol=1e-6)


def test_ubj_is_read_as_xgboost_writes_json(tmp_path: Path) -> None:
    xgboost_file(tmp_path / "m.json")
    xgboost_file(tmp_path / "m.ubj")
    ubj, plain = read_ubj((tmp_path / "m.ubj").read_bytes()), json.loads((tmp_path / "m.json").read_text())
    trees = [m["learner"]["gradient_booster"]["model"]["trees"] for m in (ubj, plain)]
    for a, b in zip(*trees, strict=True):
        assert a["left_children"] == b["left_children"]
        assert np.array_equal(np.float32(a["split_conditions"]), np.float32(b["split_conditions"]))
        assert np.array_equal(np.float32(a["base_weights"]), np.float32(b["base_weights"]))


# ------------------------------------------------------------ refused


class Bomb:
    """What a hostile pickle does: run code when it is loaded."""

    def __reduce__(self) -> Any:
        return (pytest.fail, ("the pickle was loaded",))


@pytest.mark.parametrize("suffix", [".pkl", ".pickle", ".joblib", ".sav"])
def test_pickles_are_refused_with_the_reason_and_the_alternative(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"m{suffix}"
    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(gig.UnsupportedModelError, match=r"runs whatever code.*skops\.io\.dump.*--trust-pickle"):
        load_model(path)


def test_trusted_pickles_are_loaded(tmp_path: Path) -> None:
    model = skops_file(tmp_path / "m.skops")
    joblib.dump(model, tmp_path / "m.joblib")
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(model))
    for name in ("m.joblib", "m.pkl"):
        loaded = load_model(tmp_path / name, trust_pickle=True)
        assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    (tmp_path / "m.pkl").write_bytes(b"cut short")
    with pytest.raises(gig.CorruptModelError, match="cannot be unpickled"):
        load_model(tmp_path / "m.pkl", trust_pickle=True)


def test_types_that_skops_does_not_know_must_be_named(tmp_path: Path) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    model = make_pipeline(FunctionTransformer(np.tanh), LogisticRegression()).fit(X, Y)
    model.steps[0][1].note = Path  # something that nobody expects in a model
    io.dump(model, tmp_path / "m.skops")
    with pytest.raises(gig.UnsupportedModelError, match=r"does not know to be harmless: .*Path"):
        load_model(tmp_path / "m.skops")


def test_what_is_no_model_is_said(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    cases = {
        "m.pt": "weights of a torch module without its structure", "m.onnx": "must be an ONNX model",
        "m.docx": "ending that is not known",
        "m.txt": "begins with the line 'tree'", "a.json": "neither a model of XGBoost nor one of CatBoost",
        "b.json": "it is not JSON",
    }  # fmt: skip
    (tmp_path / "a.json").write_text('{"format": "gigrad-ecdf-1"}')
    for name, message in cases.items():
        if name != "a.json":
            (tmp_path / name).write_text("hello")
        with pytest.raises(gig.GigradError, match=message):
            load_model(tmp_path / name)
    with pytest.raises(gig.InputError, match="does not exist"):
        load_model(tmp_path / "none.json")
    with pytest.raises(gig.InputError, match="is a folder"):
        load_model(tmp_path)


# ------------------------------------------------------------ damaged


def damaged(rng: np.random.Generator, data: bytes) -> bytes:
    out = bytearray(data)
    kind = rng.integers(3)
    if kind == 0:
        return bytes(out[: int(rng.integers(len(out)))])
    if kind == 1:
        for _ in range(int(rng.integers(1, 9))):
            out[int(rng.integers(len(out)))] ^= 1 << int(rng.integers(8))
    else:
        at, size = int(rng.integers(len(out))), int(rng.integers(1, 16))
        out[at : at + size] = rng.bytes(size)
    return bytes(out)


@pytest.mark.parametrize("name", [n for n in MAKERS if n != "m.json"])
def test_damaged_files_crash_nothing(name: str, tmp_path: Path) -> None:
    """LightGBM's own reader crashes the process on nearly half of these, XGBoost's on one in seven."""
    MAKERS[name](tmp_path / name)
    data = (tmp_path / name).read_bytes()
    rng = np.random.default_rng(1)
    refused = 0
    for _ in range(100):
        (tmp_path / name).write_bytes(damaged(rng, data))
        try:
            graph = gig.import_model(load_model(tmp_path / name))
            assert graph.predict(np.zeros((2, len(graph.columns)))).shape == (2,)
        except gig.GigradError:
            refused += 1
    assert refused > 30


def number_at(document: Any, rng: np.random.Generator) -> None:
    """Change one number somewhere in a JSON document."""
    while True:
        keys = list(document) if isinstance(document, dict) else list(range(len(document)))
        key = keys[int(rng.integers(len(keys)))]
        if isinstance(document[key], (dict, list)) and document[key]:
            document = document[key]
            continue
        document[key] = [0, -1, 1, 7, 10**6, 1e300, None, "x", [], {}][int(rng.integers(10))]
        return


def test_wrong_numbers_in_a_whole_json_file_crash_nothing(tmp_path: Path) -> None:
    xgboost_file(tmp_path / "m.json")
    text = (tmp_path / "m.json").read_text()
    rng = np.random.default_rng(2)
    refused = 0
    for _ in range(60):
        document = json.loads(text)
        number_at(document, rng)
        (tmp_path / "m.json").write_text(json.dumps(document))
        try:
            gig.import_model(load_model(tmp_path / "m.json")).predict(np.zeros((2, 4)))
        except gig.GigradError:
            refused += 1
    assert 0 < refused < 60, "some changes must matter, and some must not"
