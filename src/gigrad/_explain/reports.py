"""From a model to its report in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .._output.report import report_path, write
from .explainer import Discrete, explain
from .explanation import Explanation


def report(
    model: Any,
    X: Any,
    reference: Any,
    path: str | Path,
    *,
    title: str | None = None,
    paths: int = 50,
    weights: Any = None,
    output: Any = None,
    target: str | float | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    discrete: Discrete = None,
    nominal: Sequence[str] | None = None,
    tol: float = 1e-6,
    n_threads: int | None = None,
    seed: int = 0,
    corner_tol: float = 1e-3,
) -> Explanation:
    """Explain every row of X against a reference population and write one HTML file that shows it.

    Parameters
    ----------
    model, X, reference
        As in `gigrad.explain`, like the arguments after `paths`.
    path : str or Path
        The file to write, whose name ends in .html.
    title : str, optional
    paths : int
        For how many rows, from the first, the way from the reference is shown too.

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
    e = explain(
        model, X, reference, weights=weights, output=output, target=target, groups=groups, discrete=discrete,
        nominal=nominal, tol=tol, n_threads=n_threads, seed=seed,
        corner_tol=corner_tol, paths=paths,
    )  # fmt: skip
    write(e, path, title=title)
    return e
