"""One record: the same numbers as a table of that row, to the bit, whichever library the model is of."""

from __future__ import annotations

import datetime
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from xgboost import XGBClassifier

import gigrad as gig
from gigrad.datasets import german_credit

PARTS = ("values", "base_values", "predictions", "gap", "error")


def applicants(missing: bool = True) -> tuple[pd.DataFrame, Any]:
    """German credit: 13 categories, counts and amounts, with some values left out and a flag."""
    X, bad = german_credit(protected=True)
    X = X.copy()
    X["long"] = X["duration_months"] > 24
    if missing:
        rng = np.random.default_rng(0)
        for name in ("purpose", "savings_account", "credit_amount"):
            X[name] = X[name].astype(float) if X[name].dtype.kind in "iu" else X[name]
            X.loc[rng.random(len(X)) < 0.2, name] = None
    return X, bad


def texts(X: pd.DataFrame) -> list[str]:
    return [name for name in X.columns if isinstance(X[name].dtype, pd.CategoricalDtype)]


def xgboost_model(X: pd.DataFrame, bad: Any) -> Any:
    return XGBClassifier(n_estimators=15, max_depth=3, enable_categorical=True, n_jobs=1).fit(X, bad)


def xgboost_booster(X: pd.DataFrame, bad: Any) -> Any:
    return xgboost_model(X, bad).get_booster()


def lightgbm_model(X: pd.DataFrame, bad: Any) -> Any:
    return LGBMClassifier(n_estimators=10, num_leaves=8, n_jobs=1, verbose=-1).fit(X, bad)


def hist_model(X: pd.DataFrame, bad: Any) -> Any:
    return HistGradientBoostingClassifier(max_iter=10, categorical_features="from_dtype").fit(X, bad)


def catboost_model(X: pd.DataFrame, bad: Any) -> Any:
    plain = X.astype(dict.fromkeys(texts(X), object)).fillna(dict.fromkeys(texts(X), "none"))
    return CatBoostClassifier(
        iterations=10, depth=3, cat_features=texts(X), one_hot_max_size=255, verbose=False, thread_count=1,
        allow_writing_files=False,
    ).fit(plain, bad)  # fmt: skip


def pipeline_model(X: pd.DataFrame, bad: Any) -> Any:
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), texts(X)), ("passthrough", ["duration_months", "age"])
    )
    return make_pipeline(encode, LogisticRegression(max_iter=2000)).fit(X, bad)


MODELS = {
    "xgboost": (xgboost_model, True),
    "booster": (xgboost_booster, True),
    "lightgbm": (lightgbm_model, True),
    "hist": (hist_model, True),
    "catboost": (catboost_model, False),
    "pipeline": (pipeline_model, False),
}


def as_record(row: pd.Series) -> dict[str, Any]:
    """What JSON would hold."""
    plain = {str(k): v.item() if isinstance(v, np.generic) else v for k, v in row.items()}
    return {k: None if v != v else v for k, v in plain.items()}


def assert_same(one: gig.Explanation, table: gig.Explanation, row: int) -> None:
    assert len(one) == 1
    assert one.feature_names == table.feature_names
    for part in PARTS:
        np.testing.assert_array_equal(getattr(one, part)[0], getattr(table, part)[row], err_msg=part)


@pytest.mark.parametrize("output", ["margin", None])
@pytest.mark.parametrize("name", MODELS)
def test_a_record_and_a_frame_of_one_row_give_the_bits_of_the_table(name: str, output: str | None, tmp_path) -> None:
    make, missing = MODELS[name]
    X, bad = applicants(missing)
    explainer = gig.Explainer(make(X, bad), X.iloc[:15], output=output, n_threads=1, discrete=())
    explainer.save(tmp_path / "x.gig")
    portable = gig.Explainer.load(tmp_path / "x.gig", n_threads=1)
    some = X.iloc[15:23]
    for which in (explainer, portable):
        table = which(some)
        for row in range(len(some)):
            record = as_record(some.iloc[row])
            frame = which(some.iloc[[row]])
            assert_same(which.one({name: record[name] for name in which.reference.names}), frame, 0)
            if name == "pipeline":  # its own score of a row depends on the others' number, by rounding in BLAS
                np.testing.assert_allclose(frame.values[0], table.values[row], rtol=1e-12, atol=1e-15)
            else:
                assert_same(frame, table, row)
            assert frame.ids.tolist() == [some.index[row]]
            assert frame.data.equals(some.iloc[[row]][list(which.reference.names)])


