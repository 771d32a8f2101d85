"""`target` names one output: by the label of a class, else by position; both classes of a binary model have one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from office import typed
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.svm import LinearSVC

import gigrad as gig

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(120, 3)), 1)
CLASS = (X[:, 0] * X[:, 1] + X[:, 2] > 0.1).astype(int)
ENDS, STARTS = X[:12], X[12:40]


def labelled(*labels: Any) -> Any:
    return np.asarray(labels)[CLASS]


def both(model: Any, first: Any, second: Any, **options: Any) -> tuple[gig.Explanation, gig.Explanation]:
    one, two = (gig.explain(model, ENDS, STARTS, target=t, **options) for t in (first, second))
    return one, two


# ------------------------------------------------------------ labels, then positions


@pytest.mark.parametrize(
    ("labels", "asked"),
    [
        ((0, 1), (0, 1)),
        ((0, 1), ("0", "1")),
        ((1, 2), (1, 2)),
        ((-1, 1), (-1, 1)),
        ((0.0, 1.0), (0, 1)),
        ((1.0, 2.0), (1, 2)),  # the label 1.0, not position 1
        ((False, True), (False, True)),
        ((False, True), (0, 1)),
        (("bad", "good"), ("bad", "good")),
        (("bad", "good"), (0, 1)),
        (("1", "0"), ("0", "1")),  # sorted by scikit-learn: "0" comes first
        ((3, 7), (np.int64(3), np.int64(7))),
        ((3, 7), (0, 1)),  # no label: the position
    ],
)
def test_each_of_two_classes_is_what_the_model_says_of_it(labels: Any, asked: Any) -> None:
    model = LogisticRegression().fit(X, labelled(*labels))
    both_classes = model.predict_proba(ENDS)
    for position, e in enumerate(both(model, *asked)):
        assert e.output_names == (str(model.classes_[position]),)
        np.testing.assert_allclose(e.predictions, both_classes[:, position], rtol=0, atol=1e-14)
        np.testing.assert_allclose(e.base_values, model.predict_proba(STARTS)[:, position].mean(), atol=1e-14)
        np.testing.assert_allclose(e.values.sum(axis=1), e.predictions - e.base_values, atol=1e-12)


def test_whole_numbers_are_labels_before_they_are_positions() -> None:
    model = LogisticRegression().fit(X, np.digitize(X[:, 0], [-0.5, 0.5]) + 1)  # classes 1, 2, 3
    for label in (1, 2, 3):
        e = gig.explain(model, ENDS, STARTS, target=label)
        assert e.output_names == (str(label),)
        np.testing.assert_allclose(e.predictions, model.predict_proba(ENDS)[:, label - 1], atol=1e-14)


@pytest.mark.parametrize("bad", ["2", 2, -1, True, 1.5, "bad"])
def test_what_is_neither_label_nor_position_is_refused(bad: Any) -> None:
    model = LogisticRegression().fit(X, CLASS)
    with pytest.raises(gig.InputError, match="target must be one of the outputs '1', '0', or a position from 0 to 1"):
        gig.explain(model, ENDS, STARTS, target=bad)


def test_the_only_output_of_a_regressor() -> None:
    model = LinearRegression().fit(X, X[:, 0])
    assert gig.explain(model, ENDS, STARTS, target=0).output_names == ("prediction",)
    with pytest.raises(gig.InputError, match="left out, as there is no other; got 1"):
        gig.explain(model, ENDS, STARTS, target=1)


# ------------------------------------------------------------ margins, decisions, forests, files of boosters


def test_in_margin_space_the_other_class_is_the_negative() -> None:
    model = lightgbm.LGBMClassifier(n_estimators=5, min_child_samples=5, verbose=-1).fit(X, labelled("bad", "good"))
    bad, good = both(model, "bad", "good", output="margin")
    assert np.array_equal(bad.values, -good.values)
    assert np.array_equal(bad.predictions, -good.predictions)
    decision = LinearSVC().fit(X, CLASS)
    one = gig.explain(decision, ENDS, STARTS, target=0)
    np.testing.assert_allclose(one.predictions, -decision.decision_function(ENDS), atol=1e-12)


def test_a_forest_adds_up_probabilities_in_every_space() -> None:
    model = RandomForestClassifier(4, max_depth=3, random_state=0).fit(X, labelled("bad", "good"))
    for output in (None, "margin"):
        e = gig.explain(model, ENDS, STARTS, target="bad", output=output)
        np.testing.assert_allclose(e.predictions, model.predict_proba(ENDS)[:, 0], atol=1e-14)


def test_boosters_of_a_binary_objective_have_the_classes_0_and_1() -> None:
    xgb = xgboost.XGBClassifier(n_estimators=3, max_depth=2).fit(X, CLASS)
    lgb = lightgbm.LGBMClassifier(n_estimators=3, min_child_samples=5, verbose=-1).fit(X, CLASS)
    for model, booster in ((xgb, xgb.get_booster()), (lgb, lgb.booster_)):
        for target in (0, 1):
            e = gig.explain(booster, ENDS, STARTS, target=target)
            np.testing.assert_allclose(e.predictions, model.predict_proba(ENDS)[:, target], atol=1e-6)


def test_several_labels_at_once_have_both_classes_each() -> None:
    labels = np.stack([CLASS, (X[:, 1] > 0).astype(int)], axis=1)
    for model in (
        MultiOutputClassifier(LogisticRegression()).fit(X, labels),
        RandomForestClassifier(4, max_depth=3, random_state=0).fit(X, labels),
    ):
        own = model.predict_proba(ENDS)
        assert gig.import_model(model).output_names == ("0: 1", "1: 1")
        for target, column in (("0: 0", own[0][:, 0]), ("1: 0", own[1][:, 0]), (1, own[1][:, 1]), (0, own[0][:, 1])):
            np.testing.assert_allclose(gig.explain(model, ENDS, STARTS, target=target).predictions, column, atol=1e-14)


# ------------------------------------------------------------ ranks, averages, files, the command line


def test_a_transform_maps_the_score_of_the_class_that_is_asked_for() -> None:
    model = LogisticRegression().fit(X, CLASS)
    rank = gig.SmoothedECDF.fit(model.predict_proba(X)[:, 0])
    e = gig.explain(model, ENDS, STARTS, target=0, output=rank)
    np.testing.assert_allclose(e.predictions, rank(model.predict_proba(ENDS)[:, 0]), atol=1e-12)
    np.testing.assert_allclose(e.values.sum(axis=1), e.predictions - e.base_values, atol=1e-9)


def test_a_score_that_was_mapped_further_has_one_class_only() -> None:
    model = LogisticRegression().fit(X, CLASS)
    ranked = gig.import_model(model).then(gig.SmoothedECDF.fit(model.predict_proba(X)[:, 1]))
    with pytest.raises(gig.InputError, match="target=0 is the class '0', whose score does not follow"):
        gig.explain(ranked, ENDS, STARTS, target=0)
    assert gig.explain(ranked, ENDS, STARTS, target=1).output_names == ("1",)
    margin = gig.explain(ranked, ENDS, STARTS, target=0, output="margin")  # the margin is as it was
    np.testing.assert_allclose(margin.predictions, -model.decision_function(ENDS), atol=1e-12)


def test_an_average_of_classifiers_is_one() -> None:
    models = [LogisticRegression(C=c).fit(X, CLASS) for c in (0.1, 10.0)]
    for output, own in ((None, "predict_proba"), ("margin", "decision_function")):
        e = gig.explain(gig.average(models, output=output), ENDS, STARTS, target=0)
        parts = [getattr(m, own)(ENDS) for m in models]
        wanted = np.mean([p[:, 0] if p.ndim == 2 else -p for p in parts], axis=0)
        np.testing.assert_allclose(e.predictions, wanted, atol=1e-12)
    mixed = gig.average([models[0], LinearRegression().fit(X, CLASS)])
    with pytest.raises(gig.InputError, match="whose score does not follow from this output"):
        gig.explain(mixed, ENDS, STARTS, target=0)


def test_a_portable_file_keeps_both_classes(tmp_path: Path) -> None:
    model = LogisticRegression().fit(X, labelled("bad", "good"))
    explainer = gig.Explainer(model, STARTS, target="bad")
    explainer.save(tmp_path / "bad.gig")
    loaded = gig.Explainer.load(tmp_path / "bad.gig")(ENDS)
    assert loaded.output_names == ("bad",)
    assert np.array_equal(loaded.values, explainer(ENDS).values)
    graph = gig.Graph.load(tmp_path / "bad.gig")
    assert np.array_equal(gig.explain(graph, ENDS, STARTS, target=0).values, loaded.values)


def test_reasons_and_their_stability_are_about_the_class_that_is_asked_for() -> None:
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    model = LogisticRegression().fit(table, labelled("bad", "good"))
    good = model.predict_proba(table)[:, 1]
    approved, refused = table[good > 0.6], table[good < 0.4].head(5)
    by_good = gig.reasons(gig.explain(model, refused, approved, target="good"), higher_is_better=True)
    by_bad = gig.reasons(gig.explain(model, refused, approved, target="bad"), higher_is_better=False)
    assert [[r.feature for r in a.reasons] for a in by_good] == [[r.feature for r in a.reasons] for a in by_bad]
    found = gig.reason_stability(model, refused, approved, target="bad", higher_is_better=False, bootstrap=0)
    assert {c.kind for c in found.changes} == {"margin", "rank"}


def test_the_command_line_knows_both_classes(tmp_path: Path) -> None:
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    model = xgboost.XGBClassifier(n_estimators=3, max_depth=2).fit(table, CLASS)
    model.save_model(tmp_path / "m.json")
    table.to_csv(tmp_path / "x.csv", index=False)
    for target in (0, 1):
        done = typed(f"gigrad explain m.json x.csv --reference x.csv --target {target} -o out{target}.csv", tmp_path)
        assert done.returncode == 0, done.stderr
        out = pd.read_csv(tmp_path / f"out{target}.csv")
        np.testing.assert_allclose(out["prediction"], model.predict_proba(table)[:, target], atol=1e-6)
