"""Saved Spark pipelines, read without Spark: Spark's own answers, missing values as it takes them, damaged folders."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from office import called
from spark_pipelines import ARCHIVE, awkward, rows_for, table

import gigrad as gig
from gigrad._io.modelfiles import load_model
from gigrad._io.modelfiles.spark_folder import load_spark
from gigrad.importers.spark.columns import TRANSFORMERS
from gigrad.importers.spark.models import MODELS
from gigrad.importers.spark.stages import fitted_as

PAGE = Path(__file__).resolve().parents[2] / "docs" / "spark_ml.md"
NAMES = (
    "gbt", "forest", "scaled_tree", "bounded_tree", "logistic", "multinomial", "two_classes", "linear", "poisson",
    "gamma", "gbt_regressor", "forest_regressor", "xgboost", "xgboost_regressor",
)  # fmt: skip


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spark")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_pipeline_gives_what_spark_gave(saved: Path, name: str) -> None:
    graph = load_spark(saved / name)
    expected = np.array(json.loads((saved / "answers.json").read_text())[name])
    own = expected[:, 1] if expected.shape[1] == 2 else expected if expected.shape[1] > 2 else expected[:, 0]
    rounding = 1e-6 if name.startswith("xgboost") else 1e-12
    np.testing.assert_allclose(graph.predict(rows_for(graph)), own, rtol=rounding, atol=rounding)


@pytest.mark.parametrize("name", ["gbt", "logistic"])
def test_credits_go_to_the_raw_columns(saved: Path, name: str) -> None:
    graph = load_spark(saved / name)
    e = gig.explain(graph, awkward(20, 3), awkward(10, 2))
    assert set(e.feature_names) == {"age", "income", "job", "home", "late"}
    assert np.abs(e.gap).max() < 1e-8
    assert graph.output_names == ("yes",) or graph.output_names == ("no",), "the labels of the StringIndexer"


def test_missing_values_are_those_of_spark(saved: Path) -> None:
    """null is filled by an Imputer whatever its missing value is; what only one of null and NaN is taken for is refused
    where the two differ."""
    forest = load_spark(saved / "forest")
    debt, income = (next(c for c in forest.columns if c.name == n) for n in ("debt", "income"))
    assert (debt.missing_value, debt.missing) == (-1.0, False), "NaN stays NaN and null is filled: neither is taken"
    assert income.missing, "VectorAssembler keeps both as NaN"
    bounded = load_spark(saved / "bounded_tree")
    assert [(c.least, c.most, c.missing) for c in bounded.columns if c.name == "age"] == [(0.0, 120.0, False)]
    with pytest.raises(gig.InputError, match=r"from 0\.0 to 120\.0 in column 'age'.* row 0 has 130\.0"):
        bounded.predict(table(2).assign(age=[130.0, 20.0]))
    with pytest.raises(gig.InputError, match="no missing value in column 'age'"):
        bounded.predict(table(2).assign(age=[np.nan, 20.0]))
    with pytest.raises(gig.InputError, match="'pilot' is not one of"):
        load_spark(saved / "multinomial").predict(awkward(3, 1).assign(job="pilot", home="pilot"))


def test_an_imputer_fills_in_the_type_of_the_column(saved: Path) -> None:
    """Spark casts the number that it fills in to the type of the DataFrame's column, which the table here has."""
    graph = load_spark(saved / "gbt")
    (column,) = [c for c in graph.columns if c.name == "income"]
    assert column.fill is not None
    assert column.fill != np.trunc(column.fill)
    plain = {n: v.to_list() for n, v in table(6).items()}
    plain["income"] = [3, 4, None, 5, None, 6]

    def given(kind: Any) -> pa.Table:
        return pa.table({**plain, "income": pa.array(plain["income"], kind)})

    def filled(number: float) -> Any:
        return graph.predict(
            pa.table({**plain, "income": pa.array([number if v is None else v for v in plain["income"]])})
        )

    assert np.array_equal(graph.predict(given(pa.int32())), filled(float(np.trunc(column.fill))))
    assert np.array_equal(graph.predict(given(pa.int64()).slice(2, 1)), filled(float(np.trunc(column.fill)))[2:3])
    assert np.array_equal(graph.predict(given(pa.float32())), filled(float(np.float32(column.fill))))
    with pytest.warns(gig.ColumnWarning, match="pass integers then"):
        doubles = graph.predict(given(pa.float64()))
    assert np.array_equal(doubles, filled(column.fill))
    with pytest.raises(gig.InputError, match=r"'income' as float64.*of the type decimal"):
        graph.predict(given(pa.decimal128(5, 0)))


def test_numbers_are_indexed_by_their_text(saved: Path) -> None:
    graph = load_spark(saved / "scaled_tree")
    numbers, text = table(9), table(9)
    text["term"] = text["term"].astype(str)
    assert np.array_equal(graph.predict(numbers), graph.predict(text))


