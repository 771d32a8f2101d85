"""Whether a pipeline is fitted is its own to say; a step that cannot be read is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler

import gigrad as gig

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X.sum(axis=1) > 0).astype(int)


class BinningProcess(TransformerMixin, BaseEstimator):
    """Nothing that it learns has a name by which scikit-learn knows a fitted step, not even a number of columns."""

    def fit(self, X: Any, y: Any = None) -> BinningProcess:
        self._is_fitted = True
        return self

    def transform(self, X: Any) -> Any:
        return np.round(X)


@pytest.mark.parametrize(
    "steps",
    [
        [BinningProcess()],
        [StandardScaler(), BinningProcess()],
        [make_pipeline(BinningProcess())],
        [make_column_transformer((BinningProcess(), [0]))],
    ],
    ids=["first", "later", "inside a pipeline", "inside a ColumnTransformer"],
)
def test_a_fitted_pipeline_with_a_step_of_another_library_is_refused_by_name(steps: list[Any]) -> None:
    model = make_pipeline(*steps, LogisticRegression()).fit(X, Y)
    with pytest.raises(gig.UnsupportedModelError, match=r"[Tt]he step BinningProcess \(test_pipelines_fitted\)"):
        gig.import_model(model)


@pytest.mark.parametrize(
    "step",
    [
        StandardScaler(),
        PolynomialFeatures(),
        FunctionTransformer(np.tanh),
        make_pipeline(StandardScaler()),
        make_column_transformer((StandardScaler(), [0, 1, 2])),
    ],
    ids=lambda step: type(step).__name__,
)
def test_a_fitted_model_behind_steps_that_are_not(step: Any) -> None:
    model = Pipeline([("step", step), ("model", LogisticRegression().fit(X, Y))])
    with pytest.raises(gig.NotFittedError, match=rf"{type(step).__name__} .*has not been fitted"):
        gig.import_model(model)
    unfitted = make_pipeline(StandardScaler(), StandardScaler().fit(X), LogisticRegression().fit(X, Y))
    unfitted.steps[0] = ("first", StandardScaler().fit(X))
    unfitted.steps[1] = ("second", StandardScaler())
    with pytest.raises(gig.NotFittedError, match="StandardScaler has not been fitted"):
        gig.import_model(unfitted)


def test_a_pipeline_that_is_not_fitted() -> None:
    with pytest.raises(gig.NotFittedError, match="This Pipeline has not been fitted"):
        gig.import_model(make_pipeline(BinningProcess(), LogisticRegression()))
