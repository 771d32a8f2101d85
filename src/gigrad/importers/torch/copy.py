"""Copies of torch modules: without the wrapper of torch.compile, and in float64."""

from __future__ import annotations

import copy
import warnings
from typing import Any

from ...errors import InputError, NotFittedError, UnsupportedModelError


def uncompiled(module: Any) -> Any:
    """The module inside the wrapper of `torch.compile`; any other module unchanged.

    The compiled one gives the same numbers up to rounding, but recompiles for every number of rows.
    """
    return getattr(module, "_orig_mod", module) if type(module).__name__ == "OptimizedModule" else module


def double_copy(module: Any) -> Any:
    """A copy of the module in float64 on the CPU, in eval mode, with fixed parameters."""
    import torch

    _refuse_what_has_no_double(module)
    with warnings.catch_warnings():  # jit modules are copied through attributes that torch warns about
        warnings.filterwarnings("ignore", message=r"The \.grad attribute of a Tensor")
        out = copy.deepcopy(module, _computed(module)).cpu().double().eval()
    if isinstance(out, torch.jit.ScriptModule):
        return out
    out.requires_grad_(False)
    for layer in out.modules():
        # A backward hook replaces the gradient of the module's value by another one.
        layer._backward_hooks.clear()
        layer._backward_pre_hooks.clear()
        for name, inner in layer.named_children():
            if uncompiled(inner) is not inner:
                setattr(layer, name, uncompiled(inner))
        if type(layer) is torch.nn.Softplus:
            # Above its threshold torch replaces softplus by the identity, a jump of 2e-9, below float32 precision.
            layer.threshold = max(layer.threshold, 40.0)
    return out


def _computed(module: Any) -> dict[int, Any]:
    """The memo for `copy.deepcopy` with tensors that hooks compute before every call, as `weight_norm` does."""
    import torch

    found = [t for m in module.modules() for t in vars(m).values() if isinstance(t, torch.Tensor) and not t.is_leaf]
    return {id(t): t.detach().clone() for t in found}


def _refuse_what_has_no_double(module: Any) -> None:
    """Refuse modules that cannot be copied to float64: lazy, quantised, or compiled ones."""
    import torch

    name = type(module).__name__
    tensors = (*module.parameters(), *module.buffers())
    if any(torch.nn.parameter.is_lazy(p) for p in tensors):
        raise NotFittedError(f"This {name} has lazy layers that have not seen a row; call it on some, and train it.")
    layers = [type(m) for m in module.modules() if ".quantized" in type(m).__module__]
    if layers or any(t.is_quantized for t in tensors):
        what = f"a quantised {layers[0].__name__}" if layers else "quantised weights"
        raise UnsupportedModelError(
            f"Quantised torch modules cannot be explained, and this {name} has {what}: it rounds intermediate numbers "
            "to 8 bits, so that its output is a step function without a gradient. Explain the original module."
        )


def require_eval_mode(module: Any) -> None:
    """Raise for a module in training mode, where dropout is random and batch norm makes rows depend on each other."""
    _refuse_what_has_no_double(module)
    if any(m.training for m in module.modules()):
        raise InputError(
            f"A torch module must be in eval mode to be explained; this {type(module).__name__} is in training mode. "
            "Call .eval() on it first."
        )


def is_plain(layer: Any) -> bool:
    """Whether a layer is a plain instance of its class: no hooks, and no overridden methods."""
    from torch.nn.modules import module as every

    hooks = (layer._forward_hooks, layer._forward_pre_hooks)
    everywhere = (every._global_forward_hooks, every._global_forward_pre_hooks)
    return not any(hooks) and not any(everywhere) and "forward" not in vars(layer)
