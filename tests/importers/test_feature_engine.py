"""Steps of feature-engine: what only trees can follow, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conformance.rows_feature_engine import LABELS, complete, target
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from unchecked import unchecked

import gigrad as gig
from gigrad._io.tables import read_rows
from gigrad.testing import brute_force, check_importer

pytest.importorskip("feature_engine", reason="feature-engine is not installed, and all steps here are of it")
from feature_engine import creation, discretisation, encoding, imputation, outliers, transformation, wrappers

pytestmark = pytest.mark.filterwarnings("ignore")
LABELLED = encoding.OrdinalEncoder(variables=["purpose"])


def fitted(*steps: Any, trees: bool = True) -> Any:
    last = GradientBoostingClassifier(n_estimators=4, random_state=0) if trees else LogisticRegression()
    return make_pipeline(*steps, last).fit(complete(), target())


@pytest.mark.parametrize(
    "step",
    [
        transformation.ReciprocalTransformer(variables=["income", "share"]),
        transformation.ArcsinTransformer(variables=["share"]),
        transformation.PowerTransformer(variables=["income", "share"], exp=-1.5),
    ],
    ids=lambda step: type(step).__name__,
)
def test_functions_with_bounds_are_followed_by_trees_alone(step: Any) -> None:
    model, X = fitted(LABELLED, step), complete()
    graph = gig.import_model(model)
    rows = read_rows(X, graph, what="X").matrix
    np.testing.assert_allclose(graph.predict(X), model.predict_proba(X)[:, 1], rtol=1e-12)
    for start, end in ((0, 5), (17, 60), (33, 101)):
        explained = gig.explain_pairs(model, X.iloc[[start]], X.iloc[[end]])
        expected = brute_force(graph, rows[start], rows[end])[:, 0]
        np.testing.assert_allclose(explained.values[0], expected, atol=1e-12)
    with pytest.raises(gig.UnsupportedModelError, match=rf"needs the gradient of the step {type(step).__name__}"):
        gig.import_model(fitted(LABELLED, step, trees=False))


@pytest.mark.parametrize("inside", [StandardScaler(), OneHotEncoder(sparse_output=False)], ids=["scaler", "one-hot"])
def test_a_wrapped_transformer_of_scikit_learn(inside: Any) -> None:
    columns = ["income"] if isinstance(inside, StandardScaler) else ["purpose"]
    steps = [wrappers.SklearnTransformerWrapper(inside, variables=unchecked(columns))]
    if columns == ["income"]:
        steps.append(LABELLED)
    for trees in (True, False):
        check_importer(fitted(*steps, trees=trees), complete())


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (imputation.RandomSampleImputer(random_state=0), "fills in random numbers; use MeanMedianImputer"),
        (imputation.DropMissingData(), "drops rows"),
        (outliers.OutlierTrimmer(variables=["income"]), "drops rows; use Winsorizer"),
        (encoding.StringSimilarityEncoder(variables=["purpose"]), "compares the spelling"),
        (discretisation.EqualWidthDiscretiser(variables=["income"], return_boundaries=True), "gives the texts"),
        (creation.MathFeatures(variables=["income", "share"], func="sum"), "makes a column from several"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_what_cannot_be_exact_is_refused_by_name(step: Any, said: str) -> None:
    name = type(step).__name__
    labelled = encoding.OrdinalEncoder(variables=["purpose"])
    X = labelled.fit(complete(), target()).transform(complete()) if name != "StringSimilarityEncoder" else complete()
    step.fit(X, target())
    last = GradientBoostingClassifier(n_estimators=2).fit(X.select_dtypes("number"), target())
    with pytest.raises(gig.UnsupportedModelError, match=rf"The step {name} \(feature_engine\..*{said}"):
        gig.import_model(make_pipeline(step, last))


def test_credit_of_an_encoded_label_is_the_difference_of_its_numbers() -> None:
    model, X = fitted(encoding.WoEEncoder(variables=unchecked(LABELS), ignore_format=True), trees=False), complete()
    explained = gig.explain_pairs(model, X[:30], X[30:60], output="margin")
    numbers = model[0].transform(X).to_numpy(np.float64)
    np.testing.assert_allclose(explained.values, (numbers[30:60] - numbers[:30]) * model[-1].coef_[0], atol=1e-12)


def test_labels_that_an_encoder_refuses_are_refused() -> None:
    model = fitted(encoding.MeanEncoder(variables=["purpose"], unseen="raise"))
    with pytest.raises(gig.InputError, match="'castle' is not one of its 4"):
        gig.explain(model, complete()[:3].assign(purpose="castle"), complete()[20:30])