@pytest.mark.parametrize("name", ["xgboost", "lightgbm"])
def test_one_row_of_any_data_frame_library_is_read_alike(name: str) -> None:
    X, bad = applicants()
    explainer = gig.Explainer(MODELS[name][0](X, bad), X.iloc[:15], output="margin", n_threads=1, discrete=())
    some = X.iloc[15:21]
    table = explainer(some)
    for row in range(len(some)):
        one = some.iloc[[row]]
        shuffled = one[one.columns[::-1]].assign(number=7)
        plain = one.astype(dict.fromkeys(texts(X), object))
        arrow = pa.Table.from_pandas(one, preserve_index=False)
        for frame in (shuffled, plain, arrow, pl.from_arrow(arrow)):
            assert_same(explainer(frame), table, row)


def test_whatever_is_not_plain_is_read_as_in_a_table() -> None:
    model = LogisticRegression().fit([[0, 0], [1, 1], [2, 0]], [0, 1, 1])
    explainer = gig.Explainer(model, [[0, 0], [1, 1]])
    for cells in ([Decimal("0.1"), 1], [np.float32(0.1), True], [2**60 + 1, np.uint64(2**63)], [np.int8(3), 1e300]):
        table = explainer(pd.DataFrame({"a": [cells[0]] * 2, "b": [cells[1]] * 2}))
        assert_same(explainer.one(dict(zip(("x0", "x1"), cells, strict=True))), table, 0)
        assert_same(explainer(pd.DataFrame({"a": [cells[0]], "b": [cells[1]]})), table, 0)


def test_categories_of_another_type_than_the_model_knows_are_the_librarys_to_judge() -> None:
    X = pd.DataFrame({"kind": pd.Categorical([3, 1, 2, 3] * 10), "x": np.arange(40.0)})
    model = XGBClassifier(n_estimators=5, enable_categorical=True, n_jobs=1).fit(X, X["kind"].astype(int) > 2)
    explainer = gig.Explainer(model, X.head(5), output="margin")
    table = explainer(X.iloc[5:8])
    assert_same(explainer.one({"kind": 1, "x": 5.0}), table, 0)
    assert_same(explainer(X.iloc[[6]]), table, 1)
    more = X.iloc[[7]].assign(kind=pd.Categorical([3], categories=[9, 3]))  # a label that is there and not used
    assert_same(explainer(more), table, 2)


def test_the_model_is_still_asked() -> None:
    X, bad = applicants()
    model = xgboost_model(X, bad)
    explainer = gig.Explainer(model, X.iloc[:10], output="margin", discrete=())
    explainer.one(as_record(X.iloc[20]))
    model.get_booster().set_param({"objective": "binary:logistic"})
    model._Booster = XGBClassifier(n_estimators=3, enable_categorical=True, n_jobs=1).fit(X, 1 - bad).get_booster()
    with pytest.raises(gig.errors.ModelMismatchError, match="must reproduce its predictions"):
        explainer.one(as_record(X.iloc[20]))


def test_a_model_that_reads_codes_otherwise_is_asked_with_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    from gigrad.importers import xgboost as importer

    X, bad = applicants()
    explainer = gig.Explainer(xgboost_model(X, bad), X.iloc[:10], output="margin", discrete=())
    before = explainer.one(as_record(X.iloc[20]))
    other = gig.Explainer(xgboost_model(X, bad), X.iloc[:10], output="margin", discrete=())
    monkeypatch.setattr(importer._Predict, "_numbers", lambda self, matrix: np.where(matrix == 1.0, 0.0, matrix))
    assert_same(other.one(as_record(X.iloc[20])), before, 0)


