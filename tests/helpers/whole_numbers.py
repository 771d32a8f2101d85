"""Small tables of flags, counts and one amount, and a model of each library on them, fitted once."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gigrad.graph import Array

NAMES = ("owns_home", "has_phone", "first_loan", "children", "late", "amount")
MOST = {0: 1, 1: 1, 2: 1, 3: 4, 4: 3}
"""The columns of whole numbers and the largest that each holds; amounts lie on a grid of one tenth."""
LIBRARIES = ("xgboost", "lightgbm", "catboost", "forest", "extra trees", "gradient boosting", "histogram boosting")
TAKES_MISSING = tuple(name for name in LIBRARIES if name != "gradient boosting")


@cache
def rows(missing: bool, n: int = 500, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    X = np.column_stack([*(rng.integers(0, most + 1, n) for most in MOST.values()), rng.normal(size=n).round(1)])
    X = X.astype(float)
    if missing:
        X[rng.random(X.shape) < 0.12] = np.nan
    X.setflags(write=False)
    return X


@cache
def labels(missing: bool) -> Any:
    """Refused or not, by interactions of flags with counts and with the amount."""
    X = np.nan_to_num(rows(missing), nan=0.7)
    score = 2 * X[:, 0] * (X[:, 3] > 1) - X[:, 1] * X[:, 2] + X[:, 5] * X[:, 0] - 0.7 * X[:, 4] * (1 - X[:, 2])
    return (score + np.random.default_rng(1).normal(size=len(X)) * 0.5 > 0).astype(int)


@cache
def fitted(library: str, missing: bool = False) -> Any:
    """A classifier of the library; its flags and counts are split between whole numbers."""
    return new(library).fit(np.array(rows(missing)), labels(missing))


def new(library: str) -> Any:
    if library == "xgboost":
        import xgboost

        return xgboost.XGBClassifier(n_estimators=20, max_depth=4, n_jobs=1)
    if library == "lightgbm":
        import lightgbm

        return lightgbm.LGBMClassifier(n_estimators=20, num_leaves=12, min_child_samples=5, verbose=-1, n_jobs=1)
    if library == "catboost":
        import catboost

        return catboost.CatBoostClassifier(
            iterations=20, depth=4, verbose=0, allow_writing_files=False, thread_count=1, random_seed=0
        )
    import sklearn.ensemble as ensemble

    return {
        "forest": lambda: ensemble.RandomForestClassifier(12, max_depth=5, random_state=0),
        "extra trees": lambda: ensemble.ExtraTreesClassifier(12, max_depth=5, random_state=0),
        "gradient boosting": lambda: ensemble.GradientBoostingClassifier(n_estimators=15, max_depth=4, random_state=0),
        "histogram boosting": lambda: ensemble.HistGradientBoostingClassifier(max_iter=15, max_leaf_nodes=12),
    }[library]()
