"""Segments, rules and caps: rows of the conformance table for models that are joined by `switch` and `clip`."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import data
from .row import Fitted, Row


def applicants() -> Any:
    """Numbers on a grid, a column of labels, and a score that is missing for a thin file."""
    table = data.named().copy()
    rng = np.random.default_rng(13)
    table["bureau"] = np.where(rng.random(data.N) < 0.3, np.nan, rng.integers(3, 8, data.N) * 100.0)
    table["home"] = rng.choice(["own", "rent", "free"], data.N)
    return table


def trees(kind: str, columns: list[str], y: Any, seed: int = 0, **options: Any) -> Any:
    from sklearn import ensemble

    model = getattr(ensemble, f"HistGradientBoosting{kind}")(max_iter=6, max_leaf_nodes=6, random_state=seed, **options)
    return model.fit(applicants()[columns], y)


def linear(columns: list[str], y: Any) -> Any:
    from sklearn.linear_model import LinearRegression

    return LinearRegression().fit(applicants()[columns].fillna(500), y)


def net(columns: list[str], y: Any) -> Any:
    from sklearn.neural_network import MLPRegressor

    return MLPRegressor(hidden_layer_sizes=(5,), activation="tanh", max_iter=20, tol=10.0, random_state=0).fit(
        applicants()[columns].fillna(500), y
    )


NUMBERS = ["age", "income", "debt"]


def bands() -> Fitted:
    """Trees in two bands, and a rule in a third."""
    import gigrad as gig

    first, second = (trees("Regressor", NUMBERS, data.target() * s, i) for i, s in enumerate((1.0, -2.0)))
    f = gig.switch("age", {(None, -0.5): first, (-0.5, 1.2): second, (1.2, None): 0.25})
    return f, applicants()[NUMBERS]


def thin_and_thick() -> Fitted:
    """A model that refuses a missing bureau score, used where there is one."""
    import gigrad as gig

    thick = linear([*NUMBERS, "bureau"], data.target())
    f = gig.switch("bureau", {(None, 600): thick, (600, None): net(["bureau", "age"], data.target()),
                              None: trees("Regressor", NUMBERS, data.target())})  # fmt: skip
    return f, applicants()[[*NUMBERS, "bureau"]]


def labels() -> Fitted:
    """Other models for labels, one of which reads the label itself."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    import gigrad as gig

    encoded = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["home"]), remainder="passthrough")
    # One-hot columns add up to 1: without a penalty, coefficients of 6e13 are as good as any, with some LAPACKs.
    own = make_pipeline(encoded, Ridge()).fit(applicants()[[*NUMBERS, "home"]], data.target())
    f = gig.switch("home", {"rent": trees("Regressor", NUMBERS, data.target()), "free": net(NUMBERS, data.target())},
                   default=own)  # fmt: skip
    return f, applicants()[[*NUMBERS, "home"]]


def classifiers() -> Fitted:
    """Probabilities of trees in one segment and of a linear model in the other."""
    from sklearn.linear_model import LogisticRegression

    import gigrad as gig

    table = applicants()[NUMBERS]
    line = LogisticRegression().fit(table, data.binary())
    f = gig.switch("debt", {(None, 0.3): trees("Classifier", NUMBERS, data.binary())}, default=line)
    return f, table


def decision() -> Fitted:
    """A floor and a cap over a rule over a stack of a switch."""
    import gigrad as gig

    inner = gig.stack([bands()[0], linear(NUMBERS, data.target())], head=[0.6, 0.7])
    f = gig.clip(gig.switch("debt", {(1.5, None): 0.9}, default=inner), -0.5, 1.0)
    return f, applicants()[NUMBERS]


def capped() -> Fitted:
    import gigrad as gig

    return gig.clip(trees("Classifier", NUMBERS, data.binary()), high=0.8), applicants()[NUMBERS]


def row(model: str, task: str, options: str, build: Any) -> Row:
    return Row("segments", "sklearn", model, task, options, build)


ROWS = (
    row("switch", "regression", "bands of trees, and a rule", bands),
    row("switch", "regression", "thin and thick files: missing values, a linear model, a net", thin_and_thick),
    row("switch", "regression", "labels", labels),
    row("switch", "binary", "trees and a linear model under one link", classifiers),
    row("clip", "regression", "a rule and a stack of segments, held between two scores", decision),
    row("clip", "binary", "a cap on a probability", capped),
)
