"""An Explanation as plain text for a terminal, or as a static HTML table for a notebook."""

from __future__ import annotations

from html import escape
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .._common import display
from .frames import importance
from .views import changed, is_pairs, origin, output_name, value_of_row

if TYPE_CHECKING:
    from .._explain.explanation import Explanation

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST = 8
"""The number of features listed; the others are summed in one line."""
NAME, VALUE, LABEL = display.NAME_WIDTH, 24, 48
"""Characters of a name, of a value beside a long name, and of both together."""
OUTPUTS = 5
"""The number of outputs of one row shown side by side: those with the largest change."""
WIDTH = 86
"""Characters of a line of text; a model of many parts may have a long name."""


def title(e: Explanation) -> str:
    """One line: what was explained, and the reference."""
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
    if is_pairs(e):
        return "its own start" if len(e) == 1 else "a start of its own for every row"
    if "rows" not in reference:
        return ""
    note = reference.get("note")
    return f"{_count(reference['rows'], 'reference row')}" + (f" ({note})" if note else "")


def lines(e: Explanation) -> list[tuple[str, float]]:
    """The largest credits of one row, or mean |credits| of many (and of all outputs); the others summed."""
    alone = _alone(e)
    credit = e.values.reshape(-1) if alone else importance(e)[0].reshape(len(e.feature_names), -1).mean(axis=1)
    order, shown = _listed(e, credit)
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


def _listed(e: Explanation, size: Array) -> tuple[Ints, Ints]:
    """The features that `changed` names, by falling `size`, and those of them that are listed one by one."""
    order = np.argsort(-np.abs(size), kind="stable")
    order = order[changed(e)[order]]
    return order, order[: MOST if len(order) > MOST + 1 else MOST + 1]


def table(e: Explanation) -> list[list[str]]:
    """One row of several outputs: a line for each of the largest features, a column for each output, with their names.

    Below them where the outputs start, and the predictions.
    """
    gain = np.abs(e.predictions - e.base_values)[0]
    shown = np.sort(np.argsort(-gain, kind="stable")[:OUTPUTS])
    credit = e.values[0][:, shown]
    order, listed = _listed(e, np.abs(credit).mean(axis=1))
    names = display.short_names(e.feature_names, NAME)
    places = display.decimals(float(np.abs(credit).max(initial=0.0)) or 1.0)
    parts = [(_labelled(e, j, names[j]), credit[j]) for j in listed]
    others = order[len(listed) :]
    if len(others):
        parts.append((f"{len(others)} others", credit[others].sum(axis=0)))
    if np.any(e.rest):
        parts.append(("features left out", e.rest.reshape(-1)[shown]))
    ends = [(origin(e), e.base_values[0, shown]), ("prediction", e.predictions[0, shown])]
    return [
        ["", *(output_name(e.output_names[k], 16) for k in shown)],
        *([name, *(display.credit(float(v), places) for v in values)] for name, values in parts),
        *([name, *(display.score(float(v), places) for v in values)] for name, values in ends),
    ]


def heading(e: Explanation, places: int) -> str:
    """The heading of the numbers: scores of one row, or mean |credit|."""
    if _alone(e):
        base, prediction = float(e.base_values.sum()), float(e.predictions.sum())
        return (
            f"row {e.ids[0]}: from {display.score(base, places)} ({origin(e)}) to {display.score(prediction, places)} "
            f"({display.credit(prediction - base, places)})"
        )
    if len(e.output_names) == 1:
        return "mean |credit|"
    count = len(e.output_names)
    if len(e) > 1:
        return f"mean |credit| of {count} outputs; for one of them e[:, :, {e.output_names[0]!r}]"
    some = f"the {OUTPUTS} of {count} outputs that moved most" if count > OUTPUTS else f"{count} outputs"
    return f"row {e.ids[0]}: credits of {some}"


def _figure(e: Explanation, credit: float, places: int) -> str:
    """A credit with its sign; a mean |credit| has none."""
    return display.credit(credit, places) if _alone(e) else display.score(credit, places)


def _alone(e: Explanation) -> bool:
    return len(e) == 1 and len(e.output_names) == 1


def _side_by_side(e: Explanation) -> bool:
    return len(e) == 1 and len(e.output_names) > 1


def chosen(e: Explanation) -> list[str]:
    """Additional lines: unchanged features, discrete and nominal columns, an older definition."""
    columns = display.chosen_columns(e.provenance.get("choice", {}))
    older = "model" in e.provenance and "definition" not in e.provenance
    still = int((~changed(e)).sum())
    same = f"{_count(still, 'feature')} did not change" if still else ""
    return [line for line in (same, columns, "explained under definition 1" if older else "") if line]