def test_reasons_and_slices_of_one_record() -> None:
    X, bad = applicants()
    model = xgboost_model(X, bad)
    reference = gig.references.approved(X, model.predict_proba(X)[:, 1], 0.3, higher_is_better=False)
    explainer = gig.Explainer(model, gig.references.sample(reference, 20, seed=1), discrete=())
    worst = int(np.argmax(model.predict_proba(X)[:, 1]))
    one, table = explainer.one(as_record(X.iloc[worst])), explainer(X.iloc[[worst]])
    rules: dict[str, Any] = {"permitted": ["age", "personal_status_and_sex"], "ranges": explainer.credit_ranges()}
    mine, theirs = gig.reasons(one, **rules)[0], gig.reasons(table, **rules)[0]
    told = [[(r.feature, r.credit, r.share, str(r.value)) for r in found.reasons] for found in (mine, theirs)]
    assert told[0] == told[1]
    assert len(told[0]) > 0
    assert one[:, "age"].values.shape == (1, 1)
    assert one.to_frame().shape[0] == 1
    assert one.provenance["data"] == table.provenance["data"]


def test_groups_and_names_of_the_reference() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    model = XGBClassifier(n_estimators=5, n_jobs=1).fit(X, X[:, 0] > 0)  # knows no names
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    explainer = gig.Explainer(model, frame.head(9), groups={"ab": ["a", "b"]})
    one = explainer.one({"c": X[20, 2], "a": X[20, 0], "b": X[20, 1]})
    assert one.feature_names == ("ab", "c")
    assert_same(one, explainer(frame.iloc[20:22]), 0)
    with pytest.raises(gig.errors.InputError, match="'a', 'b', 'c' are not there"):
        explainer.one({"f9": 0.0})


@cache
def small_explainer() -> tuple[gig.Explainer, pd.DataFrame]:
    X, bad = applicants()
    return gig.Explainer(xgboost_model(X, bad), X.iloc[:5], output="margin", discrete=()), X


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r: r.pop("age") and r, "of the model's 21 columns, None where it is missing; 'age' is not there"),
        (lambda r: r | {"Age ": r.pop("age")}, "'age' is not there. For 'age' there is 'Age '"),
        (lambda r: r | {"shoe": 43}, "and nothing else; got 'shoe' as well"),
        (lambda r: r | {"age": "41"}, "must hold a number for 'age'; got the text '41'"),
        (lambda r: r | {"age": [41]}, "must hold one value for 'age'; got a list"),
        (lambda r: r | {"purpose": {"a": 1}}, "must hold one value for 'purpose'; got a dict"),
        (lambda r: r | {"age": float("inf")}, "must be finite: column 'age' is infinite"),
        (lambda r: r | {"age": 10**400}, "must hold numbers below 1e308 in column 'age'"),
        (lambda r: r | {"age": datetime.date(2020, 1, 1)}, "must hold numbers in column 'age'"),
        (lambda r: r | {"purpose": "yacht"}, "must hold categories the model knows in column 'purpose'; 'yacht'"),
        (lambda r: list(r.items()), "The record must be a mapping such as .* got a list"),
        (lambda r: None, "The record must be a mapping such as .* got None"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_record_is_said_in_one_sentence(change: Any, said: str) -> None:
    explainer, X = small_explainer()
    with pytest.raises(gig.errors.InputError, match=said):
        explainer.one(change(as_record(X.iloc[7])))


def test_names_that_lightgbm_writes_with_underscores() -> None:
    X = pd.DataFrame({"credit amount": np.arange(60.0), "age": np.tile([20.0, 30.0, 40.0], 20)})
    explainer = gig.Explainer(LGBMClassifier(n_estimators=5, verbose=-1).fit(X, X["age"] > 25), X.head(9))
    table = explainer(X.iloc[[30, 31]])
    for name in ("credit amount", "credit_amount"):
        assert_same(explainer.one({name: 30.0, "age": 20.0}), table, 0)