def test_the_command_line_reads_a_folder(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = awkward(30, 4)
    rows.to_parquet(tmp_path / "rows.parquet")
    shutil.copytree(saved / "gbt", tmp_path / "model")
    for line in (
        "check model rows.parquet",
        "explain model rows.parquet --reference rows.parquet -q -o credits.parquet",
        "save model --reference rows.parquet -q -o kept.gig",
    ):
        done = called(f"gigrad {line}", tmp_path, monkeypatch)
        assert done.exit_code == 0, done.output
    local = gig.explain(load_model(tmp_path / "model"), rows, rows)
    found = pq.read_table(tmp_path / "credits.parquet")
    credits = np.stack([found[f"credit_{name}"].to_numpy() for name in local.feature_names], axis=1)
    assert np.array_equal(credits, local.values)
    assert np.array_equal(gig.Explainer.load(tmp_path / "kept.gig")(rows).values, local.values)


def test_the_page_lists_what_is_read() -> None:
    text = PAGE.read_text()
    for kind in (*TRANSFORMERS, *MODELS):
        assert f"`{fitted_as(kind)}`" in text, kind


# ---------------------------------------------------------------- folders that are not what they should be


def stage(folder: Path, kind: str) -> Path:
    return next(p for p in (folder / "stages").iterdir() if kind in p.name)


def part(folder: Path) -> Path:
    return next(p for p in folder.iterdir() if p.name.startswith("part-"))


def told(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the metadata of a folder."""
    file = part(folder / "metadata")
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


def nodes(folder: Path, change: Callable[[list[dict[str, Any]]], None]) -> None:
    """Change the nodes of the trees of a folder."""
    file = part(stage(folder, "GBT") / "data")
    rows = pq.read_table(file)
    content = rows.to_pylist()
    change(content)
    pq.write_table(pa.Table.from_pylist(content, schema=rows.schema), file)


def split(value: list[float], categories: int = -1) -> Callable[[list[dict[str, Any]]], None]:
    def change(rows: list[dict[str, Any]]) -> None:
        rows[0]["nodeData"]["split"].update(leftCategoriesOrThreshold=value, numCategories=categories)

    return change


def child(number: int) -> Callable[[list[dict[str, Any]]], None]:
    return lambda rows: rows[0]["nodeData"].update(leftChild=number)


DAMAGES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no threshold": (lambda f: nodes(f, split([float("nan")])), "one finite threshold"),
    "two thresholds": (lambda f: nodes(f, split([1.0, 2.0])), "one finite threshold"),
    "categories beyond": (lambda f: nodes(f, split([7.0], 3)), "categories from 0 to 2"),
    "a cycle": (lambda f: nodes(f, child(0)), "cycle|children"),
    "a child beyond": (lambda f: nodes(f, child(900)), "children|beyond|outside|child"),
    "a feature beyond": (
        lambda f: nodes(f, lambda rows: rows[0]["nodeData"]["split"].update(featureIndex=99)), "one of its 7 features"
    ),
    "no nodes": (lambda f: nodes(f, lambda rows: rows.clear()), "whole saved Spark pipeline"),
    "other numbers": (lambda f: told(stage(f, "GBT"), lambda t: t.update(numFeatures=3)), "one of its 3 features"),
    "huge numbers": (lambda f: told(stage(f, "GBT"), lambda t: t.update(numFeatures=-4)), "features|columns"),
    "no JSON": (lambda f: part(f / "metadata").write_text("{"), "whole saved Spark pipeline"),
    "no Parquet": (lambda f: part(stage(f, "GBT") / "data").write_bytes(b"PAR1"), "whole saved Spark pipeline"),
    "a stage elsewhere": (
        lambda f: told(f, lambda t: t["paramMap"].update(stageUids=["../../secret"])), "one folder for its stage 0"
    ),
    "a stage is gone": (lambda f: shutil.rmtree(stage(f, "Imputer")), "one folder for its stage 2"),
    "splits that fall": (
        lambda f: told(stage(f, "Bucketizer"), lambda t: t["paramMap"].update(splits=[3, 2, 1])), "must be increasing"
    ),
    "another stage": (
        lambda f: told(stage(f, "Imputer"), lambda t: t.update({"class": "org.apache.spark.ml.feature.PCAModel"})),
        "The stage PCA of this Spark pipeline is not supported",
    ),
    "code": (
        lambda f: told(stage(f, "OneHot"), lambda t: t.update({"class": "x.SQLTransformer", "paramMap": {}})),
        "The stage SQLTransformer",
    ),
    "no model": (
        lambda f: told(stage(f, "GBT"), lambda t: t.update({"class": "x.KMeansModel"})), "must have a model"
    ),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_folders_are_refused(saved: Path, tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "gbt"
    shutil.copytree(saved / "gbt", folder)
    change, said = DAMAGES[damage]
    change(folder)
    with pytest.raises((gig.CorruptModelError, gig.UnsupportedModelError), match=said):
        load_spark(folder)


def test_links_are_not_followed(saved: Path, tmp_path: Path) -> None:
    folder = tmp_path / "gbt"
    shutil.copytree(saved / "gbt", folder)
    moved = stage(folder, "Imputer")
    outside = moved.rename(tmp_path / "outside")
    moved.symlink_to(outside)
    with pytest.raises(gig.CorruptModelError, match="does not exist, or is a link"):
        load_spark(folder)


def test_a_folder_of_something_else_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(gig.InputError, match="is a folder that Spark ML has not written"):
        load_model(tmp_path)
