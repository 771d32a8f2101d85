"""The head of a model as a program for the native core, made from its nodes' own descriptions.

Between corners the head is evaluated several times on every segment. If the core implements all of its nodes, the head
becomes a list of steps over registers, which the core integrates without Python (`kernels/smooth`); the engine's own
integration (`integrate.Integral`) does the same for every other head, and is the oracle in tests of the core.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ... import kernels
from ...graph import Array, Move, Node
from .. import limits
from ..roles import Roles

_NONE = np.zeros(0)


@dataclass(frozen=True, eq=False)
class HeadProgram:
    """A program of the core for a head, or for the nodes above a tabulated part of it."""

    native: Any


def with_narrow_curves(roles: Roles) -> Roles:
    """The same roles with narrow curves over narrow lines moved into a head that the core integrates.

    The sigmoid on top of a ReLU net costs the core almost nothing on every segment. As a curve it would need panels
    with nodes on every piece between two kinks of the net.
    """
    columns = sum(n.width for n in (*roles.curves, *roles.line_ends))
    if not roles.head or not roles.curves or columns > limits.NARROW_CURVES:
        return roles
    joined = (*roles.curves, *roles.head)
    known = {n: 0 for node in joined for n in (node, *node.parents)}
    if any(_fields(node, known) is None for node in joined):
        return roles
    return replace(roles, curves=(), head=joined)


def head_program(roles: Roles, above: tuple[Node, ...] | None = None, table: Node | None = None) -> HeadProgram | None:
    """The program of a head; None if it has a node that the core does not implement.

    With `table`, a tabulated node of the head that reads its only line or curve, just the nodes `above` it are used.
    """
    nodes = roles.head if above is None else above
    moves = {n: [Move.ANY] * n.width for n in roles.curve_ends} | {n: [Move.LINEAR] * n.width for n in roles.head_lines}
    joints = sum(n.width for n in roles.joints)
    constants: tuple[Node, ...] = roles.step_ends if table is None else ()
    place: dict[Node, int] = {}
    registers = 0
    for node in (*roles.joints, *constants):
        place[node] = registers
        moves.setdefault(node, [Move.CONSTANT] * node.width)
        registers += node.width
    steps: list[tuple[Any, ...]] = []
    if table is not None:
        (joint,) = roles.joints
        steps.append(("series", table.width, [place[joint]], [1], _NONE, _NONE, "", 0.0, True))
        place[table], moves[table] = registers, [Move.ANY] * table.width
        registers += table.width
    for node in nodes:
        fields = _fields(node, place)
        if fields is None:
            return None
        may_turn = any(m == Move.ANY for p in node.parents for m in moves[p])
        steps.append((*fields, may_turn))
        place[node], moves[node] = registers, node.moves([moves[p] for p in node.parents])
        registers += node.width
    output = roles.output
    constant = sum(n.width for n in constants)
    return HeadProgram(kernels.Program(joints, constant, steps, place[output], output.width))


def whole_program(roles: Roles) -> HeadProgram | None:
    """The program of a head without a table, which is made once."""
    if None not in roles.programs:
        roles.programs[None] = head_program(roles)
    return roles.programs[None]


def curve_program(roles: Roles, read: tuple[Node, ...]) -> Any:
    """The native program of all curves over the lines that they read, with all curve ends as outputs; None if the core
    does not implement one of them."""
    place: dict[Node, int] = {}
    registers = 0
    for node in read:
        place[node] = registers
        registers += node.width
    joints, steps = registers, list[tuple[Any, ...]]()
    for node in roles.curves:
        fields = _fields(node, place)
        if fields is None:
            return None
        steps.append((*fields, True))
        place[node] = registers
        registers += node.width
    ends = [place[n] + j for n in roles.curve_ends for j in range(n.width)]
    if ends != list(range(ends[0], ends[0] + len(ends))):
        steps.append(("gather", len(ends), ends, [1] * len(ends), _NONE, _NONE, "", 0.0, True))
        ends = [registers]
    return kernels.Program(joints, 0, steps, ends[0], sum(n.width for n in roles.curve_ends))


def _fields(node: Node, place: dict[Node, int]) -> tuple[Any, ...] | None:
    """The core's description of a node, without the flag whether its input may have extrema."""
    stage = node.stage()
    if stage is None or stage.name not in kernels.PROGRAM_STAGES:
        return None
    at, widths = [place[p] for p in node.parents], [p.width for p in node.parents]
    name, a, b = stage.name, np.ascontiguousarray(stage.a).ravel(), np.ascontiguousarray(stage.b)
    if name in kernels.PROGRAM_FUNCTIONS:
        return "function", node.width, at, widths, _NONE, _NONE, name, float(a[0])
    if name in ("select", "concat"):
        read = [first + j for first, width in zip(at, widths, strict=True) for j in range(width)]
        columns = read if name == "concat" else [read[int(j)] for j in a]
        return "gather", node.width, columns, [1] * node.width, _NONE, _NONE, "", 0.0
    called = "knots" if name == "piecewise_linear" else name
    return called, node.width, at, widths, a, b, "", 0.0


def empty_table() -> tuple[Array, Array, float, float]:
    """The placeholder for the table of a head without one."""
    none = np.zeros((0, 1, 1))
    return none, none, 0.0, 1.0
