"""What may change, and which way: rules for the columns of a table, as a caller declares them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._common import checks, display
from ..errors import InputError
from ..graph import Array

_WAYS = ("frozen", "up", "down", "any")
_WORDS = ("direction", "step", "low", "high", "values")


@dataclass(frozen=True)
class Rule:
    """How one column may change.

    Attributes
    ----------
    direction : "frozen", "up", "down" or "any"
    step : float or None
        New values are multiples of it.
    low, high : float or None
        The least and the largest new value.
    values : tuple or None
        The only new values that there are; for categories, labels.
    """

    direction: str = "any"
    step: float | None = None
    low: float | None = None
    high: float | None = None
    values: tuple[Any, ...] | None = None

    def as_record(self) -> dict[str, Any]:
        """What was declared, as JSON holds it."""
        found = {name: getattr(self, name) for name in _WORDS}
        return {n: list(v) if isinstance(v, tuple) else v for n, v in found.items() if v is not None and v != "any"}


def read_rules(
    rules: Mapping[str, Any] | None, names: Sequence[str], categories: Collection[str] = ()
) -> dict[str, Rule]:
    """The rule of every column, some of which are categories; an InputError says what is wrong with one."""
    given = checks.mapping(rules, "rules", '{"income": "frozen", "debt": "down"}') if rules is not None else {}
    for name in given:
        if name not in names:
            raise InputError(f"rules must name columns of the model; {name!r} is not one.{display.near(name, names)}")
    read = {name: _read(name, given.get(name, "any")) for name in names}
    for name in given:
        (_check_category if name in categories else _check_number)(name, read[name])
    return read


def _read(name: str, given: Any) -> Rule:
    """One rule as a user gives it: a Rule, a direction, or a dict."""
    if isinstance(given, Rule):
        return given
    words: Any = {"direction": given} if isinstance(given, str) else given
    if not isinstance(words, Mapping) or not set(words) <= set(_WORDS):
        raise InputError(
            f'The rule of {name!r} must be "frozen", "up", "down", "any" or a dict of {", ".join(_WORDS)}; '
            f"got {given!r:.80}."
        )
    direction = words.get("direction", "any")
    if direction not in _WAYS:
        raise InputError(f"The direction of {name!r} must be one of {', '.join(_WAYS)}; got {direction!r}.")
    for word in ("step", "low", "high"):
        value = words.get(word)
        if value is not None and not (checks.is_number(value) and np.isfinite(value) and (word != "step" or value > 0)):
            wanted = "a positive number" if word == "step" else "a finite number"
            raise InputError(f"{word} of {name!r} must be {wanted}; got {value!r}.")
    values = words.get("values")
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if values is not None and (isinstance(values, str) or not isinstance(values, Sequence)):
        raise InputError(f"values of {name!r} must be a list; got {values!r:.80}.")
    numbers = {word: words.get(word) for word in ("step", "low", "high")}
    return Rule(direction, **numbers, values=None if values is None else tuple(values))


def _check_category(name: str, rule: Rule) -> None:
    """Refuse a rule that needs an order, for a column that has none."""
    if rule.direction in ("up", "down") or (rule.step, rule.low, rule.high) != (None, None, None):
        raise InputError(
            f'{name!r} is a category, which has no order: its rule may be "frozen", "any" or {{"values": [...]}}; '
            f"got {rule.as_record()!r:.80}."
        )


def _check_number(name: str, rule: Rule) -> None:
    """Refuse bounds that exclude each other, and values that are not finite numbers."""
    if rule.low is not None and rule.high is not None and rule.low > rule.high:
        raise InputError(f"low of {name!r} must not be above its high; got {rule.low!r} and {rule.high!r}.")
    for value in rule.values or ():
        if not checks.is_number(value) or not np.isfinite(value):
            raise InputError(f"values of {name!r} must be finite numbers; got {value!r:.80}.")


@dataclass(frozen=True, eq=False)
class Grid:
    """The numbers that a column may take, from `low` to `high`: multiples of `step`, listed ones, or any (both None).

    Attributes
    ----------
    step : float or None
    values : (k,) or None
        In order.
    low, high : float
    """

    step: float | None
    values: Array | None
    low: float
    high: float

    @property
    def finite(self) -> bool:
        """Whether there are finitely many."""
        return self.step is not None or self.values is not None

    def count(self) -> int:
        """How many there are, where they are finite."""
        return len(self.all()) if self.values is not None else int(max(self._last() - self._first() + 1, 0))

    def all(self) -> Array:
        """All of them, in order."""
        if self.values is not None:
            return self.values[(self.values >= self.low) & (self.values <= self.high)]
        return self._of(np.arange(self._first(), self._last() + 1))

    def first_above(self, edge: float, most: float) -> float | None:
        """The least allowed number above `edge`, if it is not above `most`."""
        most = min(most, self.high)
        found: float | None
        if self.finite:
            found = self._next(edge, above=True)
        else:
            found = self.low if edge < self.low else _short(edge, most, up=True)
        return found if found is not None and edge < found <= most else None

    def last_upto(self, edge: float, least: float) -> float | None:
        """The largest allowed number up to `edge`, if it is above `least`."""
        top = min(edge, self.high)
        found = self._next(top, above=False) if self.finite else _short(top, max(least, self.low), up=False)
        return found if found is not None and least < found <= edge and found >= self.low else None

    def _next(self, edge: float, *, above: bool) -> float | None:
        """The nearest allowed value above the edge, or at or below it; None if there is none."""
        if self.values is not None:
            allowed = self.all()
            some = allowed[allowed > edge] if above else allowed[allowed <= edge]
            return float(some[0 if above else -1]) if len(some) else None
        step = float(self.step or 1.0)
        if not np.isfinite(edge):
            number = self._first() if above else self._last()
        else:
            number = float(np.floor(edge / step))
            around = [n for n in (number - 1, number, number + 1, number + 2) if (self._at(n) > edge) == above]
            number = min(around) if above else max(around)
        number = max(number, self._first()) if above else min(number, self._last())
        return self._at(number) if self._first() <= number <= self._last() else None

    def _first(self) -> float:
        return float(np.ceil(self.low / float(self.step or 1.0) - 1e-9))

    def _last(self) -> float:
        return float(np.floor(self.high / float(self.step or 1.0) + 1e-9))

    def _of(self, numbers: Array) -> Array:
        return np.array([self._at(n) for n in numbers], np.float64)

    def _at(self, number: float) -> float:
        # a multiple of 0.1 as a person writes it: 0.3, not 0.30000000000000004
        return float(f"{number * float(self.step or 1.0):.15g}")


def _short(edge: float, bound: float, *, up: bool) -> float | None:
    """A number near `edge`, on the side of `bound`, rounded to as few digits (at least 6) as possible.

    It lies in (edge, bound] if `up`, else in (bound, edge], or is `bound` itself if that is the edge.
    """
    if not (edge < bound if up else bound <= edge):
        return None
    for digits in range(6, 18):
        near = float(f"{edge:.{digits}g}")
        unit = 10.0 ** (np.floor(np.log10(abs(edge))) - digits + 1) if edge else 10.0**-digits
        for shift in (0.0, unit, -unit):
            found = float(f"{near + shift:.{digits}g}")
            if (edge < found <= bound) if up else (bound < found <= edge):
                return found
    return float(np.nextafter(edge, np.inf)) if up else edge
