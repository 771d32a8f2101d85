"""Explain a model and write the report, in one call."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Unpack

from .._output.report import report_path, write
from .explainer import explain
from .explanation import Explanation
from .options import Keywords, takes_options


@takes_options
def report(
    model: Any,
    X: Any,
    reference: Any,
    path: str | Path,
    *,
    title: str | None = None,
    paths: int = 50,
    drift: Any = None,
    weights: Any = None,
    progress: bool | None = None,
    **options: Unpack[Keywords],
) -> Explanation:
    """Explain every row of X against a reference population and write one HTML file that shows it.

    Parameters
    ----------
    model, X, reference
        As in `gigrad.explain`, like the arguments after `drift`.
    path : str or Path
        The file to write, whose name ends in .html.
    title : str, optional
    paths : int
        The number of rows, from the first, whose path from the reference is shown too.
    drift : Drift, optional
        A result of `gigrad.monitor` for two runs, shown as a section of the page.

    Returns
    -------
    Explanation
        What the file shows.

    Examples
    --------
    >>> import gigrad as gig
    >>> e = gig.report(tree, [[1, 1], [0, 1]], [[0, 0]], "report.html", title="A small tree")
    >>> e.shape
    (2, 2)
    """
    path = report_path(path)
    e = explain(model, X, reference, weights=weights, paths=paths, progress=progress, **options)
    write(e, path, title=title, drift=drift)
    return e
