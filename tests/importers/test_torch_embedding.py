"""Columns that a net looks up in a table: they are categories, and change at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import gigrad as gig
from gigrad.graph import Opaque, topological

nn = torch.nn
Module: Any = nn.Module
RNG = np.random.default_rng(0)


def table(rows: int) -> Any:
    """A code from 0 to 4, two numbers, a code from 0 to 2."""
    numbers = RNG.normal(size=(rows, 2))
    return np.column_stack([RNG.integers(0, 5, rows), numbers, RNG.integers(0, 3, rows)])


ENDS, STARTS = table(6), table(5)


class Tabular(Module):
    """Entity embeddings beside numbers, as nets on tables have them."""

    def __init__(self, bend: Any = torch.tanh) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.grade, self.region, self.bend = nn.Embedding(5, 3), nn.Embedding(3, 2), bend
        self.inner, self.outer = nn.Linear(7, 4), nn.Linear(4, 1)

    def forward(self, x: Any) -> Any:
        looked_up = [self.grade(x[:, 0].long()), x[:, 1:3], self.region(x[:, 3].long())]
        return self.outer(self.bend(self.inner(torch.cat(looked_up, dim=1))))


def value(module: Any, x: Any) -> Any:
    with torch.no_grad():
        return module(torch.from_numpy(x)).numpy()[:, 0]


def test_looked_up_columns_are_categories() -> None:
    graph = gig.function(Tabular().eval(), "autograd", ["grade", "debt", "income", "region"])
    assert [(c.kind, c.labels) for c in graph.columns] == [
        ("category", (0, 1, 2, 3, 4)), ("number", None), ("number", None), ("category", (0, 1, 2)),
    ]  # fmt: skip
    explained = gig.explain(graph, ENDS, STARTS)
    assert np.abs(explained.gap).max() < 1e-6
    assert (explained.values[:, 0] != 0.0).any()


def test_credits_follow_from_the_definition() -> None:
    """The two codes change half-way, together: a corner of two players; before and after it, integrated gradients."""
    module = Tabular().eval()
    double = Tabular().double().eval()
    double.load_state_dict(module.state_dict())
    start, end = STARTS[0], ENDS[0].copy()
    end[[0, 3]] = (start[0] + 1) % 5, (start[3] + 1) % 3
    explained = gig.explain_pairs(gig.function(module, "autograd", 4), start[None], end[None], tol=1e-9)
    want = np.zeros(4)
    nodes, weights = np.polynomial.legendre.leggauss(60)
    for low, codes in ((0.0, start), (0.5, end)):
        times = (low + (nodes + 1) / 4)[:, None]
        x = (1 - times) * start + times * end
        x[:, [0, 3]] = codes[[0, 3]]
        given = torch.from_numpy(x).requires_grad_(True)
        (slopes,) = torch.autograd.grad(double(given).sum(), given)
        want += (weights / 4) @ slopes.numpy() * (end - start)
    middle = (start + end) / 2
    corners = np.tile(middle, (4, 1))
    corners[:, 0], corners[:, 3] = [start[0], end[0], start[0], end[0]], [start[3], start[3], end[3], end[3]]
    none, first, second, both = value(double, corners)
    want[0] += (first - none + both - second) / 2
    want[3] += (second - none + both - first) / 2
    np.testing.assert_allclose(explained.values[0], want, atol=1e-8)


def test_a_stack_that_begins_with_a_table_needs_torch_no_more(tmp_path: Path) -> None:
    torch.manual_seed(1)
    module = nn.Sequential(nn.Embedding(5, 3), nn.Dropout(), nn.Flatten(), nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 1))
    codes, others = RNG.integers(0, 5, (6, 2)), RNG.integers(0, 5, (4, 2))
    explainer = gig.Explainer(module.eval(), others)
    assert not any(isinstance(n, Opaque) for n in topological(explainer.scorer.node))
    explained = explainer(codes)
    np.testing.assert_allclose(explained.predictions, value(module, codes), rtol=1e-6)
    # All there is are two categories: the credits are the Shapley values of the two
    for row, credits in zip(codes, explained.values, strict=True):
        corner = {(i, j): value(module, np.array([[a if i else b for i, a, b in zip((i, j), row, s, strict=True)]
                  for s in others])) for i in (0, 1) for j in (0, 1)}  # fmt: skip
        first = (corner[1, 0] - corner[0, 0] + corner[1, 1] - corner[0, 1]) / 2
        np.testing.assert_allclose(credits, [first.mean(), (corner[1, 1] - corner[0, 0] - first).mean()], atol=1e-6)
    explainer.save(tmp_path / "net.gig")
    np.testing.assert_array_equal(gig.Explainer.load(tmp_path / "net.gig")(codes).values, explained.values)


def test_codes_that_the_table_does_not_have() -> None:
    graph = gig.function(Tabular().eval(), "autograd", 4)
    for wrong in (5.0, 2.5, -1.0):
        row = ENDS[:1].copy()
        row[0, 0] = wrong
        with pytest.raises(gig.InputError, match=rf"column 'x0'; {wrong} is not one of its 5"):
            gig.explain(graph, row, STARTS)


class Hot(Module):
    """A column read as a whole number in another way."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 1))

    def forward(self, x: Any) -> Any:
        grade = nn.functional.one_hot(x[:, 0].long() % 5, 5).to(x.dtype)
        return self.net(torch.cat([grade, x[:, 1:2]], dim=1))


