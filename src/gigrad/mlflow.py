"""Explainers in MLflow: logged as pyfunc models, which MLflow scores and serves as any other.

What is stored is a portable file (see `gigrad.portable`), never a pickle: the model's library is not needed where the
explainer is loaded, and reading it runs no code.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from . import __version__, portable
from ._common import checks
from ._common.optional import require
from ._explain.explainer import Explainer
from .errors import InputError
from .references.typical import typical_values

__all__ = ["load_explainer", "log_explainer", "typical_row"]

_LOADER = "gigrad.mlflow"


def log_explainer(
    explainer: Explainer,
    name: str = "explainer",
    *,
    example: Any = None,
    registered_model_name: str | None = None,
    **more: Any,
) -> Any:
    """Log an explainer as a model of the active run of MLflow, or of a new one.

    `mlflow.pyfunc.load_model` gives a model whose `predict` returns, for every row of a table, its score, the
    reference's and the credit of every feature, as `Explanation.to_frame` has them; `load_explainer` gives the
    explainer itself.

    Parameters
    ----------
    explainer : Explainer
    name : str
    example : pandas table, optional
        Example inputs: they are stored, and MLflow checks later tables against their types. By default
        `typical_row(explainer)`, which is made from the reference and is not a real applicant.
    registered_model_name : str, optional
        Register it under this name.
    **more
        Other arguments of `mlflow.pyfunc.log_model`, such as `metadata` or `pip_requirements`.

    Returns
    -------
    mlflow.models.model.ModelInfo
        With the `model_uri` for `load_explainer`.

    Examples
    --------
    >>> import gigrad as gig
    >>> import mlflow
    >>> from gigrad.mlflow import load_explainer, log_explainer
    >>> mlflow.set_tracking_uri("sqlite:///mlflow.db")
    >>> experiment = mlflow.set_experiment("loans")
    >>> info = log_explainer(gig.Explainer(tree, [[0, 0]]))
    >>> load_explainer(info.model_uri)([[1, 1]]).values
    array([[2., 2.]])
    """
    mlflow = require("mlflow", "mlflow")
    example = typical_row(explainer) if example is None else example
    shown = _credits(explainer, example)  # an example that cannot be explained is refused before anything is stored
    facts = {"gigrad": __version__, "output_fingerprint": explainer.provenance["output"]["fingerprint"]}
    told: dict[str, Any] = {
        "signature": mlflow.models.infer_signature(example, shown),
        "input_example": example,
        "registered_model_name": registered_model_name,
        "pip_requirements": [f"gigrad=={__version__}", "pandas>=2.1"],
        **more,
        "metadata": facts | (more.get("metadata") or {}),
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "explainer.gig")
        explainer.save(file)
        return mlflow.pyfunc.log_model(name=name, loader_module=_LOADER, data_path=str(file), **told)


def load_explainer(model_uri: str, *, n_threads: int | None = None) -> Explainer:
    """The explainer that `log_explainer` stored: the same credits, to the bit.

    Parameters
    ----------
    model_uri : str
        "models:/loans/1", "runs:/<id>/explainer" or the path of a folder.
    n_threads : int, optional
        All cores by default.
    """
    mlflow = require("mlflow", "mlflow")
    threads = None if n_threads is None else checks.whole(n_threads, "n_threads")
    told = mlflow.models.get_model_info(str(model_uri)).flavors.get("python_function", {})
    if told.get("loader_module") != _LOADER:  # checked before loading: other models may run code
        raise InputError(f"model_uri must name an explainer that log_explainer stored; {model_uri} is another model.")
    explainer: Explainer = mlflow.pyfunc.load_model(str(model_uri)).get_raw_model()
    explainer.settings = replace(explainer.settings, n_threads=threads)
    return explainer


def typical_row(explainer: Explainer) -> Any:
    """One row of typical values of the reference, medians and most frequent categories, as a pandas table.

    Examples
    --------
    >>> import gigrad as gig
    >>> from gigrad.mlflow import typical_row
    >>> typical_row(gig.Explainer(tree, [[0, 0], [1, 0], [1, 1]])).to_dict("records")
    [{'x0': 1.0, 'x1': 0.0}]
    """
    pd = require("pandas", "mlflow")
    reference, columns = explainer.reference, explainer.scorer.columns
    values = typical_values(reference.matrix, explainer.weights, columns)
    data = {
        name: pd.Series([value], dtype=object if column.labels is not None else float)
        for name, column, value in zip(reference.names, columns, values, strict=True)
    }
    return pd.DataFrame(data)


class _Scored:
    """The pyfunc model that MLflow calls."""

    def __init__(self, explainer: Explainer) -> None:
        self.explainer = explainer

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        """Credits and scores of every row, as a pandas table."""
        return _credits(self.explainer, model_input)

    def get_raw_model(self) -> Explainer:
        """The explainer, for MLflow's `get_raw_model`."""
        return self.explainer


def _credits(explainer: Explainer, table: Any) -> Any:
    return explainer(table).to_frame(library="pandas").reset_index(drop=True)


def _load_pyfunc(path: str) -> _Scored:
    """The model in a folder; the entry point that `mlflow.pyfunc.load_model` calls."""
    return _Scored(portable.load(path))
