"""CatBoost knows categories by the hashes of their labels: the hashes, joined models, portable files, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conformance import data, rows_catboost, rows_lightgbm

import gigrad as gig
from gigrad.errors import InputError, UnsupportedModelError
from gigrad.graph.cityhash import category_hash
from gigrad.importers.catboost.statistics import known_hashes
from gigrad.testing import check_importer


def test_hashes_of_labels_are_catboosts_own(tmp_path: Path) -> None:
    import catboost
    import pandas as pd

    rng = np.random.default_rng(0)
    letters = np.array(list("abcXYZ 0129éß_-"))
    labels = ["".join(rng.choice(letters, n)) for n in [*range(1, 140), 200, 400, 1000]] + ["", "nan", "-5"]
    table = catboost.Pool(pd.DataFrame({"a": labels}), label=np.arange(len(labels)) % 2, cat_features=["a"])
    model = catboost.CatBoostClassifier(**rows_catboost.SETTINGS).fit(table)
    model.save_model(str(tmp_path / "model.json"), format="json", pool=table)
    stored = json.loads((tmp_path / "model.json").read_text())["features_info"]["cat_features_hash"]
    assert len(stored) == len(set(labels))
    assert {category_hash(pair["value"]): pair["value"] for pair in stored} == {p["hash"]: p["value"] for p in stored}


def test_integers_and_booleans_hash_as_the_text_catboost_makes_of_them() -> None:
    assert category_hash(7) == category_hash(np.int64(7)) == category_hash("7")
    assert category_hash(True) == category_hash(1) == category_hash("1")
    with pytest.raises(InputError, match="string or an integer"):
        category_hash(1.5)


@pytest.mark.parametrize("kind", ["CatBoostClassifier", "CatBoostRegressor"])
def test_every_column_of_a_combination_is_a_player(kind: str) -> None:
    y = rows_catboost.together()
    model, X = rows_catboost.combined(kind, y if "Regressor" in kind else y > 1.0, iterations=40, depth=6)
    kinds = [e["combination_element"] for c in rows_catboost.statistics_of(model) for e in c["elements"][1:]]
    assert {"cat_feature_value", "float_feature"} <= set(kinds)
    report = check_importer(model, X, pairs=12, changes=5)
    assert report.largest_difference < 1e-12


def test_a_combination_with_a_test_for_one_label() -> None:
    """Columns with few labels enter combinations as "is it this label"."""
    y = rows_catboost.together()
    model, X = rows_catboost.combined("CatBoostRegressor", y, one_hot_max_size=3, iterations=40, depth=6)
    kinds = [e["combination_element"] for c in rows_catboost.statistics_of(model) for e in c["elements"]]
    assert "cat_feature_exact_value" in kinds
    check_importer(model, X, pairs=12, changes=5)


def dump_of(model: Any, folder: Path) -> dict[str, Any]:
    model.save_model(str(folder / "model.json"), format="json")
    found: dict[str, Any] = json.loads((folder / "model.json").read_text())
    return found


def test_labels_that_only_combinations_tell_of_are_found(tmp_path: Path) -> None:
    model, X = rows_catboost.combined("CatBoostRegressor", rows_catboost.together(), iterations=40)
    dump = dump_of(model, tmp_path)
    info = dump["features_info"]
    labels = known_hashes(dump)
    present = [{category_hash(v) for v in X[name].unique()} for name in ("purpose", "grade")]
    assert [set(labels[0]), set(labels[1])] == present
    for category in (0, 1):
        others = [c for c in info["ctrs"] if [e.get("cat_feature_index") for e in c["elements"]] != [category]]
        assert len(others) < len(info["ctrs"])
        found = known_hashes({**dump, "features_info": {**info, "ctrs": others}})
        assert set(found[category]) == present[category]
    pairs = [c for c in info["ctrs"] if [e.get("cat_feature_index") for e in c["elements"]] == [0, 1]]
    with pytest.raises(UnsupportedModelError, match=r"'purpose', 'grade'\. Train it with store_all_simple_ctr"):
        known_hashes({**dump, "features_info": {**info, "ctrs": pairs}})


def test_combinations_too_many_to_try_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model, _ = rows_catboost.combined("CatBoostRegressor", rows_catboost.together())
    monkeypatch.setattr("gigrad.importers.catboost.statistics._MOST", 3)
    with pytest.raises(UnsupportedModelError, match="too many to try"):
        gig.import_model(model)


def test_combinations_are_found_in_parts_where_they_do_not_fit_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    model, X = rows_catboost.combined("CatBoostRegressor", rows_catboost.together())
    monkeypatch.setattr("gigrad.importers.catboost.statistics._FRONT", 4)
    check_importer(model, X)


def test_a_portable_explainer_of_combined_columns(tmp_path: Path) -> None:
    model, X = rows_catboost.combined("CatBoostClassifier", rows_catboost.together() > 1.0)
    explainer = gig.Explainer(model, X[:30])
    explainer.save(tmp_path / "combined.gig")
    found = gig.Explainer.load(tmp_path / "combined.gig")(X[30:40])
    np.testing.assert_array_equal(found.values, explainer(X[30:40]).values)


def test_credit_of_a_category_catboost_knows_by_hash() -> None:
    model, X = rows_catboost.fit(
        "CatBoostRegressor", rows_catboost.labels(), data.target() + 5 * data.frame_target(), **rows_catboost.CATEGORIES
    )
    found = gig.explain(model, X[:5], X[:40])
    assert np.abs(found.gap).max() < 1e-12 * np.abs(found.predictions).max()
    assert (found.values[:, list(X.columns).index("purpose")] != 0).any()


def fitted(rows: slice = slice(None)) -> tuple[Any, Any]:
    table = rows_catboost.labels()[rows]
    target = (data.target() + data.frame_target())[rows]
    return rows_catboost.fit("CatBoostRegressor", table, target, **rows_catboost.CATEGORIES)


def test_a_column_known_by_hash_joins_the_same_column_known_by_label() -> None:
    catboost, table = fitted()
    labelled = table.astype({"purpose": "category", "grade": "category"})
    lightgbm, _ = rows_lightgbm.fit("LGBMRegressor", labelled, data.target(), **rows_lightgbm.CATEGORIES)
    found = gig.explain(gig.average([catboost, lightgbm]), labelled[:4], labelled[:50])
    apart = [gig.explain(model, labelled[:4], labelled[:50]).values for model in (catboost, lightgbm)]
    np.testing.assert_allclose(found.values, np.mean(apart, axis=0), atol=1e-12)
    with pytest.raises(InputError, match="'yacht'"):  # LightGBM takes it for missing, CatBoost for a new label
        gig.explain(gig.average([catboost, lightgbm]), labelled[:4].assign(purpose="yacht"), labelled[:50])


def test_columns_known_by_different_hashes_join() -> None:
    (first, table), (second, _) = fitted(), fitted(slice(100, None))
    found = gig.explain(gig.average([first, second]), table[:4], table[:50])
    apart = [gig.explain(model, table[:4], table[:50]).values for model in (first, second)]
    np.testing.assert_allclose(found.values, np.mean(apart, axis=0), atol=1e-12)


def test_a_portable_explainer_still_reads_labels(tmp_path: Path) -> None:
    model, table = fitted()
    explainer = gig.Explainer(model, table[:30])
    explainer.save(tmp_path / "catboost.gig")
    found = gig.Explainer.load(tmp_path / "catboost.gig")(table[:5])
    np.testing.assert_array_equal(found.values, explainer(table[:5]).values)


@pytest.mark.parametrize("kind", ["text_features", "embedding_features"])
def test_text_and_embeddings_are_refused_by_name(kind: str) -> None:
    import catboost
    import pandas as pd

    rng = np.random.default_rng(0)
    words = rng.choice(["good old loan", "bad new car", "red house"], 60)
    vectors = [rng.normal(size=3).tolist() for _ in range(60)]
    table = pd.DataFrame({"amount": rng.normal(size=60), "note": words if kind == "text_features" else vectors})
    model = catboost.CatBoostClassifier(**{**rows_catboost.SETTINGS, kind: ["note"]})
    model.fit(table, (table["amount"] > 0).astype(int))
    with pytest.raises(UnsupportedModelError, match=rf"CatBoost models with {kind} cannot be imported.*'note'"):
        gig.explain(model, table[:5], table[5:])


def test_one_row_with_integer_categories_beside_decimals_is_read_as_in_a_table() -> None:
    """A row of a pandas frame of numbers is one of floats: a category of 2 must not become 2.0."""
    import catboost
    import pandas as pd

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"code": rng.integers(0, 5, 200), "x": rng.normal(size=200)})
    y = (X["code"] % 2 + X["x"] > 0.5).astype(int)
    model = catboost.CatBoostClassifier(
        iterations=5, depth=2, cat_features=["code"], one_hot_max_size=9, verbose=0, thread_count=1,
        allow_writing_files=False,
    ).fit(X, y)  # fmt: skip
    explainer = gig.Explainer(model, X.tail(20))
    np.testing.assert_array_equal(explainer(X.iloc[[3]]).values, explainer(X.iloc[2:5]).values[[1]])
