"""Values as text: raw data in its own units, categories by their labels, missing values as "missing"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

MISSING = "missing"
POSITIVE = "#dd6b0d"
NEGATIVE = "#2b83ba"
"""Colours for and against a higher score, distinguishable for colour-blind readers, on white and on black."""


def column(data: Any, position: int) -> NDArray[Any]:
    """The raw values of one column of a table, (n,): numbers where the column holds numbers, objects elsewhere."""
    if isinstance(data, np.ndarray):
        return data[:, position]
    frame = nw.from_native(data, eager_only=True)
    series = frame[frame.columns[position]]
    if series.dtype.is_float() or (series.dtype.is_integer() and not series.is_null().any()):
        return np.asarray(series.to_numpy())
    return np.array([*series.to_list(), None], dtype=object)[:-1]


def is_missing(value: Any) -> bool:
    """Whether a raw value is missing: None, NaN, NaT, pandas' NA."""
    # The names come first: pandas' NA has no truth value to compare with.
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def plain(value: Any) -> Any:
    """A raw value for JSON: number, text, bool, None for missing; anything else as its text."""
    if is_missing(value):
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (str, bool, int)) or (isinstance(value, float) and np.isfinite(value)):
        return value
    return text(value)


@dataclass(frozen=True, eq=False)
class Numbers:
    """A raw column as numbers, for plots.

    Attributes
    ----------
    values : (n,) float64
        The numbers themselves, or the positions of the labels; NaN where missing.
    labels : tuple of str or None
        The label of each position, sorted; None for a column of numbers.
    """

    values: NDArray[np.float64]
    labels: tuple[str, ...] | None


def numbers(raw: NDArray[Any]) -> Numbers:
    """A raw column as numbers: numbers as they are, anything else by the position among its sorted labels."""
    if raw.dtype.kind in "biuf":
        return Numbers(raw.astype(np.float64), None)
    missing = np.array([is_missing(v) for v in raw], dtype=bool)
    out = np.full(len(raw), np.nan)
    present = raw[~missing].tolist()
    if all(isinstance(v, (int, float, np.number)) for v in present) and not any(isinstance(v, bool) for v in present):
        out[~missing] = present
        return Numbers(out, None)
    labels = sorted({text(v) for v in present})
    position = {label: i for i, label in enumerate(labels)}
    out[~missing] = [position[text(v)] for v in present]
    return Numbers(out, tuple(labels))


def text(value: Any) -> str:
    """One raw value in the units of the data: 0.25, 1200, "rent", 2011-03-01, missing."""
    if is_missing(value):
        return MISSING
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (int, float, np.number)):
        return number(float(value)) if not isinstance(value, (int, np.integer)) else str(int(value))
    return str(value).removesuffix(" 00:00:00").removesuffix("T00:00:00.000000000")


def texts(values: Iterable[Any]) -> list[str]:
    """`text` of every value."""
    return [text(v) for v in values]


def number(value: float) -> str:
    """A number with five significant digits, and an exponent only for very large or small ones."""
    if value != value:
        return MISSING
    if value == int(value) if abs(value) < 1e15 else False:
        return str(int(value))
    if 1e-4 <= abs(value) < 1e5:
        return f"{value:.5g}"
    return f"{value:.0f}" if 1e5 <= abs(value) < 1e15 else f"{value:.4g}"


def decimals(scale: float) -> int:
    """How many decimals show three digits of a number of the size `scale`."""
    return int(np.clip(2 - np.floor(np.log10(scale)), 0, 12)) if 0 < scale < np.inf else 2


def credit(value: float, places: int) -> str:
    """A credit with its sign, to `places` decimals: +0.123, −0.020 (a true minus sign), 0.000."""
    shown = f"{abs(value):.{places}f}"
    if float(shown) == 0:
        return shown
    return ("+" if value > 0 else "\N{MINUS SIGN}") + shown


def score(value: float, places: int) -> str:
    """A score to `places` decimals, with a true minus sign."""
    shown = f"{abs(value):.{places}f}"
    return shown if value >= 0 or float(shown) == 0 else "\N{MINUS SIGN}" + shown


def chosen_columns(record: Mapping[str, Any], most: int = 4) -> str:
    """The discrete and nominal columns of a choice as provenance holds it: "discrete: 3 columns (a, b, c)"."""
    discrete = [name for names in record.get("discrete", {}).values() for name in names]
    parts = []
    for what, names in (
        ("discrete", discrete),
        ("nominal", record.get("nominal", [])),
        ("0 or 1 but not discrete", record.get("flags_not_discrete", [])),
    ):
        if names:
            shown = ", ".join(names[:most]) + (", ..." if len(names) > most else "")
            parts.append(f"{what}: {len(names)} column{'' if len(names) == 1 else 's'} ({shown})")
    return "; ".join(parts)


NAME_WIDTH = 44
"""Characters of the name of a feature in a line of text."""


def shortened(name: str, width: int) -> str:
    """A name shortened in the middle to `width` characters: the ends of long names differ most."""
    if len(name) <= width:
        return name
    head = (width - 1) * 2 // 3
    return name[:head] + "…" + name[len(name) - (width - 1 - head) :]


@lru_cache(maxsize=256)
def short_names(names: tuple[str, ...], width: int) -> tuple[str, ...]:
    """Every name in at most `width` characters, and different names as different texts.

    Names that would be cut to the same text keep the part in which they differ: of `bureau_trades_last_3_months_open`
    and `bureau_trades_last_6_months_open` that is the number.
    """
    out = [shortened(name, width) for name in names]
    alike: dict[str, list[int]] = {}
    for i, text in enumerate(out):
        alike.setdefault(text, []).append(i)
    for group in alike.values():
        if len({names[i] for i in group}) > 1:
            for i, text in zip(group, _told_apart([names[i] for i in group], width), strict=True):
                out[i] = text
    if len(set(out)) < len(set(names)):  # a shortened name equals another one
        seen = {name: k for k, name in enumerate(dict.fromkeys(names), 1)}
        out = [f"{shortened(name, width - len(str(seen[name])) - 3)} ({seen[name]})" for name in names]
    return tuple(out)


def _told_apart(names: Sequence[str], width: int) -> list[str]:
    """Names shortened around the part in which they differ; numbered if that part is too long itself."""
    head = _alike(names)
    tail = min(_alike([name[::-1] for name in names]), min(map(len, names)) - head)
    cut = []
    for name in names:
        differs = slice(head, len(name) - tail)
        around = max((width - 2 - len(name[differs])) // 4, 0)  # characters at each end, and on each side of the part
        middle = name[max(head - around, 0) : len(name) - max(tail - around, 0)]
        begin, end = name[: min(around, max(head - around, 0))], name[len(name) - min(around, max(tail - around, 0)) :]
        cut.append(f"{begin}…{middle}…{end}" if tail > around else f"{begin}…{middle}")
    if len(set(cut)) == len(set(names)) and max(map(len, cut)) <= width:
        return cut
    number = {name: k for k, name in enumerate(dict.fromkeys(names), 1)}
    return [f"{shortened(name, width - len(f' ({number[name]})'))} ({number[name]})" for name in names]


def _alike(names: Sequence[str]) -> int:
    """The length of the names' common prefix."""
    return next(
        (i for i, letters in enumerate(zip(*names, strict=False)) if len(set(letters)) > 1), min(map(len, names))
    )


def near(name: object, known: Iterable[str]) -> str:
    """A question that suggests the nearest known name, or nothing: " Did you mean 'income'?"."""
    found = get_close_matches(str(name), list(known), n=1, cutoff=0.6)
    return f" Did you mean {found[0]!r}?" if found else ""
