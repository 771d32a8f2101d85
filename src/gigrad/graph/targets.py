"""Which output `target` names: by the label of a class first, then by position.

The score of a binary classifier is that of one class alone. The score of the other class is the total of both, such as
1 for probabilities, less this one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError
from .node import Node, Select
from .smooth import Affine, Elementwise


@dataclass(frozen=True)
class Opposite:
    """The classes that a binary classifier's outputs leave out.

    Attributes
    ----------
    names : tuple of str
        One for each output: the opposite class; "" for an output that leaves none out.
    score_total, margin_total : float or None
        The total of the scores, and of the margins, of both classes: 1 for probabilities, 0 for log odds and decision
        functions. None where it is unknown: the class left out cannot be explained then.
    """

    names: tuple[str, ...]
    score_total: float | None = 1.0
    margin_total: float | None = 0.0


@dataclass(frozen=True)
class Times:
    """The times of the outputs of a survival model; `target` is any time from the first to the last.

    Attributes
    ----------
    at : tuple of float
        Increasing, one for each output.
    between : str
        Between two of them: "step", the output at the last time before; or "linear", the cumulative hazard is
        interpolated, for scores that are the exponential of its negative.
    """

    at: tuple[float, ...]
    between: str = "step"

    def pick(self, node: Node, target: Any) -> tuple[Node, tuple[str, ...]]:
        """The output at a time."""
        time = _as_time(target)
        if time is None or not min(0.0, self.at[0]) <= time <= self.at[-1]:
            raise InputError(
                f"target must be a time up to {self.at[-1]:g}, the last that the model has seen; got {target!r}."
            )
        after = int(np.searchsorted(self.at, time))
        if self.at[after] == time or after == 0:
            found = after
        elif self.between == "step":
            found = after - 1
        else:
            return self._interpolated(node, time, after), (f"{time:g}",)
        return (node if node.width == 1 else Select(node, (found,))), (f"{time:g}",)

    def _interpolated(self, node: Node, time: float, after: int) -> Node:
        """A survival output between two known times: logarithms are interpolated."""
        if not (isinstance(node, Elementwise) and node.name == "exp"):
            raise InputError(
                f"target={time:g} lies between {self.at[after - 1]:g} and {self.at[after]:g}, where this output is not "
                "known, as it was mapped further; give one of these."
            )
        share = (time - self.at[after - 1]) / (self.at[after] - self.at[after - 1])
        weight = np.zeros((1, node.width))
        weight[0, after - 1 : after + 1] = 1.0 - share, share
        return Elementwise(Affine(node.source, weight, np.zeros(1)), "exp")


def _as_time(target: Any) -> float | None:
    """The target as a finite time; None if it is no number."""
    if isinstance(target, (bool, np.bool_)):
        return None
    try:
        time = float(target)
    except (TypeError, ValueError):
        return None
    return time if np.isfinite(time) else None


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
        The total of the scores of an output and of the class that it leaves out.
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
    """Whether a number equals a label that is written differently: 1 for the class 1.0."""
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
