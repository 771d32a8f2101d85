"""An Explanation as a person reads it: plain text for a terminal, a static table for a notebook."""

from __future__ import annotations

from html import escape
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from .._common import display
from .frames import importance

if TYPE_CHECKING:
    from .._explain.explanation import Explanation

MOST = 8
"""How many features are listed; the others are gathered in one line."""
NAME, VALUE, LABEL = 44, 24, 48
"""Characters of a name, of a value beside a long name, and of both together where there is room."""
WIDTH = 86
"""Characters of a line of text, where a model of many parts has a long name."""


def title(e: Explanation) -> str:
    """What was explained against whom, in one line."""
    n, p = e.shape[:2]
    out = f"Explanation of {_count(n, 'row')} x {_count(p, 'feature')}"
    if len(e.output_names) > 1:
        out += f" x {len(e.output_names)} outputs ({display.shortened(', '.join(e.output_names), 60)})"
    label = e.provenance.get("model", {}).get("label")
    against = against_whom(e)
    return out + (f": {label}" if label else "") + (f" against {against}" if against else "")


def against_whom(e: Explanation) -> str:
    """The reference in words; "" where the provenance does not say."""
    reference = e.provenance.get("reference", {})
    if reference.get("kind") == "pairs":
        return "a start of its own for every row"
    if "rows" not in reference:
        return ""
    note = reference.get("note")
    return f"{_count(reference['rows'], 'reference row')}" + (f" ({note})" if note else "")


def lines(e: Explanation) -> list[tuple[str, float]]:
    """The largest credits of one row, or mean |credits| of many (and of all outputs), the others gathered."""
    alone = _alone(e)
    credit = e.values.reshape(-1) if alone else importance(e)[0].reshape(len(e.feature_names), -1).mean(axis=1)
    order = np.argsort(-np.abs(credit), kind="stable")
    shown = order[: MOST if len(order) > MOST + 1 else MOST + 1]
    names = display.short_names(e.feature_names, NAME)
    out = [(_labelled(e, j, names[j]) if alone else names[j], float(credit[j])) for j in shown]
    others = order[len(shown) :]
    if len(others):
        out.append(
            (f"{len(others)} others" if alone else f"{len(others)} others together", float(credit[others].sum()))
        )
    if alone and np.any(e.rest):
        out.append(("features left out", float(e.rest.sum())))
    return out


def heading(e: Explanation, places: int) -> str:
    """What the numbers below it are."""
    if _alone(e):
        base, prediction = float(e.base_values.sum()), float(e.predictions.sum())
        return (
            f"row {e.ids[0]}: from {display.score(base, places)} (reference) to {display.score(prediction, places)} "
            f"({display.credit(prediction - base, places)})"
        )
    return "mean |credit|"


def _figure(e: Explanation, credit: float, places: int) -> str:
    """A credit with its sign; a mean |credit| has none."""
    return display.credit(credit, places) if _alone(e) else display.score(credit, places)


def _alone(e: Explanation) -> bool:
    return len(e) == 1 and len(e.output_names) == 1


def chosen(e: Explanation) -> list[str]:
    """Which columns change half-way between two values, and an older definition, where there is something to say."""
    columns = display.chosen_columns(e.provenance.get("choice", {}))
    older = "model" in e.provenance and "definition" not in e.provenance
    return [line for line in (columns, "explained under definition 1" if older else "") if line]


def checks(e: Explanation) -> str:
    """What the numerics lost."""
    if len(e) == 0:
        return "no rows"
    return f"largest |gap| {np.abs(e.gap).max():.2g}, largest error {e.error.max():.2g}"


def as_text(e: Explanation) -> str:
    """What `print(e)` shows."""
    first = fill(title(e), WIDTH, subsequent_indent="  ")
    if len(e) == 0 or not e.feature_names:
        return first
    rows = lines(e)
    places = display.decimals(max(abs(credit) for _, credit in rows))
    names = [name for name, _ in rows]
    width = max(map(len, names))
    body = [
        f"    {name:<{width}}  {_figure(e, credit, places):>{places + 6}}"
        for name, (_, credit) in zip(names, rows, strict=True)
    ]
    last = [fill(line, WIDTH, initial_indent="  ", subsequent_indent="    ") for line in (*chosen(e), checks(e))]
    return "\n".join([first, f"  {heading(e, places)}", *body, *last])


def as_html(e: Explanation) -> str:
    """What a notebook shows: inherits the notebook's colours, so it is right in dark ones too."""
    head = f'<div style="font-weight:600">{escape(title(e))}</div>'
    if len(e) == 0 or not e.feature_names:
        return f"<div>{head}</div>"
    rows = lines(e)
    largest = max(abs(credit) for _, credit in rows) or 1.0
    places = display.decimals(largest)
    body = "".join(_html_line(e, name, credit, 160 * abs(credit) / largest, places) for name, credit in rows)
    return (
        f'<div style="font-family:sans-serif;font-size:13px;line-height:1.5">{head}'
        f'<div style="opacity:.8">{escape(heading(e, places))}</div>'
        f'<table style="border-collapse:collapse;margin:4px 0;color:inherit;font-size:inherit">{body}</table>'
        + "".join(f'<div style="opacity:.8">{escape(line)}</div>' for line in (*chosen(e), checks(e)))
        + "</div>"
    )


def _html_line(e: Explanation, name: str, credit: float, width: float, places: int) -> str:
    colour = display.POSITIVE if _alone(e) and credit > 0 else display.NEGATIVE
    return (
        '<tr style="background:none">'
        f'<td style="text-align:left;padding:1px 12px 1px 0">{escape(name)}</td>'
        f'<td style="text-align:right;padding:1px 8px 1px 0">{escape(_figure(e, credit, places))}</td>'
        f'<td style="text-align:left;padding:1px 0;width:164px"><div style="height:10px;width:{width:.1f}px;'
        f'background:{colour}"></div></td></tr>'
    )


def _labelled(e: Explanation, feature: int, name: str) -> str:
    raw = e.raw(int(feature))
    if raw is None:
        return name
    return f"{name} = {display.shortened(display.text(raw[0]), max(VALUE, LABEL - len(name) - 3))}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
