"""The rows of statsmodels in the conformance table."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from . import data
from .row import Fitted, Row


def table() -> Any:
    frame = data.named().copy()
    frame["debt"] = np.abs(frame["debt"]) + 0.1
    frame["purpose"] = np.random.default_rng(5).choice(["car", "house", "boat"], data.N)
    return frame


def row(
    model: str, task: str, options: str, build: Callable[[Any, Any], Any], X: Callable[[], Any] | None = None
) -> Row:
    def fitted() -> Fitted:
        import statsmodels.api as sm
        import statsmodels.formula.api as smf

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = build(sm, smf)
        return results, X() if X is not None else sm.add_constant(data.named())

    return Row("statsmodels", "statsmodels", model, task, options, fitted)


def matrix(model: str, task: str, y: Callable[[], Any], **fitting: Any) -> Row:
    return row(model, task, "", lambda sm, _: getattr(sm, model)(y(), sm.add_constant(data.named())).fit(**fitting))


def glm(options: str, y: Callable[[], Any], family: Callable[[Any], Any]) -> Row:
    def build(sm: Any, _: Any) -> Any:
        return sm.GLM(y(), sm.add_constant(data.named()), family=family(sm.families)).fit()

    return row("GLM", "any", options, build)


def formula(model: str, task: str, text: str, y: Callable[[], Any], **fitting: Any) -> Row:
    def build(_: Any, smf: Any) -> Any:
        return getattr(smf, model.lower())(f"target ~ {text}", table().assign(target=y())).fit(**fitting)

    return row(model, task, f"`{text}`", build, table)


ROWS = (
    matrix("OLS", "regression", data.target),
    matrix("WLS", "regression", data.target),
    matrix("RLM", "regression", data.target),
    matrix("QuantReg", "regression", data.target),
    matrix("Logit", "binary", data.binary, disp=0),
    matrix("Probit", "binary", data.binary, disp=0),
    matrix("MNLogit", "multiclass", data.class_codes, disp=0),
    matrix("Poisson", "regression", data.class_codes, disp=0),
    matrix("NegativeBinomial", "regression", data.class_codes, disp=0),
    row("OLS", "regression", "an array", lambda sm, _: sm.OLS(data.target(), data.numbers()).fit(), data.numbers),
    glm("Poisson", data.class_codes, lambda f: f.Poisson()),
    glm("Gamma, log link", data.positive, lambda f: f.Gamma(f.links.Log())),
    glm("Gaussian", data.target, lambda f: f.Gaussian()),
    glm("Binomial", data.binary, lambda f: f.Binomial()),
    glm("Binomial, probit link", data.binary, lambda f: f.Binomial(f.links.Probit())),
    glm("Binomial, complementary log-log link", data.binary, lambda f: f.Binomial(f.links.CLogLog())),
    formula("Logit", "binary", "age + C(purpose)", data.binary, disp=0),
    formula("OLS", "regression", "age * C(purpose, Sum) + np.log(debt) + I(age ** 2)", data.target),
    formula("OLS", "regression", "purpose:arrears + I(income / debt) + np.exp(-age) + I(2 * age - 1)", data.target),
    formula("Poisson", "regression", "age:income + np.log1p(debt) - 1", data.class_codes, disp=0),
)  # fmt: skip