def test_other_columns_of_codes_are_refused_until_they_are_declared() -> None:
    rows = pd.DataFrame({"grade": RNG.integers(1, 6, 12), "debt": RNG.normal(size=12)})
    undeclared = gig.function(Hot().eval(), "autograd", ["grade", "debt"])
    with pytest.raises(gig.UnsupportedModelError, match=r"Hot .*it jumps with 'grade'.*categories={column"):
        gig.explain(undeclared, rows[:6], rows[6:])
    with pytest.raises(gig.UnsupportedModelError, match=r"it jumps with 'grade'"):
        gig.explain_pairs(undeclared, rows[:6], rows[6:])
    with pytest.raises(gig.UnsupportedModelError, match=r"it jumps with 'grade'"):
        gig.explain_gap(undeclared, rows[:6], rows[6:], bootstrap=0)
    declared = gig.function(Hot().eval(), "autograd", ["grade", "debt"], categories={"grade": range(1, 6)})
    explained = gig.explain(declared, rows[:6], rows[6:])
    assert np.abs(explained.gap).max() < 1e-6
    assert explained.values[:, 0].any()
    with pytest.raises(gig.InputError, match="0 is not one of its 5"):
        gig.explain(declared, rows[:6].assign(grade=0), rows[6:])


class Strict(Hot):
    def forward(self, x: Any) -> Any:
        return self.net(torch.cat([nn.functional.one_hot(x[:, 0].long() - 1, 5).to(x.dtype), x[:, 1:2]], dim=1))


def test_codes_that_do_not_begin_with_zero() -> None:
    with pytest.raises(gig.UnsupportedModelError, match=r"must accept a row of zeros.*categories={column: \[1, 2"):
        gig.function(Strict().eval(), "autograd", 2)
    declared = gig.function(Strict().eval(), "autograd", 2, categories={"x0": [1, 2, 3, 4, 5]})
    explained = gig.explain(declared, [[1, 0.5], [5, -1.0]], [[2, 0.0], [3, 1.0]])
    assert np.abs(explained.gap).max() < 1e-6


def test_a_formula_of_codes() -> None:
    """f = rate[code] * x: from (code 1, 1) to (code 2, 3) the jump is at x = 2."""
    rate = np.array([0.0, 2.0, 5.0])
    graph = gig.function(
        lambda x: rate[x[:, 0].astype(int)] * x[:, 1],
        lambda x: np.column_stack([0.0 * x[:, 0], rate[x[:, 0].astype(int)]]),
        ["code", "x"], categories={"code": 3},
    )  # fmt: skip
    explained = gig.explain_pairs(graph, [[1, 1.0]], [[2, 3.0]])
    np.testing.assert_allclose(explained.values, [[(5 - 2) * 2.0, 2 * 1.0 + 5 * 1.0]], atol=1e-9)


@pytest.mark.parametrize(
    ("categories", "said"),
    [
        ({"z": 3}, "categories must name columns of the function, 'a', 'b'; got 'z'"),
        ({"a": 0}, "the number of codes of 'a' must be a positive whole number"),
        ({"a": [1, 1]}, "The codes of 'a' must be their number, or a list of different numbers"),
        ({"a": "xyz"}, "The codes of 'a' must be"),
        (["a"], "categories must be a dict such as"),
    ],
)
def test_categories_that_cannot_be(categories: Any, said: str) -> None:
    with pytest.raises(gig.InputError, match=said):
        gig.function(lambda x: x[:, 0], lambda x: x, ["a", "b"], categories=categories)


def test_an_embedding_that_reads_numbers_says_what_to_do() -> None:
    class Floats(Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(5, 1)

        def forward(self, x: Any) -> Any:
            return self.table(x[:, 0])

    with pytest.raises(gig.UnsupportedModelError, match=r"has an nn.Embedding.*x\[:, j\]\.long\(\)"):
        gig.explain(gig.function(Floats().eval(), "autograd", 1), [[1]], [[2]])
    with pytest.raises(gig.UnsupportedModelError, match=r"if nn\.Flatten\(\) follows it"):
        gig.import_model(nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 1)).eval())
    with pytest.raises(gig.UnsupportedModelError, match=r"a Sequential that begins with nn\.Embedding"):
        gig.import_model(nn.Sequential(nn.Embedding(5, 4), nn.Flatten(), nn.Linear(6, 1)).eval())
