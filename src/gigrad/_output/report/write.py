"""Fills the report's template with its style, script and content."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..._common import checks
from ..._common.optional import require
from ..._explain.explanation import Explanation
from ..._io.durable import replacing
from . import content


def write(e: Explanation, path: str | Path, *, title: str | None = None, rows: int = 1000, drift: Any = None) -> None:
    """Write one HTML file that shows an explanation.

    Parameters
    ----------
    e : Explanation of one output
    path : str or Path
    title : str, optional
    rows : int
        How many rows to list at most; a larger explanation is sampled, and the page says so. Importance and
        completeness are always those of all rows.
    drift : Drift, optional
        A result of `gigrad.monitor`, for a section of its own.
    """
    path = report_path(path)
    page = render(e, title=title, rows=rows, drift=drift)
    with replacing(path) as aside:
        aside.write_text(page, encoding="utf-8")


def report_path(path: str | Path) -> Path:
    """The path of a report, checked; also called before the work starts, so that a wrong name fails early."""
    return checks.file_name(path, "a report", ".html", ".htm")


def render(e: Explanation, *, title: str | None = None, rows: int = 1000, drift: Any = None) -> str:
    """The page as text."""
    jinja2 = require("jinja2", "report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("gigrad._output.report", "page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page: str = environment.get_template("report.html").render(content.page(e, title, rows, drift))
    return page
