"""Calibration of three classes where folds miss one, and where no calibrator gives a row any chance."""

from __future__ import annotations

import numpy as np
import pytest
from conformance import data
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.tree import DecisionTreeClassifier

import gigrad as gig
from gigrad.errors import UnsupportedModelError

ORDER = np.argsort(data.classes(), kind="stable")
X, CLASSES = data.numbers()[ORDER], data.classes()[ORDER]


def calibrated(method: str) -> CalibratedClassifierCV:
    """Each fold is fitted without one third of rows that are sorted by class, so that one fold misses a class."""
    return CalibratedClassifierCV(LogisticRegression(), method=method, cv=KFold(3)).fit(X, CLASSES)


def test_rows_that_no_calibrator_gives_a_chance_get_equal_ones():
    model = calibrated("isotonic")
    fold = model.calibrated_classifiers_[0]
    assert len(fold.estimator.classes_) == 2
    own = fold.predict_proba(X)
    nothing = (own == 1 / 3).all(axis=1)
    assert nothing.any()
    assert not nothing.all()
    start, end = X[nothing][:6], X[~nothing][:6]  # every path passes the place where the score jumps
    got = gig.explain_pairs(model, start, end, tol=1e-9)
    np.testing.assert_allclose(got.predictions, model.predict_proba(end), atol=1e-12)
    assert np.abs(got.gap).max() < 1e-9
    back = gig.explain_pairs(model, end, start, tol=1e-9)
    np.testing.assert_allclose(back.values, -got.values, atol=1e-9)


def test_temperature_over_folds_that_miss_a_class_is_refused():
    with pytest.raises(UnsupportedModelError, match=r"all 3 classes; one holds 2.*StratifiedKFold"):
        gig.import_model(calibrated("temperature"))


def test_one_against_the_rest_gives_nothing_where_nobody_wants_a_row():
    rng = np.random.default_rng(0)
    rows, labels = rng.integers(0, 4, (40, 3)).astype(float), rng.integers(0, 5, 40)
    model = OneVsRestClassifier(DecisionTreeClassifier(random_state=0)).fit(rows, labels)
    every = np.stack(np.meshgrid(*[np.arange(4.0)] * 3), axis=-1).reshape(-1, 3)
    assert (model.predict_proba(every) == 0).all(axis=1).any()
    got = gig.explain_pairs(model, every[::-1], every)
    np.testing.assert_allclose(got.predictions, model.predict_proba(every), atol=1e-12)
    assert np.abs(got.gap).max() < 1e-12
