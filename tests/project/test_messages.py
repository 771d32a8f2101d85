"""Messages: numbers as people write them, and the way out where columns have other names."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gigrad as gig
from gigrad._io.tables import read_rows
from gigrad.errors import warn

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(RNG.normal(size=(40, 2)), columns=["debt", "income"])
Y = (TABLE["debt"] > 0).astype(int)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (np.float64(0.44), "0.44"),
        (np.float32(-1e-7), "-1e-07"),
        (np.int8(3), "3"),
        (np.float64("nan"), "nan"),
        (np.True_, "True"),
        (np.str_("x y"), "'x y'"),
        ([np.float64(1.5), np.uint16(2)], "[1.5, 2]"),
        (np.array([1.0, 2.0]), "array([1., 2.])"),
        ("np.mean", "'np.mean'"),
    ],
)
def test_no_message_names_numpys_types(value: Any, shown: str) -> None:
    error = gig.InputError(f"something else must be given; got {value!r}.")
    assert str(error) == f"something else must be given; got {shown}."
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn(f"got {value!r}.", gig.AccuracyWarning)
    assert str(caught[0].message) == f"got {shown}."


def test_a_mismatch_shows_plain_numbers() -> None:
    wrong = gig.function(lambda x: x[:, 0], lambda x: np.ones_like(x), 1)
    odd = gig.Graph(wrong.columns, wrong.input, wrong.input, wrong.input, ("x0",), witnesses=wrong.witnesses)
    witness = type(wrong.witnesses[0])(odd.score, lambda rows: rows.matrix + 1.0, "model")
    with pytest.raises(gig.ModelMismatchError, match=r"the model says 1\.25, the graph 0\.25 \("):
        witness.check(read_rows([[0.25]], odd, what="X"), {odd.score: np.array([[0.25]])})


@pytest.mark.parametrize(
    "model",
    [
        xgboost.train({"nthread": 1}, xgboost.DMatrix(TABLE.to_numpy(), Y, feature_names=["u", "v"]), 3),
        make_pipeline(StandardScaler(), LogisticRegression()).fit(TABLE.set_axis(["u", "v"], axis=1), Y),
    ],
    ids=["xgboost", "pipeline"],
)
def test_a_table_with_other_names_is_told_how_to_map_them(model: Any) -> None:
    with pytest.raises(gig.InputError, match=r"'u', 'v' are missing\..*names its columns 'debt', 'income'.*with_colu"):
        gig.explain(model, TABLE[:5], TABLE[5:])
    renamed = gig.import_model(model).with_columns(TABLE.columns)
    by_name, by_place = (
        gig.explain(renamed, TABLE[:5], TABLE[5:]),
        gig.explain(model, TABLE[:5].to_numpy(), TABLE[5:].to_numpy()),
    )
    np.testing.assert_array_equal(by_name.values, by_place.values)
    assert by_name.feature_names == ("debt", "income")
    with pytest.raises(gig.InputError, match=r"'u', 'v' are missing\.$"):
        gig.explain(model, TABLE[["debt"]], TABLE[["debt"]])
