"""The table of models, the registry, the README and the documentation say the same."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from gigrad import supported
from gigrad.importers.pipeline import TRANSFORMERS

from . import estimators, support
from .table import ROWS

# Steps of pipelines that the table has under another name, or that are made of others.
COVERED_ELSEWHERE = {
    "FeatureUnion": "nested",
    "FrozenEstimator": "frozen",
    "MissingIndicator": "SimpleImputer",
    "BaseRandomProjection": "GaussianRandomProjection",
    "StackingClassifier": "StackingRegressor",
    "SelectorMixin": "SelectKBest",
    "ColumnTransformer": "",
    "Pipeline": "",
}


def test_the_readme_has_the_table_of_the_tests() -> None:
    readme = support.README.read_text()
    assert readme == support.with_section(readme), "run: make models"


def test_the_documentation_has_the_table_of_the_tests() -> None:
    assert support.PAGE.read_text() == support.page(), "run: make models"


# Every row would start Spark and ask it dozens of times; its pipelines are compared from files that Spark has written.
COMPARED_ELSEWHERE = {"pyspark": "importers/test_spark_pipelines.py"}


def test_every_class_of_the_registry_has_a_row() -> None:
    """A class that is said to be supported is fitted and compared by the conformance tests, itself or a subclass."""
    covered = {support.registered(row.model)[0] for row in ROWS if row.library == "scikit-learn"}
    other = {row.package for row in ROWS if row.library != "scikit-learn"}
    for name, where in supported().items():
        if find_spec(f"gigrad.importers.{where.split(':')[0]}") is None:
            continue  # another test's own importer
        package = name.split(".")[0]
        if package in COMPARED_ELSEWHERE:
            assert (Path(__file__).parents[1] / COMPARED_ELSEWHERE[package]).is_file()
            continue
        assert name in covered if package == "sklearn" else package in other, name


def test_every_step_has_a_row() -> None:
    options = " ".join(row.options for row in ROWS if row.library == "scikit-learn")
    for name in (n.split(".")[1] for n in TRANSFORMERS if n.startswith("sklearn.")):
        assert COVERED_ELSEWHERE.get(name, name) in options, name


of_the_page = pytest.mark.skipif(
    estimators.VERSION not in estimators.PAGE.read_text(), reason="the page lists another version of scikit-learn"
)


@of_the_page
def test_the_page_has_every_estimator_of_scikit_learn() -> None:
    assert estimators.PAGE.read_text() == estimators.page(), "run: make models"


@of_the_page
def test_every_estimator_of_scikit_learn_is_explained_or_refused_with_a_reason() -> None:
    known = estimators.estimators()
    without = [n for n, c in known if not (estimators.is_model(c) or estimators.is_step(c) or estimators.why_not(n))]
    assert not without, "an importer, a step or a reason is missing"
    idle = set(estimators.OTHERS) - {n for n, c in known if not (estimators.is_model(c) or estimators.is_step(c))}
    assert not idle, "a reason is given for what is supported, or what does not exist"
