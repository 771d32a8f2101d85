"""The options of reasons: one object from which tables, Spark, the service and the command line take theirs."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any

import pyarrow as pa
import pytest
from sklearn.tree import DecisionTreeRegressor

import gigrad as gig
from gigrad import spark
from gigrad._common.reason_options import ReasonKeywords, ReasonOptions
from gigrad.batch.reasons import reason_task

NAMES = [f.name for f in fields(ReasonOptions)]


def test_options_are_the_parameters_of_reasons_with_their_defaults() -> None:
    own = inspect.signature(gig.reasons).parameters
    of_one_explanation = {"explanation", "ranges", "row_ids"}
    assert set(NAMES) == set(own) - of_one_explanation
    assert {f.name: f.default for f in fields(ReasonOptions)} == {n: own[n].default for n in NAMES}
    assert list(ReasonKeywords.__annotations__) == NAMES


def test_spark_shows_every_option_in_its_signature() -> None:
    shown = inspect.signature(spark.reasons).parameters
    assert {n: shown[n].default for n in NAMES} == {f.name: f.default for f in fields(ReasonOptions)}


def test_commands_have_every_option_but_groups_which_a_configuration_has() -> None:
    pytest.importorskip("typer")
    from gigrad.cli.options import OPTIONS, Config

    assert set(NAMES) - set(OPTIONS) == {"groups"}
    assert "groups" in {f.name for f in fields(Config)}


def test_an_unknown_option_is_an_error_that_names_the_nearest_one() -> None:
    model = DecisionTreeRegressor().fit([[0.0], [1.0]], [0.0, 1.0])
    explainer = gig.Explainer(model, [[0.0]])
    wrong: dict[str, Any] = {"everybody": True, "min_shares": 0.1}
    with pytest.raises(TypeError, match="'min_shares'; did you mean 'min_share'"):
        reason_task(explainer, pa.schema([("x0", pa.float64())]), **wrong)
