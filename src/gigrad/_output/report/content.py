"""The content of the report: text and figures for the template, and one JSON object for its script.

Credits are stored as integer multiples of a small unit, a hundred-thousandth of the largest, which keeps 1,000 rows of
50 features well under a megabyte.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._common import checks, display
from ..._explain.explanation import Explanation
from ..._explain.paths import Paths
from .. import notebook
from ..frames import importance
from ..views import one_output, origin, sampled, score_name
from .comparison import comparison

MOST_FEATURES = 100
MOST_PATHS = 200
PATH_FEATURES = 6
DEPENDENCE = 6


def page(e: Explanation, title: str | None, rows: int, drift: Any = None) -> dict[str, Any]:
    """All values of the template."""
    e = one_output(e, "report")
    mean_abs, mean, share = importance(e)
    order = np.argsort(-mean_abs, kind="stable")
    drawn, said = sampled(e, checks.whole(rows, "rows"))
    places = display.decimals(float(np.abs(e.values).max(initial=0.0)))
    return {
        "title": title or notebook.title(e),
        "subtitle": notebook.title(e) if title else "",
        "score": score_name(e),
        "listed": said,
        "against": notebook.against_whom(e) or "the reference",
        "origin": origin(e),
        "importance": [
            {
                "name": e.feature_names[j],
                "size": display.score(float(mean_abs[j]), places),
                "mean": display.credit(float(mean[j]), places),
                "share": f"{share[j]:.1%}",
                "width": f"{100 * mean_abs[j] / (mean_abs.max() or 1.0):.1f}",
            }
            for j in order
        ],
        "drift": comparison(drift),
        "completeness": completeness(e),
        "provenance": flat(e.provenance),
        "data": data(drawn, order, places),
    }


def completeness(e: Explanation) -> list[tuple[str, str]]:
    """How well the credits add up, over all rows."""
    change = float(np.abs(e.predictions - e.base_values).max())
    left = e.predictions - e.base_values - e.values.sum(axis=1) - e.rest - e.gap
    return [
        ("rows explained", f"{len(e):,}"),
        ("largest |prediction − base|", display.number(change)),
        ("largest |gap| (numerical loss)", f"{np.abs(e.gap).max():.2g}"),
        ("mean |gap|", f"{np.abs(e.gap).mean():.2g}"),
        ("largest estimated error of a credit", f"{e.error.max():.2g}"),
        ("largest |prediction − base − credits − gap|", f"{np.abs(left).max():.2g}"),
    ]


def flat(record: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """A nested record as lines of name and value."""
    out: list[tuple[str, str]] = []
    for name, value in record.items():
        label = f"{prefix}{name.replace('_', ' ')}"
        if isinstance(value, dict):
            out.extend(flat(value, f"{label}: "))
        else:
            out.append((label, ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)))
    return out


def data(e: Explanation, order: NDArray[np.int64], places: int) -> dict[str, Any]:
    """The data for the script; features by importance, those beyond the first hundred summed."""
    shown = order[:MOST_FEATURES]
    left = e.values[:, order[MOST_FEATURES:]].sum(axis=1) + e.rest
    unit = float(np.abs(e.values).max(initial=0.0)) / 1e5 or 1.0
    others = len(order) - len(shown)
    short = display.short_names(e.feature_names, 30)
    return {
        "score": score_name(e),
        "origin": origin(e),
        "places": places,
        "names": [e.feature_names[j] for j in shown],
        "short": [short[j] for j in shown],  # where there is little room; no two alike
        "ids": display.texts(e.ids),
        "base": brief(e.base_values),
        "prediction": brief(e.predictions),
        "unit": unit,
        "credits": whole(e.values[:, shown], unit),
        "left": whole(left, unit) if others or np.any(e.rest) else None,
        "leftName": f"{others} others" if others else "features left out",
        "columns": [column(e, int(j)) for j in shown],
        "dependence": [i for i, j in enumerate(shown) if e.raw(int(j)) is not None][:DEPENDENCE],
        "paths": None if e.paths is None else paths(e.paths, shown, unit),
    }


def column(e: Explanation, feature: int) -> dict[str, Any]:
    """A feature's raw values, and those at the starts of pairs: numbers, or labels once and a code a row."""
    raw, before = e.raw(feature), e.raw_start(feature)
    if raw is None:
        return {"kind": "none"}
    numbers = display.numbers(raw if before is None else np.concatenate([raw, before]))
    if numbers.labels is None:
        codes: list[Any] = brief(numbers.values)
        out: dict[str, Any] = {"kind": "number"}
    else:
        codes = [None if np.isnan(v) else int(v) for v in numbers.values]
        out = {"kind": "category", "labels": list(numbers.labels)}
    return out | {"values": codes[: len(raw)]} | ({} if before is None else {"starts": codes[len(raw) :]})


def paths(found: Paths, shown: NDArray[np.int64], unit: float) -> dict[str, Any]:
    """The path to each row: the score, the accumulated credits of the largest features, the largest jumps."""
    place = {int(j): i for i, j in enumerate(shown)}
    rows: dict[int, Any] = {}
    for i, row in enumerate(found.rows[:MOST_PATHS].tolist()):
        credit = found.credit[i]
        largest = [j for j in np.argsort(-np.abs(credit[-1]), kind="stable").tolist() if j in place][:PATH_FEATURES]
        jumps = np.flatnonzero((found.jump_row == i) & (found.jump_size != 0))
        jumps = jumps[np.argsort(-np.abs(found.jump_size[jumps]), kind="stable")][:5]
        rows[row] = {
            "score": whole(found.score[i] - found.score[i, 0], unit),
            "start": float(f"{found.score[i, 0]:.7g}"),
            "bands": [[place[j], whole(credit[:, j], unit)] for j in largest],
            "jumps": [
                [round(float(found.jump_time[j]), 4), place.get(int(found.jump_feature[j]), -1),
                 round(float(found.jump_size[j]) / unit)]
                for j in jumps
            ],
        }  # fmt: skip
    return {"times": np.round(found.times, 5).tolist(), "said": found.said, "rows": rows}


def whole(credit: NDArray[np.float64], unit: float) -> Any:
    """Credits as integer multiples of `unit`."""
    return np.rint(credit / unit).astype(np.int64).tolist()


def brief(values: NDArray[np.float64]) -> list[Any]:
    """Numbers with seven significant digits, whole ones as int, missing ones as None."""
    return [None if v != v else int(v) if v == int(v) and abs(v) < 1e15 else float(f"{v:.7g}") for v in values.tolist()]
