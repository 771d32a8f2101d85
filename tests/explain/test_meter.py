"""How far long work is: shown after a while, where somebody looks, or as asked."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forests import graph_of, random_forest
from unchecked import unchecked

import gigrad as gig
from gigrad import kernels
from gigrad._common import progress
from gigrad.graph import Column, Input


def explained(rows: int, **options: Any) -> gig.Explanation:
    columns = tuple(Column(f"x{j}") for j in range(6))
    source = Input(6)
    graph = graph_of(columns, source, random_forest(np.random.default_rng(1), columns, source, trees=40, depth=6))
    X = np.random.default_rng(0).normal(size=(rows, 6))
    return gig.explain(graph, X, X[:400], n_threads=1, **options)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines from the start, without a bar."""
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "EVERY", 0.0)
    monkeypatch.setitem(sys.modules, "tqdm", None)


def test_long_work_says_how_far_it_is(eager: None, capsys: pytest.CaptureFixture[str]) -> None:
    quiet = explained(4000, progress=False)
    assert capsys.readouterr().err == ""
    told = explained(4000, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines
    assert all(line.startswith("explaining: ") and "of 4,000 rows" in line for line in lines)
    np.testing.assert_array_equal(quiet.values, told.values)


def test_nothing_is_said_in_the_first_two_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    explained(50, progress=True)
    assert capsys.readouterr().err == ""


def test_the_configuration_decides_where_a_call_does_not(
    eager: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    explained(4000)  # nobody looks at a pipe
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(gig.config, "progress", True)
    explained(4000)
    assert capsys.readouterr().err != ""
    for bad in ("yes", 2.5):
        with pytest.raises(gig.InputError, match="progress must be True, False or None"):
            gig.config.progress = unchecked(bad)
    with pytest.raises(gig.InputError, match="progress must be True, False or None; got 'no'"):
        explained(3, progress="no")


def test_a_line_has_the_rate_and_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    meter = progress.Meter("explaining", 1000)
    meter.last = 0.25
    assert meter.line(110.0) == "explaining: 25% of 1,000 rows, 25 a second, 30 s left"
    meter.last = 0.01
    assert meter.line(200.0) == "explaining: 1% of 1,000 rows, 0.1 a second, 2.8 h left"


def test_an_error_of_who_watches_ends_the_call() -> None:
    def watch(done: float) -> None:
        raise RuntimeError(f"enough at {done:.1f}")

    with kernels.watched(watch), pytest.raises(RuntimeError, match="enough at"):
        explained(20_000)
    assert kernels.watcher() is None
    explained(3)


def test_mixed_ensembles_say_how_far_they_are(eager: None, capsys: pytest.CaptureFixture[str]) -> None:
    from sklearn.neural_network import MLPRegressor
    from sklearn.tree import DecisionTreeRegressor

    X = np.random.default_rng(2).normal(size=(600, 3))
    parts = [MLPRegressor(hidden_layer_sizes=(8,), max_iter=20, random_state=0), DecisionTreeRegressor(max_depth=4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = gig.average([part.fit(X, X[:, 0] * X[:, 1]) for part in parts])
    gig.explain(model, X[:40], X[:100], n_threads=1, progress=True)
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("explaining: ")]
    told = shares_told("\n".join(lines), "explaining")
    assert told == sorted(told)
    assert told[-1] == 100


def small_graph() -> gig.Graph:
    columns, source = tuple(Column(f"x{j}") for j in range(6)), Input(6)
    return graph_of(columns, source, random_forest(np.random.default_rng(1), columns, source, trees=40, depth=6))


def shares_told(text: str, what: str) -> list[float]:
    lines = text.splitlines()
    assert lines
    assert all(line.startswith(f"{what}: ") for line in lines)
    return [float(line.split("%")[0].split()[-1]) for line in lines]


def test_gaps_stability_reports_and_explainers_say_how_far_they_are(
    eager: None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from sklearn.tree import DecisionTreeRegressor

    random, graph = np.random.default_rng(0), small_graph()
    X = np.round(random.normal(size=(20_000, 6)) * 4)

    def told(what: str, call: Any) -> list[float]:
        call(False)
        assert capsys.readouterr().err == ""
        call(True)
        return shares_told(capsys.readouterr().err, what)

    gap = told("explaining the gap", lambda show: gig.explain_gap(graph, X[:90], X[90:290], bootstrap=2, progress=show))
    assert gap == sorted(gap)
    assert gap[-1] == 100
    tree = DecisionTreeRegressor(max_depth=3).fit(X, X[:, 0])
    built = told("scoring the reference", lambda show: gig.Explainer(tree, X, progress=show))
    assert built[-1] == 100
    few, reference = X[:12], X[100:400]
    options: Any = {"bootstrap": 3, "higher_is_better": True, "spaces": {}, "discrete": ["x0"], "draws": 2}
    options["measurement_error"] = {"x1": 1.0}
    capsys.readouterr()
    gig.reason_stability(graph, few, reference, progress=True, **options)
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("trying the reasons: ")]
    shares = shares_told("\n".join(lines), "trying the reasons")
    assert shares == sorted(shares)
    assert shares[-1] == 100
    gig.report(graph, few, reference, tmp_path / "r.html", paths=3, progress=True)
    shares = shares_told(
        "\n".join(line for line in capsys.readouterr().err.splitlines() if line.startswith("explaining")), "explaining"
    )
    assert shares == sorted(shares)
    assert shares[-1] == 100


def test_a_large_reference_says_what_it_costs_before_the_work_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    from gigrad._explain import cost

    X = np.random.default_rng(0).normal(size=(3000, 6))
    monkeypatch.setattr(cost, "LARGE", 3000)
    graph = small_graph()
    with pytest.warns(gig.CostWarning) as said:
        explainer = gig.Explainer(graph, X)
    (message,) = [str(w.message) for w in said]
    assert "The reference has 3,000 rows, and each explained row will take about " in message
    assert "references.sample(r, 1000)" in message
    assert "references.distill(r, 100)" in message
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explainer(X[:2])  # said once
        gig.Explainer(graph, X[:2999])
