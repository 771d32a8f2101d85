"""Functions with jumps, kinks and wrong gradients: which of them are refused, and what the warning names as the cause.

What is true of each is known, so the messages are compared.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import gigrad as gig
from gigrad.graph import Affine, Array, Graph, Input, Opaque, Sum

from .case import Found, array, explained, graph_over, matters_to, misstated

STARTS, ENDS = array([0.1, 0.2]), array([0.937, 0.853])
JUMPS, SILENT = "refused: .* jumps with", "refused: .* must have a gradient by every column"
STEP, WRONG = "do not add up: .* jumps by", "do not add up: the gradient of .* is not that of its value"

Value = Callable[[Array], Array]


def besides(value: Value, slope: Value | float = 0.0, line: float = 1.0) -> Graph:
    """`line * x0 + value(x1)`, whose gradient by x1 is said to be `slope(x1)`."""

    def whole(x: Array) -> Array:
        return line * x[:, 0] + value(x[:, 1])

    def gradient(x: Array) -> Array:
        second = slope(x[:, 1]) if callable(slope) else np.full(len(x), slope)
        return np.stack([np.full(len(x), line), second], axis=1)

    return gig.function(whole, gradient, 2)


def minus(graph: Graph, much: float) -> Graph:
    """The same score, lower by a number."""
    return graph_over(graph.input, Affine(graph.score, np.ones((1, 1)), np.array([-much])))


def messages(graph: Graph, says: str, tol: float = 1e-6) -> Found:
    """What is said of a function, beside what should be said; its credits do not matter."""
    said = explained(graph, STARTS, ENDS, tol=tol)[1]
    said = [s for s in said if "refused" in s or "do not add up" in s]
    return Found(list(said), 0.0, misstated(said, says))


def stairs(steps: float) -> Value:
    return lambda x: np.floor(x * steps) / steps


# ------------------------------------------------------------ columns that the gradient ignores


@matters_to("STEP_SHARE", "JUMP_HALVINGS")
def fine_stairs() -> Found:
    """no gradient, and 3e4 steps: it jumps"""
    return messages(besides(stairs(3e4)), JUMPS)


@matters_to("STEP_SHARE", "JUMP_HALVINGS")
def silent_ramp() -> Found:
    """no gradient, and a rise within 1e-5 of the path: it is continuous"""
    return messages(besides(lambda x: np.tanh((x - 0.5) * 1e5)), SILENT)


@matters_to("STEP_SHARE")
def silent_beside_large() -> Found:
    """no gradient, and a rise of 1e-8 of the value, whose rounding is 1e-8 of that rise"""
    return messages(besides(lambda x: 3e7 + x), SILENT)


@matters_to("STEP_SHARE")
def silent_in_float32() -> Found:
    """no gradient, and values in float32"""
    return messages(besides(lambda x: (0.2 + np.sin(x)).astype(np.float32).astype(np.float64)), SILENT)


@matters_to("UNCHANGED")
def cancelled() -> Found:
    """a column that cancels out up to a rounding of 1e-11: nothing is wrong"""
    return messages(besides(lambda x: (0.3 + 1e5 * x) - 1e5 * x), "")


@matters_to("UNCHANGED")
def small_but_ignored() -> Found:
    """a column with an effect of 1e-7 and no gradient is refused"""
    return messages(besides(lambda x: 1e-7 * x), SILENT)


# ------------------------------------------------------------ why credits do not add up


def beside_bent(culprit: Graph, scale: float, offset: float = 0.0) -> Graph:
    """A function with a kink, which is searched first and is innocent, plus one that is not."""
    source = Input(2)

    def bend(x: Array) -> Array:
        return offset + scale * np.maximum(x.sum(axis=1, keepdims=True) - 0.913, 0.0)

    def slope(x: Array, cotangent: Array) -> Array:
        return cotangent * np.where(x.sum(axis=1, keepdims=True) > 0.913, scale, 0.0) * np.ones((1, 2))

    one = culprit.score
    assert isinstance(one, Opaque)
    bent = Opaque(source, 1, bend, slope, "bent")
    return graph_over(source, Sum((bent, Opaque(source, 1, one.value, one.gradient, "culprit"))))


@matters_to("AGREEING_GRADIENT")
def agreeing_beside_jump() -> Found:
    """a smooth function, whose loss is rounding, beside one that jumps: the latter is named"""
    source = Input(2)
    smooth = Opaque(source, 1, lambda x: 1.0 + x[:, :1] ** 2, lambda x, c: c * x * [2.0, 0.0], "smooth")
    one = besides(lambda x: x + 0.1 * (x > 0.5), 1.0).score
    assert isinstance(one, Opaque)
    node = Sum((smooth, Opaque(source, 1, one.value, one.gradient, "culprit")))
    return messages(graph_over(source, node), "culprit jumps by")


@matters_to("AGREEING_GRADIENT")
def agreeing_in_float32() -> Found:
    """the same where the smooth function computes in float32"""
    source = Input(2)

    def value(x: Array) -> Array:
        return (np.float32(1.0) + x[:, :1].astype(np.float32) ** 2).astype(np.float64)

    smooth = Opaque(source, 1, value, lambda x, c: c * x * [2.0, 0.0], "smooth")
    one = besides(lambda x: x + 0.1 * (x > 0.5), 1.0).score
    assert isinstance(one, Opaque)
    node = Sum((smooth, Opaque(source, 1, one.value, one.gradient, "culprit")))
    return messages(graph_over(source, node), "culprit jumps by")


@matters_to("AGREEING_GRADIENT")
def small_jump() -> Found:
    """a jump of 3e-6 of a function's values, and 3e-5 of the score's, is named"""
    return messages(minus(besides(lambda x: 10.0 + x + 3e-5 * (x > 0.5), 1.0), 10.5), STEP)


@matters_to("JUMP_SHARE", "JUMP_HALVINGS")
def many_jumps() -> Found:
    """200 equal jumps: one of them is named"""
    return messages(besides(lambda x: x + stairs(307.0)(x), 1.0), STEP)


@matters_to("JUMP_SHARE", "JUMP_HALVINGS")
def wrong_in_a_small_place() -> Found:
    """a gradient that misses a rise within 1e-7 of the path is wrong, but the function does not jump"""
    return messages(besides(lambda x: x + np.tanh((x - 0.5) * 1e7), 1.0), "do not add up: the gradient")


@matters_to("JUMP_SHARE", "JUMP_HALVINGS")
def wrong_and_large() -> Found:
    """a wrong gradient of a part of 1e-5 of the values"""
    return messages(besides(lambda x: 1e5 + 3.0 * x, 1.0), WRONG)


@matters_to("JUMP_SHARE")
def wrong_in_float32() -> Found:
    """a gradient wrong by 1 %, and values in float32"""
    return messages(besides(lambda x: (1.01 * np.sin(x)).astype(np.float32).astype(np.float64), np.cos), WRONG)


@matters_to("SLOPES_DIFFER")
def slightly_wrong() -> Found:
    """a gradient that is wrong by 1 % is named"""
    return messages(besides(lambda x: 1.01 * np.sin(x), np.cos), WRONG)


@matters_to("SLOPES_DIFFER")
def kink_of_large_values() -> Found:
    """a kink, where slopes have a rounding of 1e-6, is not the cause; a jump beside it is"""
    return messages(beside_bent(besides(lambda x: x + 3.0 * (x > 0.5), 1.0), 3.0, 1e3), "culprit jumps by")


@matters_to("MOSTLY")
def kink_beside_jump() -> Found:
    """a kink is not the cause of a gap; a jump beside it is"""
    return messages(beside_bent(besides(lambda x: x + 0.1 * (x > 0.5), 1.0), 3.0), "culprit jumps by")


@matters_to("MOSTLY")
def wrong_everywhere() -> Found:
    """a gradient that is wrong everywhere is named"""
    return messages(besides(lambda x: 2.0 * np.sin(x), np.cos), WRONG)
