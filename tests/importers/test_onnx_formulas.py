"""ONNX operators that read one column several times: what skl2onnx writes for steps that bend a column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer, QuantileTransformer
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import gigrad as gig
from gigrad.testing import check_importer

skl2onnx = pytest.importorskip("skl2onnx", reason="the converter is not installed")
ort = pytest.importorskip("onnxruntime", reason="nothing says what the files give")


@pytest.fixture(scope="module")
def table() -> Any:
    rng = np.random.default_rng(0)
    columns = [np.round(rng.normal(size=400), 1), rng.gamma(2.0, 2.0, 400) + 0.01, rng.integers(0, 4, 400) - 1.0]
    return np.stack(columns, axis=1).astype(np.float32)


@pytest.mark.parametrize("model", [Ridge(), GradientBoostingRegressor(n_estimators=5, random_state=0)])
@pytest.mark.parametrize(
    "step", [QuantileTransformer(n_quantiles=12), PowerTransformer(), PowerTransformer("box-cox", standardize=False)]
)
def test_steps_that_bend_several_columns(table: Any, step: Any, model: Any) -> None:
    """Ties in the ranks, zeros, numbers beyond those of the training rows: onnxruntime's answer at every one."""
    positive = getattr(step, "method", "") == "box-cox"
    given = np.abs(table) + np.float32(0.5) if positive else table
    fitted = make_pipeline(step, model).fit(given, given[:, 0] + np.log(np.abs(given[:, 1])))
    written = skl2onnx.to_onnx(fitted, given[:1])
    assert check_importer(written, given).largest_difference < 1e-9
    graph = gig.import_model(written)
    wide = np.concatenate([given, given * np.float32(1.7), np.nextafter(given, np.float32(9.0))])
    session = ort.InferenceSession(written.SerializeToString(), providers=["CPUExecutionProvider"])
    own = session.run(None, {session.get_inputs()[0].name: wide})[0][:, 0]
    np.testing.assert_allclose(graph.predict(wide.astype(np.float64)), own, rtol=2e-6, atol=2e-6)


def test_probabilities_of_two_classes(table: Any) -> None:
    """onnxruntime repeats libsvm's coupling, with its jumps."""
    labels = np.where(table[:, 0] + table[:, 2] > 0.2, "good", "bad")
    model = SVC(probability=True, random_state=0).fit(table, labels)
    written = skl2onnx.to_onnx(model, table[:1])
    graph = gig.import_model(written)
    assert graph.output_names == ("good",)
    np.testing.assert_allclose(graph.predict(table), model.predict_proba(table)[:, 1], rtol=0, atol=1e-5)


def test_probabilities_of_three_classes_are_refused(table: Any) -> None:
    model = SVC(probability=True, random_state=0).fit(table, np.digitize(table[:, 0], [-0.5, 0.5]))
    with pytest.raises(gig.UnsupportedModelError, match=r"probabilities of 3 classes.*CalibratedClassifierCV"):
        gig.import_model(skl2onnx.to_onnx(model, table[:1]))


def test_several_targets(table: Any) -> None:
    """ZipMap cannot be run for them; without it the targets are the first axis."""
    targets = np.stack([table[:, 0] > 0.0, np.digitize(table[:, 1], [2.0, 5.0])], axis=1).astype(int)
    model = RandomForestClassifier(n_estimators=3, max_depth=3, random_state=0).fit(table, targets)
    with pytest.raises(gig.CorruptModelError, match=r"rows and columns.*'zipmap': False"):
        gig.import_model(skl2onnx.to_onnx(model, table[:1]))
    graph = gig.import_model(skl2onnx.to_onnx(model, table[:1], options={id(model): {"zipmap": False}}))
    assert graph.output_names == ("0: 0", "0: 1", "0: 2", "1: 0", "1: 1", "1: 2")
    first, second = model.predict_proba(table)
    own = np.concatenate([first, np.zeros((len(table), 1)), second], axis=1)
    np.testing.assert_allclose(graph.predict(table), own, rtol=0, atol=1e-6)


def test_one_class_has_no_credits(table: Any) -> None:
    model = DecisionTreeClassifier().fit(table, np.zeros(len(table), int))
    e = gig.explain(skl2onnx.to_onnx(model, table[:1]), table[:5], table[5:9])
    assert np.array_equal(e.values, np.zeros((5, 3)))
    assert np.array_equal(e.predictions, np.ones(5))
