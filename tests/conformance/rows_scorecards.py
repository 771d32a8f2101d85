"""The rows of scorecards in the conformance table."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import data
from .row import Fitted, Row
from .rows_encoders import model_of

CARD = {
    "base": 300,
    "age": {"< 25": 0, "[25, 40)": 12.5, "[40, 60]": 20, "> 60": 31, "-9": 7, "missing": 3},
    "debt": {"<= 0.5": 40, "(0.5, 3.5]": 20, "> 3.5": 0},
    "home": {"own": 15, "rent": 5, "other": 0, "missing": 1},
    "grade": {"10": 4, "20": 9, "35": -2},
}


def applicants() -> Any:
    """Ages (some -9, some missing), debts, homes (some unknown, some missing), grades."""
    import pandas as pd

    rng = np.random.default_rng(12)
    age = rng.integers(18, 80, data.N).astype(float)
    age[:20], age[20:40] = -9.0, np.nan
    home = rng.choice(["own", "rent", "with parents"], data.N).astype(object)
    home[40:50] = None
    debt = rng.exponential(2, data.N).round(1)
    return pd.DataFrame({"age": age, "debt": debt, "home": home, "grade": rng.choice([10, 20, 35], data.N)})


def plain() -> Fitted:
    import gigrad

    return gigrad.Scorecard.read(CARD), applicants()


def optbinning(special: Any = None, continuous: bool = False, **options: Any) -> Any:
    def build() -> Fitted:
        from optbinning import BinningProcess, Scorecard
        from sklearn.linear_model import LinearRegression, LogisticRegression

        X = applicants().drop(columns="grade")
        bad = (X["age"].clip(18).fillna(30) < 35).to_numpy() ^ (X["debt"] > 3).to_numpy()
        process = BinningProcess(list(X), categorical_variables=["home"], special_codes=special)
        model = Scorecard(process, LinearRegression() if continuous else LogisticRegression(), **options)
        y = X["debt"].to_numpy() * 2 + bad if continuous else bad.astype(int)
        return model.fit(X, y), X

    return build


def binned(kind: str) -> Any:
    def build() -> Fitted:
        from optbinning import BinningProcess
        from sklearn.pipeline import make_pipeline

        X = applicants()
        bad = (X["age"].clip(18).fillna(30) < 35).to_numpy() ^ (X["debt"] > 3).to_numpy()
        process = BinningProcess(list(X), categorical_variables=["home"], special_codes=[-9])
        return make_pipeline(process, model_of(kind)).fit(X, bad.astype(int)), X

    return build


ROWS = (
    Row("scorecards", "gigrad", "Scorecard", "any", "a table of points", plain),
    Row("optbinning", "optbinning", "Scorecard", "binary", "special codes, missing values, min_max",
        optbinning(special=[-9], scaling_method="min_max", scaling_method_params={"min": 300, "max": 850},
                   reverse_scorecard=True)),
    Row("optbinning", "optbinning", "Scorecard", "binary", "groups of special codes, pdo_odds, rounded",
        optbinning(special={"none": [-9], "odd": [-1, -2]}, scaling_method="pdo_odds", rounding=True,
                   scaling_method_params={"pdo": 20, "odds": 50, "scorecard_points": 600}, intercept_based=True)),
    Row("optbinning", "optbinning", "Scorecard", "regression", "continuous target", optbinning(continuous=True)),
    Row("optbinning", "optbinning", "Pipeline", "binary", "BinningProcess, then trees", binned("trees")),
    Row("optbinning", "optbinning", "Pipeline", "binary", "BinningProcess, then a linear model", binned("linear")),
)  # fmt: skip
