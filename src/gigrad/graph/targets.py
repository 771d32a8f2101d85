"""Which output `target` names: by the label of a class first, then by position.

The score of a binary classifier is that of one class alone. The other class has a score too: what the two classes' add
up to, less the one that is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError
from .node import Node, Select
from .smooth import Affine


@dataclass(frozen=True)
class Opposite:
    """The classes that a binary classifier's outputs leave out.

    Attributes
    ----------
    names : tuple of str
        One for each output: the class that stands against it; "" for an output that leaves none out.
    score_total, margin_total : float or None
        What the scores, and the margins, of both classes add up to: 1 for probabilities, 0 for log odds and decision
        functions. None where it is not known: the class left out cannot be explained then.
    """

    names: tuple[str, ...]
    score_total: float | None = 1.0
    margin_total: float | None = 0.0


def pick(
    node: Node, names: tuple[str, ...], target: Any, opposite: tuple[str, ...] = (), total: float | None = None
) -> tuple[Node, tuple[str, ...]]:
    """One output of a node, by label or by position; all of them for None.

    Parameters
    ----------
    node : Node
    names : tuple of str
        Of its outputs.
    target : str, int, float, bool or None
    opposite : tuple of str
        The classes that the outputs leave out, as in `Opposite`, or none.
    total : float or None
        What the scores of an output and of the class that it leaves out add up to.
    """
    if target is None:
        return node, names
    labels = [*names, *(name for name in opposite if name)]
    found = next((i for same in (_is_text_of, _equals) for i, label in enumerate(labels) if same(target, label)), None)
    if found is None:
        # The classes in order: the one that a single output leaves out comes before it.
        order = [1, 0] if len(names) == 1 and len(labels) == 2 else list(range(len(names)))
        if not _is_position(target, len(order)):
            raise InputError(_refusal(labels, len(order), target))
        found = order[int(target)]
    if found < len(names):
        return (node if node.width == 1 else Select(node, (found,))), (names[found],)
    name = labels[found]
    column = opposite.index(name)
    if total is None:
        raise InputError(
            f"target={target!r} is the class {name!r}, whose score does not follow from this output, which was mapped "
            f"further or made of outputs of different kinds; explain {names[column]!r}, or the model itself."
        )
    weight = np.zeros((1, node.width))
    weight[0, column] = -1.0
    return Affine(node, weight, np.array([total])), (name,)


def _is_text_of(target: Any, label: str) -> bool:
    return str(target) == label


def _equals(target: Any, label: str) -> bool:
    """Whether a number is the label that was written otherwise: 1 for the class 1.0."""
    if isinstance(target, (bool, np.bool_, str)):
        return False
    try:
        return bool(float(label) == target)
    except (TypeError, ValueError):
        return False


def _is_position(target: Any, count: int) -> bool:
    return isinstance(target, (int, np.integer)) and not isinstance(target, bool) and int(target) in range(count)


def _refusal(labels: list[str], count: int, target: Any) -> str:
    where = f"a position from 0 to {count - 1}" if count > 1 else "left out, as there is no other"
    return f"target must be one of the outputs {', '.join(map(repr, labels))}, or {where}; got {target!r}."
