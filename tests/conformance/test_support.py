"""The table of models, the registry, the README and the documentation say the same."""

from __future__ import annotations

from importlib.util import find_spec

from gigrad import supported
from gigrad.importers.pipeline import TRANSFORMERS

from . import support
from .table import ROWS

# Steps of pipelines that the table has under another name, or that are made of others.
COVERED_ELSEWHERE = {
    "FeatureUnion": "nested",
    "FrozenEstimator": "frozen",
    "MissingIndicator": "SimpleImputer",
    "IncrementalPCA": "PCA",
    "TruncatedSVD": "PCA",
    "SelectorMixin": "SelectKBest",
    "ColumnTransformer": "",
    "Pipeline": "",
}


def test_the_readme_has_the_table_of_the_tests() -> None:
    readme = support.README.read_text()
    assert readme == support.with_section(readme), "run: make models"


def test_the_documentation_has_the_table_of_the_tests() -> None:
    assert support.PAGE.read_text() == support.page(), "run: make models"


def test_every_class_of_the_registry_has_a_row() -> None:
    """A class that is said to be supported is fitted and compared by the conformance tests, itself or a subclass."""
    covered = {support.registered(row.model)[0] for row in ROWS if row.library == "scikit-learn"}
    other = {row.package for row in ROWS if row.library != "scikit-learn"}
    for name, where in supported().items():
        if find_spec(f"gigrad.importers.{where.split(':')[0]}") is None:
            continue  # another test's own importer
        package = name.split(".")[0]
        assert name in covered if package == "sklearn" else package in other, name


def test_every_step_has_a_row() -> None:
    options = " ".join(row.options for row in ROWS if row.library == "scikit-learn")
    for name in (n.split(".")[1] for n in TRANSFORMERS if n.startswith("sklearn.")):
        assert COVERED_ELSEWHERE.get(name, name) in options, name
