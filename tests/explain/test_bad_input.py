"""Bad input gets one clear sentence, and nothing else: no crash, no hang, no half answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import gigrad as gig
from gigrad.graph import Input, Tree, assemble

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = (X[:, 0] + X[:, 1] > 0).astype(int)


@pytest.fixture(scope="module")
def model() -> Any:
    frame = pd.DataFrame(X, columns=["age", "income", "debt"])
    return xgboost.XGBClassifier(n_estimators=5, max_depth=3).fit(frame, Y)


@pytest.fixture(scope="module")
def forest() -> Any:
    return RandomForestClassifier(n_estimators=3, random_state=0).fit(X, Y)


@pytest.mark.parametrize(
    ("rows", "reference", "options", "message"),
    [
        (X[:2], X[:0], {}, "reference must have at least one row"),
        (X[:2], X[:5, :2], {}, r"reference must have the model's 3 columns; it has 2"),
        (X[:2], pd.DataFrame(X, columns=["age", "income", "loan"]), {}, r"reference must have .* 'debt' is missing"),
        (X[:2], X[:5], {"weights": [1, 2]}, r"weights must have one number a reference row, 5; their shape is \(2,\)"),
        (X[:2], X[:5], {"weights": [1, 2, 3, 4, -1]}, "weights must be finite, not negative"),
        (X[:2], X[:5], {"weights": [0] * 5}, "not all zero"),
        (X[:2], X[:5], {"weights": [1, np.nan, 1, 1, 1]}, "weights must be finite"),
        (X[:2], X[:5], {"output": "probability"}, 'output must be None, "margin" or a transform'),
        (X[:2], X[:5], {"output": 3}, "got an int"),
        (X[:2], X[:5], {"target": "gold"}, "target must be one of the outputs"),
        (X[:2], X[:5], {"tol": 0}, "tol must lie between 0 and 1"),
        (X[:2], X[:5], {"n_threads": 0}, "n_threads must be a positive whole number"),
        (np.where(X[:2] > 9, 0, np.inf), X[:5], {}, "is infinite in row 0"),
        (X[0], X[:5], {}, "X must have two dimensions"),
        ("rows.csv", X[:5], {}, "got a str"),
    ],
)
def test_what_cannot_be_explained_is_refused(model: Any, rows: Any, reference: Any, options: Any, message: str) -> None:
    with pytest.raises(gig.InputError, match=message):
        gig.explain(model, rows, reference, **options)


def test_pairs_must_have_equal_numbers_of_rows(model: Any) -> None:
    with pytest.raises(gig.InputError, match="same number of rows; they have 3 and 2"):
        gig.explain_pairs(model, X[:3], X[:2])


def test_an_empty_table_has_an_empty_explanation(model: Any) -> None:
    e = gig.explain(model, X[:0], X[:5])
    assert e.values.shape == (0, 3)
    assert e.predictions.shape == (0,)


def test_missing_values_are_refused_where_the_model_cannot_take_them() -> None:
    rows = X.copy()
    model = RandomForestClassifier(n_estimators=2, random_state=0).fit(X, Y)
    rows[1, 2] = np.nan
    graph = gig.import_model(model)
    if graph.columns[2].missing:  # this version's trees learnt a side for missing values
        assert gig.explain(model, rows[:2], X[:5]).values.shape == (2, 3)
    else:
        with pytest.raises(gig.InputError, match="no missing value in column"):
            gig.explain(model, rows[:2], X[:5])


@pytest.mark.parametrize("unfitted", [xgboost.XGBClassifier(), RandomForestClassifier()])
def test_unfitted_models_are_named(unfitted: Any) -> None:
    with pytest.raises(gig.NotFittedError, match=type(unfitted).__name__):
        gig.import_model(unfitted)


def test_unknown_models_get_the_list_and_the_way_to_add_one() -> None:
    class Unheard:
        def predict(self, rows: Any) -> Any:
            return rows[:, 0]

    with pytest.raises(gig.UnsupportedModelError, match=r"xgboost: Booster, XGBModel, .*register_importer"):
        gig.import_model(Unheard())
    model = KNeighborsClassifier().fit(X, Y)
    with pytest.raises(gig.UnsupportedModelError, match=r"nearest training rows.* Use a support vector machine"):
        gig.import_model(model)
    with pytest.raises(gig.UnsupportedModelError, match=r"passed itself, not its method 'predict_proba'"):
        gig.import_model(model.predict_proba)
    with pytest.raises(gig.UnsupportedModelError, match=r"gigrad\.function\(f, gradient\)"):
        gig.import_model(np.sin)
    with pytest.raises(gig.UnsupportedModelError, match=r"a fitted object; got None"):
        gig.explain(None, X, X)


def test_a_model_that_changed_after_import_is_noticed(forest: Any) -> None:
    explainer = gig.Explainer(forest, X[:10])
    forest.estimators_[0].tree_.value[:] = 0.25
    with pytest.raises(gig.ModelMismatchError, match=r"row \d+ differs most"):
        explainer(X[:5])


def tree(**changes: Any) -> Tree:
    """A sound stump, with some of its arrays replaced."""
    sound: dict[str, Any] = {
        "feature": np.array([0, -1, -1]),
        "threshold": np.array([0.5, 0.0, 0.0]),
        "left": np.array([1, -1, -1]),
        "right": np.array([2, -1, -1]),
        "missing_left": np.zeros(3, bool),
        "values": np.array([0.0, 1.0, 2.0]),
    }
    return Tree(**{**sound, **changes})


@pytest.mark.parametrize(
    "broken",
    [
        tree(left=np.array([0, -1, -1])),
        tree(right=np.array([7, -1, -1])),
        tree(right=np.array([-3, -1, -1])),
        tree(feature=np.array([5, -1, -1])),
        tree(threshold=np.array([np.nan, 0.0, 0.0])),
        tree(values=np.array([0.0, np.nan, 2.0])),
        tree(feature=np.array([0, 0, -1]), left=np.array([1, 0, -1]), right=np.array([2, 2, -1])),
        tree(output=3),
        tree(feature=np.zeros(0), threshold=np.zeros(0), left=np.zeros(0), right=np.zeros(0)),
    ],
    ids=[
        "cycle",
        "child out of range",
        "negative child",
        "column",
        "NaN threshold",
        "NaN leaf",
        "long cycle",
        "output",
        "empty",
    ],
)
def test_corrupt_trees_are_refused_when_imported(broken: Tree) -> None:
    with pytest.raises(gig.CorruptModelError):
        assemble(Input(2), [broken], np.zeros(1))


def test_cells_that_the_models_own_steps_fail_on_are_said_to_be_the_matter() -> None:
    rows = pd.DataFrame({"home": ["rent", "own"] * 20, "age": np.arange(40.0)})
    chosen = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["home"]), remainder="passthrough")
    model = make_pipeline(chosen, LogisticRegression()).fit(rows, np.arange(40) % 2)
    with pytest.raises(gig.InputError, match=r"LogisticRegression itself cannot take these rows \(TypeError: "):
        gig.explain(model, rows[:2].assign(home=[1, 2]), rows)
    with pytest.raises(gig.InputError, match=r"'home', such as .*; got a list or another value that cannot be a label"):
        gig.explain(model, rows[:1].assign(home=[["rent"]]), rows)
