"""Functions of one straight score in closed form, and steep curves that few nodes would miss."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from forests import graph_of
from sklearn.linear_model import LogisticRegression

import gigrad as gig
from gigrad.engine import mixed
from gigrad.graph import (
    Affine,
    Column,
    Concat,
    Elementwise,
    Fill,
    Graph,
    Input,
    Lookup,
    Node,
    Opaque,
    PiecewiseLinear,
    Select,
    Softmax,
    Tree,
    assemble,
)  # fmt: skip
from gigrad.testing import brute_force

WEIGHT = np.array([[1.5, -2.0, 0.7]])
COLUMNS = tuple(Column(f"x{j}") for j in range(3))


def linked(top: str) -> Graph:
    source = Input(3)
    score: Node = Affine(source, WEIGHT, np.array([0.2]))
    if top == "ranked":
        score = PiecewiseLinear(
            Elementwise(score, "sigmoid"), np.array([0.1, 0.4, 0.5, 0.9]), np.array([0, 0.6, 0.7, 1])
        )
    else:
        score = Elementwise(score, top)
    return graph_of(COLUMNS, source, score)


@pytest.fixture
def unwalked(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("the closed form is enough")

    monkeypatch.setattr(mixed, "attribute", never)


@pytest.mark.usefixtures("unwalked")
@pytest.mark.parametrize("top", ["sigmoid", "exp", "relu", "ranked"])
def test_a_link_over_a_linear_score_equals_the_definition(top: str) -> None:
    rng = np.random.default_rng(len(top))
    starts, ends = rng.normal(size=(6, 3)), rng.normal(size=(6, 3))
    level = np.array([2.0, 1.0, -1.0 / 0.7])  # a move along which the score stays as it is
    ends[0] = starts[0] + level - WEIGHT[0] * (level @ WEIGHT[0]) / (WEIGHT[0] @ WEIGHT[0])
    ends[1] = starts[1] + (ends[0] - starts[0]) + 1e-7
    graph = linked(top)
    e = gig.explain_pairs(graph, starts, ends, discrete=())
    for i in range(len(starts)):
        want = brute_force(graph, starts[i], ends[i])[:, 0]
        np.testing.assert_allclose(e.values[i], want, atol=1e-10)
        assert (np.abs(e.values[i] - want) <= e.error[i] + 1e-11 + 1e-14 * np.abs(want).max()).all()


@pytest.mark.usefixtures("unwalked")
def test_a_logistic_regression_against_3000_references_is_exact_as_it_comes() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3040, 8)) * np.array([1, 1, 1, 5, 5, 0.1, 0.1, 30])
    y = (X @ rng.normal(size=8) + rng.normal(size=len(X)) > 0).astype(int)
    model = LogisticRegression(C=100.0, max_iter=3000).fit(X, y)
    rows, reference = X[:40], X[40:]
    with warnings.catch_warnings():
        warnings.simplefilter("error", gig.AccuracyWarning)
        e = gig.explain(model, rows, reference)
    z, z0 = model.decision_function(rows), model.decision_function(reference)
    p, p0 = model.predict_proba(rows)[:, 1], model.predict_proba(reference)[:, 1]
    chord = (p[:, None] - p0) / (z[:, None] - z0)
    want = np.stack([(chord[i][:, None] * (rows[i] - reference)).mean(axis=0) for i in range(40)]) * model.coef_[0]
    np.testing.assert_allclose(e.values, want, atol=1e-12)
    assert (e.error <= 1e-6 * np.maximum(e.predictions, e.base_values)).all()


def test_columns_that_jump_leave_the_straight_line() -> None:
    source = Input(3)
    category = Lookup(source, 0, np.array([[0.0], [1.0], [-0.5]]), np.zeros(1), np.zeros(1))
    numbers = Fill(Select(source, (1, 2)), np.array([0.3, -0.2]))
    score = Affine(Concat((category, numbers)), np.array([[1.0, -1.0, 2.0]]), np.zeros(1))
    columns = (Column("c", "category"), Column("x"), Column("y"))
    graph = graph_of(columns, source, Elementwise(score, "sigmoid"))
    starts = np.array([[0, 0.1, 0.2], [1, 0.1, 0.2], [0, np.nan, 0.2], [2, np.nan, 1.0]])
    ends = np.array([[0, 1.0, -0.2], [0, 1.0, -0.2], [0, 1.0, -0.7], [2, np.nan, -1.0]])
    e = gig.explain_pairs(graph, starts, ends, tol=1e-10, discrete=())
    for i in range(len(starts)):
        np.testing.assert_allclose(e.values[i], brute_force(graph, starts[i], ends[i])[:, 0], atol=1e-9)
    both = gig.explain(graph, ends, starts, tol=1e-10)
    pairs = [gig.explain_pairs(graph, starts, np.repeat(end[None], 4, 0), tol=1e-10).values.mean(0) for end in ends]
    np.testing.assert_allclose(both.values, pairs, atol=1e-12)


# ---------------------------------------------------------------- steep curves


@pytest.mark.parametrize("steepness", [1.0, 300.0])
def test_steep_softmaxes_reach_the_tolerance_and_equal_the_definition(steepness: float) -> None:
    rng = np.random.default_rng(11)
    source = Input(3)
    logits = Affine(source, steepness * rng.normal(size=(3, 3)), steepness * 0.1 * rng.normal(size=3))
    score = Softmax(logits)
    graph = Graph(COLUMNS, source, score, score, ("a", "b", "c"))
    starts, ends = rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error", gig.AccuracyWarning)
        e = gig.explain_pairs(graph, starts, ends, discrete=())
    for i in range(2):
        want = brute_force(graph, starts[i], ends[i])
        assert (np.abs(e.values[i] - want).max(axis=0) <= e.error[i] + 1e-10).all()


def test_a_step_that_hides_beyond_the_outermost_node_is_found() -> None:
    """The net changes in the last thousandth of the path, where no node of a first panel lies; trees sit on top."""
    source = Input(3)

    def late(x: np.ndarray) -> np.ndarray:
        return 1.0 / (1.0 + np.exp(-np.maximum(4e4 * (x - 1.0) + 8.0, -700.0)))

    bend = Opaque(Select(source, (0,)), 1, late, lambda x, c: 4e4 * late(x) * (1.0 - late(x)) * c)
    stump = Tree(np.array([1, -1, -1]), np.array([0.5, 0, 0]), np.array([1, -1, -1]), np.array([2, -1, -1]),
                 np.zeros(3, bool), np.array([0.0, 0.2, 1.0]))  # fmt: skip
    both = Concat((bend, assemble(source, [stump], np.zeros(1)), Select(source, (2,))))
    graph = graph_of(COLUMNS, source, Elementwise(Affine(both, np.array([[1.0, 0.5, 0.3]]), np.zeros(1)), "tanh"))
    start, end = np.zeros(3), np.array([1.0, 1.0, 0.5])
    e = gig.explain_pairs(graph, start[None], end[None], discrete=())
    np.testing.assert_allclose(e.values[0], brute_force(graph, start, end)[:, 0], atol=1e-6)
    assert e.error[0] < 1e-6


def test_a_score_that_is_nothing_at_both_ends_of_a_path_comes_to_an_end() -> None:
    """In rank space both ends are 0, so that no error at all is allowed; in between the score rises and falls."""
    source = Input(3)
    bump = Elementwise(Elementwise(Affine(source, np.array([[6.0, 0.0, 0.0]]), np.array([-3.0])), "abs"), "tanh")
    stump = Tree(np.array([1, -1, -1]), np.array([0.5, 0, 0]), np.array([1, -1, -1]), np.array([2, -1, -1]),
                 np.zeros(3, bool), np.array([0.0, 0.0, 1e-3]))  # fmt: skip
    both = Concat((bump, assemble(source, [stump], np.zeros(1)), Select(source, (2,))))
    mean = Elementwise(Affine(both, np.array([[-1.0, 1.0, 0.001]]), np.zeros(1)), "tanh")
    graph = graph_of(COLUMNS, source, PiecewiseLinear(mean, np.array([-0.7, -0.3, 0.0]), np.array([0.0, 0.4, 1.0])))
    start, end = np.zeros(3), np.ones(3)
    e = gig.explain_pairs(graph, start[None], end[None], discrete=())
    assert e.predictions[0] == e.base_values[0] == 0.0
    np.testing.assert_allclose(e.values[0], brute_force(graph, start, end)[:, 0], atol=1e-9)
