"""The head of a model as a program of the native core: which nodes it knows, and how their columns may move.

Between corners the head is asked several times on every segment. Where all of its nodes are known to the core, a list
of steps over registers stands for it, and the core integrates it without Python in between (`kernels/smooth`); the
engine's own integration (`integrate.Integral`) does the same for every other head, and is what tests hold the core to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import kernels
from ..graph import Affine, Array, Concat, Elementwise, LogSoftmax, Node, PiecewiseLinear, Product, Select, Softmax, Sum
from .roles import Roles

CONSTANT, LINEAR, MONOTONE, ANY = range(4)
"""How a column moves on a panel where no tree jumps."""

RISING = frozenset(
    {"identity", "relu", "elu", "tanh", "sigmoid", "softplus", "exp", "log", "log1p", "expm1", "sqrt", "logit"}
)
"""Functions that never turn back."""

_NONE = np.zeros(0)


@dataclass(frozen=True, eq=False)
class HeadProgram:
    """A program of the core for a head, or for what lies above a tabulated part of it."""

    native: Any


NARROW = 16
"""Curves of no more columns than this in all are asked on every segment, as a part of the head."""


def with_narrow_curves(roles: Roles) -> Roles:
    """The same roles with narrow curves over narrow lines moved into a head that the core integrates.

    The sigmoid on top of a ReLU net costs the core next to nothing on every segment. As a curve it would need panels of
    its own with nodes on every piece between two kinks of the net.
    """
    columns = sum(n.width for n in (*roles.curves, *roles.line_ends))
    if not roles.head or not roles.curves or columns > NARROW:
        return roles
    joined = (*roles.curves, *roles.head)
    known = {n: 0 for node in joined for n in (node, *node.parents)}
    if any(_fields(node, known) is None for node in joined):
        return roles
    return replace(roles, curves=(), head=joined)


def head_program(roles: Roles, above: tuple[Node, ...] | None = None, table: Node | None = None) -> HeadProgram | None:
    """The program of a head; None where it has a node that the core does not know.

    With `table` given, a tabulated node of the head that reads the one joint, only the nodes `above` it are asked.
    """
    nodes = roles.head if above is None else above
    moves = {n: [ANY] * n.width for n in roles.curve_ends} | {n: [LINEAR] * n.width for n in roles.head_lines}
    joints = sum(n.width for n in roles.joints)
    constants: tuple[Node, ...] = roles.step_ends if table is None else ()
    place: dict[Node, int] = {}
    registers = 0
    for node in (*roles.joints, *constants):
        place[node] = registers
        moves.setdefault(node, [CONSTANT] * node.width)
        registers += node.width
    steps: list[tuple[Any, ...]] = []
    if table is not None:
        (joint,) = roles.joints
        steps.append(("series", table.width, [place[joint]], [1], _NONE, _NONE, "", 0.0, True))
        place[table], moves[table] = registers, [ANY] * table.width
        registers += table.width
    for node in nodes:
        fields = _fields(node, place)
        if fields is None:
            return None
        may_turn = any(m == ANY for p in node.parents for m in moves[p])
        steps.append((*fields, may_turn))
        place[node], moves[node] = registers, _moves(node, [moves[p] for p in node.parents])
        registers += node.width
    output = roles.output
    constant = sum(n.width for n in constants)
    return HeadProgram(kernels.Program(joints, constant, steps, place[output], output.width))


def _fields(node: Node, place: dict[Node, int]) -> tuple[Any, ...] | None:
    """What the core needs to know of a step, without whether what it reads may turn."""
    at, widths = [place[p] for p in node.parents], [p.width for p in node.parents]
    if isinstance(node, Affine):
        return "affine", node.width, at, widths, np.ascontiguousarray(node.weight).ravel(), node.bias, "", 0.0
    if isinstance(node, Elementwise) and node.name in kernels.PROGRAM_FUNCTIONS:
        return "function", node.width, at, widths, _NONE, _NONE, node.name, float(node.parameter)
    if isinstance(node, PiecewiseLinear):
        return "knots", node.width, at, widths, np.ascontiguousarray(node.x), np.ascontiguousarray(node.y), "", 0.0
    simple = {Softmax: "softmax", LogSoftmax: "log_softmax", Sum: "sum", Product: "product"}.get(type(node))
    if simple is not None:
        return simple, node.width, at, widths, _NONE, _NONE, "", 0.0
    if isinstance(node, (Select, Concat)):
        columns = [first + j for first, width in zip(at, widths, strict=True) for j in range(width)]
        if isinstance(node, Select):
            columns = [columns[j] for j in node.columns]
        return "gather", node.width, columns, [1] * node.width, _NONE, _NONE, "", 0.0
    return None


def _moves(node: Node, parents: list[list[int]]) -> list[int]:
    """How the columns of a node move, given how those of its parents do."""
    if isinstance(node, Affine):
        return [_joined([m for m, w in zip(parents[0], row, strict=True) if w != 0.0]) for row in node.weight.tolist()]
    if isinstance(node, Sum):
        return [_joined(list(each)) for each in zip(*parents, strict=True)]
    if isinstance(node, Concat):
        return [m for moves in parents for m in moves]
    if isinstance(node, Select):
        return [parents[0][j] for j in node.columns]
    rising = isinstance(node, Elementwise) and (
        node.name in RISING or (node.name == "leaky_relu" and node.parameter >= 0.0)
    )
    if isinstance(node, PiecewiseLinear):
        steps = np.diff(node.y)
        rising = bool((steps >= 0).all() or (steps <= 0).all())
    if rising:
        return [m if m in (CONSTANT, ANY) else MONOTONE for m in parents[0]]
    constant = all(m == CONSTANT for moves in parents for m in moves)
    return [CONSTANT if constant else ANY] * node.width


def _joined(moves: list[int]) -> int:
    """How a sum of columns moves."""
    moving = [m for m in moves if m != CONSTANT]
    if not moving:
        return CONSTANT
    if all(m == LINEAR for m in moving):
        return LINEAR
    return moving[0] if len(moving) == 1 else ANY


def empty_table() -> tuple[Array, Array, float, float]:
    """What stands for the table of a head that has none."""
    none = np.zeros((0, 1, 1))
    return none, none, 0.0, 1.0
