"""torch modules that are more than their layers: hooks, compiled, scripted, quantised and low-precision ones."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import gigrad as gig
from gigrad.graph import Opaque, topological

nn = torch.nn
Module: Any = nn.Module
RNG = np.random.default_rng(0)
ENDS, STARTS = RNG.normal(size=(2, 4)), RNG.normal(size=(3, 4))


def net() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1)).eval()


def doubled(module: Any, at: Any) -> Any:
    at.register_forward_hook(lambda layer, given, out: 2.0 * out)
    return module


def shifted(module: Any, at: Any) -> Any:
    at.register_forward_pre_hook(lambda layer, given: (given[0] + 1.0,))
    return module


def normalised() -> Any:
    module = net()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module[0] = nn.utils.weight_norm(module[0])
    return module.eval()


def traced(how: Callable[..., Any], *example: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return how(net(), *example)


def inside(module: Any) -> Any:
    return nn.Sequential(module, nn.Sigmoid()).eval()


def integrated(module: Any, start: Any, end: Any) -> Any:
    """Integrated gradients by 100 Gauss nodes, from the module itself in float64."""
    nodes, weights = np.polynomial.legendre.leggauss(100)
    times = torch.from_numpy((nodes + 1) / 2)[:, None]
    x = ((1 - times) * torch.from_numpy(start) + times * torch.from_numpy(end)).requires_grad_(True)
    (slopes,) = torch.autograd.grad(module(x).sum(), x)
    return (weights / 2) @ slopes.numpy() * (end - start)


def by_hand(module: Any) -> Any:
    return np.mean([[integrated(module, s, e) for s in STARTS] for e in ENDS], axis=1)


WRAPPED: dict[str, Callable[[], Any]] = {
    "hook on a layer": lambda: doubled(m := net(), m[0]),
    "hook before a layer": lambda: shifted(m := net(), m[0]),
    "hook on the activation": lambda: doubled(m := net(), m[1]),
    "hook on the whole": lambda: doubled(m := net(), m),
    "hook on a part": lambda: doubled(m := inside(net()), m[0]),
    "weight_norm": normalised,
    "weight_norm as a parametrisation": lambda: nn.Sequential(
        nn.utils.parametrizations.weight_norm(nn.Linear(4, 5)), nn.Tanh(), nn.Linear(5, 1)
    ).eval(),
    "spectral_norm": lambda: nn.Sequential(nn.utils.spectral_norm(nn.Linear(4, 5)), nn.Tanh(), nn.Linear(5, 1)).eval(),
    "a convolution between tables": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 4)), nn.Conv1d(1, 3, 2), nn.Tanh(), nn.Flatten(), nn.Linear(9, 1)
    ).eval(),
}


@pytest.mark.parametrize("made", WRAPPED.values(), ids=WRAPPED)
def test_what_a_module_does_beside_its_layers_is_explained(made: Callable[[], Any]) -> None:
    module = made()
    explained = gig.explain(module, ENDS, STARTS)
    with torch.no_grad():
        own = module(torch.from_numpy(ENDS).float()).numpy()[:, 0]
    np.testing.assert_array_equal(explained.predictions, own)
    assert np.abs(explained.gap).max() < 1e-6
    if made is not normalised:  # which torch cannot copy
        np.testing.assert_allclose(explained.values, by_hand(copy.deepcopy(module).double()), atol=1e-6)


def test_the_old_weight_norm_is_the_new_one() -> None:
    old = normalised()
    new = net()
    with torch.no_grad():
        new[0].weight.copy_(old[0].weight)
    np.testing.assert_allclose(gig.explain(old, ENDS, STARTS).values, gig.explain(new, ENDS, STARTS).values, atol=1e-7)


SAME: dict[str, Callable[[], Any]] = {
    "compiled": lambda: torch.compile(net()),
    "compiled inside": lambda: nn.Sequential(torch.compile(net(), backend="eager"), nn.Identity()).eval(),
    "scripted": lambda: traced(torch.jit.script),
    "traced": lambda: traced(torch.jit.trace, torch.zeros(2, 4)),
}


@pytest.mark.parametrize("made", SAME.values(), ids=SAME)
def test_the_same_module_in_another_form_has_the_same_credits(made: Callable[[], Any]) -> None:
    explained, plain = gig.explain(made(), ENDS, STARTS), gig.explain(net(), ENDS, STARTS)
    np.testing.assert_allclose(explained.values, plain.values, atol=1e-6)
    assert np.abs(explained.gap).max() < 1e-6


def test_a_backward_hook_is_no_part_of_the_value() -> None:
    class Whole(Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net()

        def forward(self, x: Any) -> Any:
            return self.net(x)

    module = Whole().eval()
    module.net[1].register_full_backward_hook(lambda layer, given, out: (2.0 * given[0],))
    assert [type(n) for n in topological(gig.import_model(module).score)][-1] is Opaque
    np.testing.assert_allclose(
        gig.explain(module, ENDS, STARTS).values, gig.explain(net(), ENDS, STARTS).values, atol=1e-6
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_low_precision_is_said_and_explained_in_double(dtype: Any) -> None:
    module = net().to(dtype)
    with pytest.warns(gig.AccuracyWarning, match=r"Sequential computes in low precision.*which is what the credits"):
        explained = gig.explain(module, ENDS, STARTS)
    np.testing.assert_allclose(explained.values, gig.explain(module.double(), ENDS, STARTS).values, atol=1e-12)
    assert 1e-5 < np.abs(explained.gap).max() < 1e-1


def test_quantised_modules_are_refused_by_name() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = torch.ao.quantization.quantize_dynamic(net(), {nn.Linear}, dtype=torch.qint8)
    with pytest.raises(
        gig.UnsupportedModelError, match=r"this Sequential has a quantised Linear.*Explain the original module"
    ):
        gig.import_model(module)


def test_a_stack_that_ends_in_no_table_says_so() -> None:
    module = nn.Sequential(nn.Unflatten(1, (1, 4)), nn.Conv1d(1, 3, 2)).eval()
    with pytest.raises(gig.InputError, match=r"Unflatten to Conv1d must give a tensor of shape .*\(1, 3, 3\)"):
        gig.function(module, "autograd", 4)
