"""Trees on real tables: German credit, Taiwan default, Lending Club and Covertype, imported exactly and explained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from real_tables import real_table

import gigrad as gig
from gigrad.testing import check_importer

pytestmark = pytest.mark.data
Built = tuple[Any, Any]


def german() -> Built:
    """Categories of strings, integers, no missing value."""
    table = real_table("german_credit")
    return table.drop(columns="credit_risk"), (table["credit_risk"] == table["credit_risk"].cat.categories[0]).astype(
        int
    )


def taiwan(rows: int = 3000) -> Built:
    """Numbers alone, with many zeros and ties."""
    table = real_table("taiwan_credit_default").sample(rows, random_state=0).reset_index(drop=True)
    return table.drop(columns="default_payment_next_month"), table["default_payment_next_month"]


def lending(rows: int = 3000) -> Built:
    """Missing values and categories; dates and the outcome's own columns left out."""
    table = real_table("lending_club_2007_2011").sample(rows, random_state=0).reset_index(drop=True)
    columns = [
        "loan_amnt",
        "term_months",
        "int_rate",
        "grade",
        "emp_length",
        "home_ownership",
        "annual_inc",
        "purpose",
        "dti",
        "delinq_2yrs",
        "inq_last_6mths",
        "mths_since_last_delinq",
        "mths_since_last_record",
        "revol_util",
    ]
    return table[columns], (table["int_rate"] > table["int_rate"].median()).astype(int)  # fmt: skip


def covertype(rows: int = 3000) -> Built:
    """Seven classes."""
    table = real_table("covertype").sample(rows, random_state=0).reset_index(drop=True)
    return table.iloc[:, :-1], table.iloc[:, -1] - 1


def text_of(table: Any) -> Any:
    """Categories as plain strings, as CatBoost takes them."""
    kinds = table.select_dtypes("category").columns
    return table.assign(**{c: table[c].astype(object).where(table[c].notna(), "none").astype(str) for c in kinds})


def xgb(table: Built, **options: Any) -> Built:
    import xgboost

    X, y = table
    return xgboost.XGBClassifier(n_estimators=40, max_depth=5, n_jobs=1, enable_categorical=True, **options).fit(
        X, y
    ), X


def lgbm(table: Built, **options: Any) -> Built:
    import lightgbm

    X, y = table
    return lightgbm.LGBMClassifier(n_estimators=40, n_jobs=1, verbose=-1, **options).fit(X, y), X


def hist(table: Built) -> Built:
    from sklearn.ensemble import HistGradientBoostingClassifier

    X, y = table
    return HistGradientBoostingClassifier(max_iter=40, categorical_features="from_dtype").fit(X, y), X


def forest(table: Built, classes: str = "RandomForestClassifier") -> Built:
    from sklearn import ensemble

    X, y = table
    return getattr(ensemble, classes)(n_estimators=20, max_depth=8, random_state=0).fit(X, y), X


def cat(table: Built, **options: Any) -> Built:
    import catboost

    X, y = text_of(table[0]), table[1]
    names = table[0].select_dtypes("category").columns.tolist()
    model = catboost.CatBoostClassifier(
        **{"iterations": 40, "depth": 5, "cat_features": names, "max_ctr_complexity": 1, "verbose": 0,
           "thread_count": 1, "allow_writing_files": False, **options},
    )  # fmt: skip
    return model.fit(X, y), X


MODELS: dict[str, Callable[[], Built]] = {
    "German credit, XGBoost": lambda: xgb(german()),
    "German credit, LightGBM": lambda: lgbm(german()),
    "German credit, HistGradientBoosting": lambda: hist(german()),
    "German credit, CatBoost": lambda: cat(german()),
    "German credit, CatBoost, combined columns": lambda: cat(german(), max_ctr_complexity=4, one_hot_max_size=2),
    "Taiwan default, XGBoost dart": lambda: xgb(taiwan(), booster="dart", rate_drop=0.1),
    "Taiwan default, LightGBM, zeros missing": lambda: lgbm(taiwan(), zero_as_missing=True),
    "Taiwan default, forest": lambda: forest(taiwan()),
    "Taiwan default, gradient boosting": lambda: forest(taiwan(), "GradientBoostingClassifier"),
    "Lending Club, XGBoost": lambda: xgb(lending()),
    "Lending Club, LightGBM": lambda: lgbm(lending()),
    "Lending Club, HistGradientBoosting": lambda: hist(lending()),
    "Lending Club, CatBoost": lambda: cat(lending()),
    "Covertype, XGBoost": lambda: xgb(covertype()),
    "Covertype, forest": lambda: forest(covertype(), "ExtraTreesClassifier"),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_of_real_tables_are_imported_exactly_and_explained(name: str) -> None:
    model, X = MODELS[name]()
    check_importer(model, X[:300], pairs=2, changes=3)
    explained = gig.explain(model, X[300:310], X[:50], output="margin", n_threads=1)
    assert explained.values.shape[:2] == (10, X.shape[1])
    assert np.abs(explained.gap).max() <= 2e-5 * max(1.0, np.abs(explained.predictions).max())
