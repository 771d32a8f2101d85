"""Encoders of category_encoders in pipelines: what is refused, and samplers inside of pipelines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conformance import data
from conformance.rows_encoders import labelled
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gigrad as gig
from gigrad.testing import check_importer

ce = pytest.importorskip("category_encoders", reason="category_encoders is not installed, and all steps here are of it")


def fitted(encoder: Any) -> Any:
    return make_pipeline(encoder, LogisticRegression()).fit(labelled(), data.frame_target())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["SumEncoder", "HelmertEncoder", "GLMMEncoder"])
def test_other_encoders_with_a_list_of_labels_are_tabulated(name: str) -> None:
    check_importer(fitted(getattr(ce, name)(cols=["purpose"])), labelled())


@pytest.mark.filterwarnings("ignore")
def test_an_encoder_that_cannot_be_tabulated_is_refused_by_name() -> None:
    with pytest.raises(gig.UnsupportedModelError, match="HashingEncoder stores no list of the labels of 'purpose'"):
        gig.import_model(fitted(ce.HashingEncoder(cols=["purpose"], max_process=1)))


@pytest.mark.filterwarnings("ignore")
def test_credit_of_an_encoded_label_is_the_difference_of_its_numbers() -> None:
    model = fitted(ce.TargetEncoder(cols=["purpose", "grade"]))
    X = labelled()
    explained = gig.explain_pairs(model, X[:30], X[30:60], output="margin")
    numbers = model[0].transform(X).to_numpy(np.float64)
    np.testing.assert_allclose(explained.values, (numbers[30:60] - numbers[:30]) * model[-1].coef_[0], atol=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_labels_that_the_encoder_refuses_are_refused() -> None:
    model = fitted(ce.TargetEncoder(cols=["purpose", "grade"], handle_unknown="error"))
    with pytest.raises(gig.InputError, match="'castle' is not one of its 5"):
        gig.explain(model, labelled()[10:13].assign(purpose="castle"), labelled()[20:30])


def test_samplers_do_nothing_at_prediction() -> None:
    imblearn = pytest.importorskip(
        "imblearn.pipeline", reason="imbalanced-learn is not installed, and the pipeline is of it"
    )
    from imblearn.over_sampling import SMOTE

    X, y = data.named(), data.binary()
    inner = imblearn.make_pipeline(SMOTE(random_state=0), StandardScaler(), LogisticRegression()).fit(X, y)
    graph = gig.import_model(inner)
    np.testing.assert_allclose(graph.predict(X), inner.predict_proba(X)[:, 1], rtol=1e-12)
    assert graph.feature_names == tuple(X.columns)
