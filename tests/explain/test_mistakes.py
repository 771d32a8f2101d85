"""What newcomers get wrong first, and what they are told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier
from unchecked import unchecked

import gigrad as gig

X = pd.DataFrame({"age": [20.0, 30.0, 40.0, 50.0], "credit_amount": [1.0, 5.0, 2.0, 4.0]})
GOOD = np.array([0, 1, 0, 1])
MODEL = DecisionTreeClassifier().fit(X, GOOD)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (None, r"a fitted object; got None"),
        (DecisionTreeClassifier, r"got the class DecisionTreeClassifier\. Pass DecisionTreeClassifier\(\.\.\.\)\.fit"),
        ("model.json", r"path 'model\.json'\. Load it with its own library first"),
        (Path("model.json"), r"path 'model\.json'"),
        ([MODEL, MODEL], r"got a list of 2\. Join several with gigrad\.stack or gigrad\.average"),
        (X, r"got a DataFrame\. The model comes first, tables after it"),
        (X.to_numpy(), r"got a ndarray\. The model comes first, tables after it"),
        (MODEL.predict_proba, r"not its method 'predict_proba'"),
        ({"model": MODEL}, r"A builtins\.dict cannot be imported\. Supported are .*catboost: CatBoost"),
    ],
)
def test_something_else_in_the_place_of_the_model(model: Any, said: str) -> None:
    with pytest.raises(gig.UnsupportedModelError, match=said):
        gig.explain(model, X, X)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ({"age": 20.0, "credit_amount": 1.0}, r"got a dict\. Pass pandas\.DataFrame\(\[row\]\) for one row"),
        ([{"age": 20.0, "credit_amount": 1.0}], r"got a list of dicts\. Pass pandas\.DataFrame\(rows\)"),
        (GOOD == 0, r"it has 1\. A mask chooses rows: pass table\[mask\]"),
        (GOOD, r"it has 1\. For one row, pass \[row\]"),
        (X.rename(columns={"age": "Age "}), r"'age' is missing\. For 'age' there is 'Age '\.$"),
        (X.rename(columns={"credit_amount": "credit_amt"}), r"For 'credit_amount' there is 'credit_amt'\.$"),
        (X.rename(columns={"age": "z"}), r"'age' is missing\.$"),
    ],
)
def test_something_else_in_the_place_of_a_table(rows: Any, said: str) -> None:
    with pytest.raises(gig.InputError, match=rf"X must .*{said}"):
        gig.explain(MODEL, rows, X)
    with pytest.raises(gig.InputError, match=rf"reference must .*{said}"):
        gig.explain(MODEL, X, rows)


def test_the_class_of_a_binary_model_as_its_target() -> None:
    with pytest.raises(gig.InputError, match="one of the outputs '1', '0', or a position from 0 to 1; got 2"):
        gig.explain(MODEL, X, X, target=2)
    three = DecisionTreeClassifier().fit(X, [0, 1, 2, 2])
    with pytest.raises(gig.InputError, match="outputs '0', '1', '2', or a position from 0 to 2; got 3"):
        gig.explain(three, X, X, target=3)


def test_python_says_which_name_may_have_been_meant() -> None:
    asked = subprocess.run([sys.executable, "-c", "import gigrad; gigrad.explian"], capture_output=True, text=True)
    assert asked.stderr.endswith("no attribute 'explian'. Did you mean: 'explain'?\n")


def test_without_data_frames_the_extra_that_brings_them_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    e = gig.explain(MODEL, X.to_numpy(), X.to_numpy())
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert type(e.summary()).__module__.startswith("polars")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(gig.MissingDependencyError, match=r'package pandas.*"gigrad\[frames\]"'):
        e.summary()


def test_a_file_of_another_kind_than_its_name_says(tmp_path: Path) -> None:
    e = gig.explain(MODEL, X, X)
    with pytest.raises(gig.InputError, match=r"a saved explanation must end in \.parquet; got .*e\.csv"):
        e.save(tmp_path / "e.csv")
    for wrong in (
        lambda: e.report(tmp_path / "e.pdf"),
        lambda: gig.report("no model, which is not even looked at", X, X, tmp_path / "e.pdf"),
    ):
        with pytest.raises(gig.InputError, match=r"a report must end in \.html; got .*e\.pdf"):
            wrong()
    with pytest.raises(gig.InputError, match="a report goes to a file, whose path must be text or a Path; got an int"):
        e.report(unchecked(3))
    assert list(tmp_path.iterdir()) == []


def test_no_models_at_all() -> None:
    with pytest.raises(gig.InputError, match="average must be given a list of one or more models; got an empty one"):
        gig.average([])
    with pytest.raises(gig.InputError, match="models; got a DecisionTreeClassifier"):
        gig.stack(MODEL, head=[1.0])


def test_a_gap_without_a_bootstrap_claims_no_intervals() -> None:
    text = str(gig.explain_gap(MODEL, X[:2], X[2:], bootstrap=0))
    assert "nan" not in text
    assert "*" not in text
    assert "interval" not in text
    assert "95% interval" in str(gig.explain_gap(MODEL, X[:2], X[2:], bootstrap=5))
