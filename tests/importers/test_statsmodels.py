"""statsmodels: closed forms, and what formulas are refused."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from conformance import data
from conformance.rows_statsmodels import table

import gigrad as gig

sm = pytest.importorskip("statsmodels.api", reason="statsmodels is not installed, and all models here are of it")
smf = pytest.importorskip(
    "statsmodels.formula.api", reason="statsmodels is not installed, and all models here are of it"
)


def test_credits_of_a_linear_model_are_coefficients_times_differences() -> None:
    X = sm.add_constant(data.named())
    results = sm.Logit(data.binary(), X).fit(disp=0)
    explained = gig.explain_pairs(results, X[:20], X[20:40], output="margin")
    expected = (X[20:40].to_numpy() - X[:20].to_numpy()) * results.params.to_numpy()
    np.testing.assert_allclose(explained.values, expected, atol=1e-12)


def test_credit_goes_to_the_columns_of_the_formula() -> None:
    frame = table()
    results = smf.ols("target ~ np.log(debt) + C(purpose)", frame.assign(target=data.target())).fit()
    explained = gig.explain_pairs(results, frame[:20], frame[20:40])
    assert set(explained.feature_names) == {"purpose", "debt"}
    debt = explained.feature_names.index("debt")
    logs = np.log(frame["debt"].to_numpy())
    np.testing.assert_allclose(explained.values[:, debt], (logs[20:40] - logs[:20]) * results.params["np.log(debt)"])


def test_a_label_that_the_formula_has_not_seen_is_refused() -> None:
    frame = table()
    results = smf.ols("target ~ C(purpose)", frame.assign(target=data.target())).fit()
    with pytest.raises(gig.InputError, match="'castle' is not one of its 3"):
        gig.explain(results, frame[:3].assign(purpose="castle"), frame[10:20])


REFUSED = {
    "target ~ bs(age, df=4)": r"The factor 'bs\(age, df=4\)' of the formula is not supported",
    "target ~ center(age)": r"'center\(age\)' of the formula",
    "target ~ np.sin(age)": r"'np.sin\(age\)'",
    "target ~ age ** 2 + I(age ** 0.5 * 1.0)": "age \\*\\* 0.5",
    "target ~ C(age > 0)": "C\\(age > 0\\)",
    "target ~ grade + C(grade)": "reads 'grade' as a number and as a category",
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_formula_that_cannot_be_exact_is_refused_by_name(text: str) -> None:
    frame = table().assign(target=data.target(), grade=np.arange(data.N) % 3)
    frame["age"] = np.abs(frame["age"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results: Any = smf.ols(text, frame).fit()
    with pytest.raises(gig.UnsupportedModelError, match=REFUSED[text]):
        gig.import_model(results)


def test_other_results_are_refused_by_name() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = sm.ZeroInflatedPoisson(data.class_codes(), data.numbers()).fit(disp=0, maxiter=5)
    with pytest.raises(gig.UnsupportedModelError, match="results of ZeroInflatedPoisson"):
        gig.import_model(results)
    family = sm.families.Binomial(sm.families.links.Cauchy())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        glm = sm.GLM(data.binary(), data.numbers(), family=family).fit()
    with pytest.raises(gig.UnsupportedModelError, match="the link Cauchy"):
        gig.import_model(glm)
