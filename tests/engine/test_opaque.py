"""Functions whose gradient is not that of their value: refused or warned about, with the cause."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import gigrad as gig

nn = torch.nn
Module: Any = nn.Module
RNG = np.random.default_rng(0)
ENDS, STARTS = RNG.normal(size=(6, 4)), RNG.normal(size=(5, 4))

# What the engine says of its own estimate is another matter.
pytestmark = pytest.mark.filterwarnings("ignore:The tolerance was not reached")


class Bent(Module):
    """A net with something between its layers."""

    def __init__(self, bend: Callable[[Any], Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.bend, self.last = nn.Linear(4, 3), bend, nn.Linear(3, 1)

    def forward(self, x: Any) -> Any:
        return self.last(self.bend(self.first(x)))


class Squared(torch.autograd.Function):
    """A square whose backward has forgotten the factor 2 x."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x**2

    @staticmethod
    def backward(ctx: Any, *slopes: Any) -> Any:
        return slopes[0]


def without_gradient(z: Any) -> Any:
    with torch.no_grad():
        return 2.0 * z


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "floor": (torch.floor, "must be continuous in every column of numbers; it jumps with 'x\\d'"),
    "argmax": (
        lambda z: nn.functional.one_hot(z.argmax(dim=1), 3).to(z.dtype),
        "must be continuous in every column of numbers; it jumps with 'x\\d'",
    ),
    "comparison": (
        lambda z: (z > 0).to(z.dtype),
        "must be continuous in every column of numbers; it jumps with 'x\\d'",
    ),
    "detach": (lambda z: z.detach(), "must have a gradient by every column it depends on; it has none by 'x\\d'"),
    "no_grad": (without_gradient, "must have a gradient by every column it depends on; it has none by 'x\\d'"),
}
WARNED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "hardshrink": (nn.Hardshrink(), r"do not add up: Bent jumps by 0\.\d+ at x\d = .*must be continuous"),
    "where": (lambda z: torch.where(z > 0, z + 1, z), r"do not add up: Bent jumps by 0\.\d+ at x\d = "),
    "partly detached": (
        lambda z: torch.cat([z[:, :1].detach(), z[:, 1:]], dim=1),
        r"do not add up: the gradient of Bent is not that of its value: .*(detach, no_grad)",
    ),
    "wrong backward": (Squared.apply, r"do not add up: the gradient of Bent is not that of its value"),
}


@pytest.mark.parametrize(("bend", "said"), REFUSED.values(), ids=REFUSED)
def test_a_module_that_moves_where_its_gradient_does_not_is_refused(bend: Callable[[Any], Any], said: str) -> None:
    with pytest.raises(gig.UnsupportedModelError, match=f"Bent {said}: its output changes by"):
        gig.explain(Bent(bend).eval(), ENDS, STARTS)


@pytest.mark.parametrize(("bend", "said"), WARNED.values(), ids=WARNED)
def test_credits_that_do_not_add_up_are_warned_about_with_the_cause(bend: Callable[[Any], Any], said: str) -> None:
    with pytest.warns(gig.AccuracyWarning, match=said):
        explained = gig.explain(Bent(bend).eval(), ENDS, STARTS)
    assert np.abs(explained.gap).max() > 1e-3  # and they do not


FINE: dict[str, Callable[[Any], Any]] = {
    "relu": torch.relu,
    "a narrow ramp": lambda z: torch.clamp(1000.0 * (z - 0.3), 0.0, 1.0),
    "a dead unit": lambda z: torch.relu(z - 1e6),
    "steep": lambda z: torch.sigmoid(200.0 * z),
    "constant": lambda z: 0.0 * z,
}


@pytest.mark.parametrize("bend", FINE.values(), ids=FINE)
def test_kinks_and_flat_stretches_are_no_cause(bend: Callable[[Any], Any], recwarn: Any) -> None:
    gig.explain(Bent(bend).eval(), ENDS, STARTS, tol=1e-3)
    assert not [w for w in recwarn if "do not add up" in str(w.message)]


def test_a_column_that_matters_only_with_another_is_not_taken_for_ignored() -> None:
    """At start, middle and end max(x - y, 0) is flat; with x alone at its end it is not, and its gradient neither."""
    graph = gig.function(
        lambda x: np.maximum(x[:, 0] - x[:, 1], 0.0),
        lambda x: (x[:, :1] > x[:, 1:]) * np.array([1.0, -1.0]),
        2,
    )
    np.testing.assert_allclose(gig.explain_pairs(graph, [[0.0, 0.0]], [[1.0, 5.0]]).values, 0.0, atol=1e-9)


def test_given_gradients() -> None:
    half = gig.function(lambda x: (x**2).sum(axis=1), lambda x: x, 4)
    with pytest.warns(gig.AccuracyWarning, match=r"gradient of <lambda> is not that of its value.*rises by -?\d"):
        gig.explain(half, ENDS, STARTS)
    none = gig.function(lambda x: np.floor(x).sum(axis=1), lambda x: 0.0 * x, ["a", "b", "c", "d"])
    with pytest.raises(gig.UnsupportedModelError, match=r"<lambda> must be continuous .* jumps with 'a'"):
        gig.explain(none, ENDS, STARTS)
    nothing = gig.function(lambda x: x[:, 0] * x[:, 1], lambda x: x * np.nan, 2)
    with pytest.warns(gig.AccuracyWarning, match="the gradient of <lambda> is NaN or infinite at some point"):
        gig.explain(nothing, ENDS[:, :2], STARTS[:, :2])


def test_a_jump_inside_a_stack_is_named_by_its_layer() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 3), nn.Hardshrink(), nn.Linear(3, 1)).eval()
    with pytest.warns(gig.AccuracyWarning, match=r"Hardshrink jumps by 0\.\d+ at its input \d = "):
        gig.explain(module, ENDS, STARTS)


def test_one_output_of_several() -> None:
    """The second output jumps; the first, explained alone, has nothing to do with it."""
    graph = gig.function(
        lambda x: np.column_stack([x[:, 0], np.round(x[:, 1])]),
        lambda x: np.stack([np.tile([1.0, 0.0], (len(x), 1)), np.zeros((len(x), 2))], axis=1),
        2, outputs=["plain", "rounded"],
    )  # fmt: skip
    with pytest.raises(gig.UnsupportedModelError, match="it jumps with 'x1'"):
        gig.explain(graph, ENDS[:, :2] * 3, STARTS[:, :2] * 3)


def test_a_module_that_changes_its_input_in_place() -> None:
    def forward(x: Any) -> Any:
        x[:, 0] *= 3.0
        return x.sum(dim=1)

    e = gig.explain_pairs(gig.function(forward, "autograd", 4), STARTS, ENDS[:5])
    np.testing.assert_allclose(e.values, (ENDS[:5] - STARTS) * [3.0, 1.0, 1.0, 1.0], atol=1e-12)


def test_a_module_of_which_torch_has_no_gradient() -> None:
    step = Bent(lambda z: torch.heaviside(z, torch.ones(1, dtype=z.dtype))).eval()
    with pytest.raises(gig.UnsupportedModelError, match=r"Bent must have a gradient .*heaviside is not impl"):
        gig.explain(step, ENDS, STARTS)
