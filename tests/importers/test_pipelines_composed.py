"""Compositions as teams make them, drawn at random with fixed seeds: steps, encoders, models and models of models.

Each is compared with its own predictions on the raw table, in another order and with more columns, at thresholds, at
unknown labels and at missing values, and with the brute-force definition on a few pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)

import gigrad as gig
from gigrad.testing import check_importer

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::RuntimeWarning")
ROWS = 160


def table(rng: np.random.Generator) -> tuple[Any, Any]:
    """Numbers with gaps, whole numbers, a boolean, text with gaps, pandas categories; a column nobody asks for."""
    income = rng.lognormal(3, 1, ROWS).round(1)
    income[rng.random(ROWS) < 0.1] = np.nan
    purpose = rng.choice(["car", "house", "boat", "school", "other"], ROWS, p=[0.4, 0.3, 0.2, 0.07, 0.03]).astype(
        object
    )
    purpose[rng.random(ROWS) < 0.08] = rng.choice(np.array([None, np.nan], object))
    X = pd.DataFrame(
        {
            "income": income,
            "age": rng.integers(18, 80, ROWS),
            "owner": rng.random(ROWS) < 0.5,
            "purpose": purpose,
            "region": pd.Categorical(rng.choice(["n", "e", "s", "w"], ROWS)),
            "debt": rng.normal(size=ROWS).round(1),
        }
    )
    signal = np.nan_to_num(income) / 40 + (purpose == "car") - (X["region"] == "n") + X["debt"] + rng.normal(size=ROWS)
    return X, (signal > signal.median()).astype(int).to_numpy()


def pick(rng: np.random.Generator, *choices: Any) -> Any:
    """One of some functions, called."""
    return choices[rng.integers(len(choices))]()


def numeric_steps(rng: np.random.Generator) -> Any:
    imputer = pick(
        rng,
        lambda: SimpleImputer(),
        lambda: SimpleImputer(strategy="median", add_indicator=True),
        lambda: SimpleImputer(strategy="constant", fill_value=-1.0),
    )
    scaler = pick(
        rng,
        StandardScaler,
        RobustScaler,
        lambda: MinMaxScaler(clip=True),
        PowerTransformer,
        lambda: QuantileTransformer(n_quantiles=10),
        lambda: KBinsDiscretizer(4, encode="onehot-dense", strategy="uniform"),
        lambda: KBinsDiscretizer(3, encode="ordinal", strategy="kmeans", random_state=0),
        lambda: FeatureUnion([("scaled", StandardScaler()), ("bins", KBinsDiscretizer(3, encode="onehot-dense"))]),
    )
    return make_pipeline(imputer, scaler)


def label_steps(rng: np.random.Generator) -> Any:
    return pick(
        rng,
        lambda: OneHotEncoder(handle_unknown="ignore", drop="if_binary", sparse_output=False),
        lambda: OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=15, sparse_output=False),
        lambda: OneHotEncoder(max_categories=3, handle_unknown="ignore", sparse_output=False),
        lambda: OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2),
        lambda: make_pipeline(
            SimpleImputer(strategy="most_frequent"), OneHotEncoder(drop="first", sparse_output=False)
        ),
        lambda: TargetEncoder(cv=2, random_state=0),
    )


def preparation(rng: np.random.Generator) -> Any:
    numbers = pick(
        rng,
        lambda: ["income", "age", "debt"],
        lambda: ["debt", "income"],
        lambda: make_column_selector(dtype_include="number"),
    )
    blocks = [("numbers", numeric_steps(rng), numbers), ("labels", label_steps(rng), ["purpose", "region"])]
    steps = ColumnTransformer(
        blocks, remainder=pick(rng, lambda: "drop", lambda: VarianceThreshold()), sparse_threshold=0
    )
    return steps.set_output(transform="pandas") if rng.random() < 0.3 else steps


def small_model(rng: np.random.Generator) -> Any:
    return pick(
        rng,
        lambda: LogisticRegression(max_iter=500),
        lambda: GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=0),
        lambda: RandomForestClassifier(4, max_depth=3, random_state=0),
        lambda: ExtraTreesClassifier(4, max_depth=3, random_state=0),
        lambda: HistGradientBoostingClassifier(max_iter=4, max_depth=2, min_samples_leaf=5),
    )


def team_pipeline(rng: np.random.Generator) -> Any:
    middle = pick(rng, list, list, lambda: [SelectKBest(k=3)], lambda: [StandardScaler()])
    return make_pipeline(preparation(rng), *middle, small_model(rng))


def composition(rng: np.random.Generator) -> Any:
    """A pipeline, or a model of pipelines."""
    parts = [("a", team_pipeline(rng)), ("b", team_pipeline(rng))]
    return pick(
        rng,
        lambda: parts[0][1],
        lambda: CalibratedClassifierCV(parts[0][1], method=pick(rng, lambda: "sigmoid", lambda: "isotonic"), cv=2),
        lambda: VotingClassifier(parts, voting="soft", weights=[1.0, 2.5]),
        lambda: StackingClassifier(parts, LogisticRegression(), cv=2),
        lambda: GridSearchCV(parts[0][1], {"verbose": [False]}, cv=2),
    )


@pytest.mark.parametrize("seed", [*range(25), 33, 34, 56, 62, 75])
def test_a_composition_is_followed_from_its_raw_columns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = table(rng)
    model = composition(rng).fit(X, y)
    check_importer(model, X, pairs=1, changes=3, seed=seed)
    shuffled = X.assign(note="text that no step reads")[["note", *reversed(X.columns)]]
    plain = gig.explain_pairs(model, X.head(3), X.tail(3))
    again = gig.explain_pairs(model, shuffled.head(3), shuffled.tail(3))
    np.testing.assert_allclose(plain.predictions, model.predict_proba(X.tail(3))[:, 1], rtol=1e-9)
    place = [again.feature_names.index(name) for name in plain.feature_names]
    np.testing.assert_array_equal(plain.values, again.values[:, place])