def checks(e: Explanation) -> str:
    """The largest gap and error, in a line."""
    if len(e) == 0:
        return "no rows"
    return f"largest |gap| {np.abs(e.gap).max():.2g}, largest error {e.error.max():.2g}"


def as_text(e: Explanation) -> str:
    """The text that `print(e)` shows."""
    first = fill(title(e), WIDTH, subsequent_indent="  ")
    if len(e) == 0 or not e.feature_names:
        return first
    places, body = _text_of_table(e) if _side_by_side(e) else _text_of_lines(e)
    last = [fill(line, WIDTH, initial_indent="  ", subsequent_indent="    ") for line in (*chosen(e), checks(e))]
    return "\n".join([first, f"  {heading(e, places)}", *body, *last])


def _text_of_lines(e: Explanation) -> tuple[int, list[str]]:
    """The decimals shown, and the lines of text for one row of one output."""
    rows = lines(e)
    places = display.decimals(max((abs(credit) for _, credit in rows), default=1.0))
    width = max((len(name) for name, _ in rows), default=0)
    return places, [f"    {name:<{width}}  {_figure(e, credit, places):>{places + 6}}" for name, credit in rows]


def _text_of_table(e: Explanation) -> tuple[int, list[str]]:
    """The decimals shown, and the lines of text for one row of several outputs, a column for each."""
    rows = table(e)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    first, *others = widths
    return 0, [
        f"    {name:<{first}}" + "".join(f"  {text:>{width}}" for text, width in zip(texts, others, strict=True))
        for name, *texts in rows
    ]


def as_html(e: Explanation) -> str:
    """The HTML that a notebook shows; inherits the notebook's colours, so that it suits dark themes too."""
    head = f'<div style="font-weight:600">{escape(title(e))}</div>'
    if len(e) == 0 or not e.feature_names:
        return f"<div>{head}</div>"
    places, body = _html_of_table(e) if _side_by_side(e) else _html_of_lines(e)
    return (
        f'<div style="font-family:sans-serif;font-size:13px;line-height:1.5">{head}'
        f'<div style="opacity:.8">{escape(heading(e, places))}</div>'
        f'<table style="border-collapse:collapse;margin:4px 0;color:inherit;font-size:inherit">{body}</table>'
        + "".join(f'<div style="opacity:.8">{escape(line)}</div>' for line in (*chosen(e), checks(e)))
        + "</div>"
    )


def _html_of_lines(e: Explanation) -> tuple[int, str]:
    """The decimals shown, and the rows of an HTML table for one output, with bars."""
    rows = lines(e)
    largest = max((abs(credit) for _, credit in rows), default=0.0) or 1.0
    places = display.decimals(largest)
    body = "".join(_html_line(e, name, credit, 160 * abs(credit) / largest, places) for name, credit in rows)
    return places, body


def _html_of_table(e: Explanation) -> tuple[int, str]:
    """The decimals shown, and the rows of an HTML table for one row of several outputs, without bars."""
    cell = '<td style="text-align:{};padding:1px 12px 1px 0">{}</td>'
    body = "".join(
        '<tr style="background:none">'
        + "".join(cell.format("right" if k else "left", escape(text)) for k, text in enumerate(row))
        + "</tr>"
        for row in table(e)
    )
    return 0, body


def _html_line(e: Explanation, name: str, credit: float, width: float, places: int) -> str:
    """One row of the table: name, credit and a bar of `width` pixels."""
    colour = display.POSITIVE if _alone(e) and credit > 0 else display.NEGATIVE
    return (
        '<tr style="background:none">'
        f'<td style="text-align:left;padding:1px 12px 1px 0">{escape(name)}</td>'
        f'<td style="text-align:right;padding:1px 8px 1px 0">{escape(_figure(e, credit, places))}</td>'
        f'<td style="text-align:left;padding:1px 0;width:164px"><div style="height:10px;width:{width:.1f}px;'
        f'background:{colour}"></div></td></tr>'
    )


def _labelled(e: Explanation, feature: int, name: str) -> str:
    """A feature's name followed by its value in the explained row, cut to fit a line."""
    room = max(VALUE, LABEL - len(name) - 3)
    return name + value_of_row(e, int(feature), room if e.starts is None else max(room // 2 - 2, VALUE // 2))


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
