"""The other explainers, each as one function from a workload to credits, with what it is that they compute."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from workloads import Work

import gigrad as gig


@dataclass(frozen=True)
class Peer:
    """An explainer to time.

    Attributes
    ----------
    name : str
    prepare : callable
        Builds the explainer, untimed, and gives the function to time: () -> credits (rows, columns).
    same_question : bool
        Whether it computes path-integrated credit, so that its numbers must equal ours where there are no ties.
    """

    name: str
    prepare: Callable[[Work], Callable[[], np.ndarray]]
    same_question: bool = False


def gigrad(
    output: object = "margin", threads: int = 1, simd: str | None = None
) -> Callable[[Work], Callable[[], np.ndarray]]:
    """gigrad itself, with the walk that it chooses or another one."""

    def prepare(work: Work) -> Callable[[], np.ndarray]:
        explainer = gig.Explainer(gig.import_model(work.model), work.reference, output=output, n_threads=threads)

        def explain() -> np.ndarray:
            chosen = gig.config.simd
            gig.config.simd = simd or chosen
            try:
                return explainer(work.rows).values
            finally:
                gig.config.simd = chosen

        return explain

    return prepare


def shap_trees(output: str = "raw", reference: bool = True) -> Callable[[Work], Callable[[], np.ndarray]]:
    import shap

    def prepare(work: Work) -> Callable[[], np.ndarray]:
        if reference:
            explainer = shap.TreeExplainer(
                work.model, work.reference, feature_perturbation="interventional", model_output=output
            )
        else:
            explainer = shap.TreeExplainer(work.model)
        return lambda: _positive(explainer.shap_values(work.rows, check_additivity=False))

    return prepare


def _positive(values: object) -> np.ndarray:
    array = np.asarray(values)
    return array[..., 1] if array.ndim == 3 else array


def treeig(work: Work) -> Callable[[], np.ndarray]:
    from treeig import TreeIG

    explainer = TreeIG(work.model)
    return lambda: np.asarray(explainer.attribute(work.rows, baseline=work.reference))


def unifiedig(work: Work) -> Callable[[], np.ndarray]:
    from unifiedig import Explainer

    explainer = Explainer(work.model, work.reference, check_completeness=False)

    def explain() -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(explainer(work.rows).values)

    return explain


def woodelf(work: Work) -> Callable[[], np.ndarray]:
    from woodelf.explainer import WoodelfExplainer

    # it reads XGBoost's columns by the names the model gives them
    names = [f"f{j}" for j in range(work.rows.shape[1])]
    background, rows = (pd.DataFrame(x, columns=names) for x in (work.reference, work.rows))
    booster = work.model.get_booster().copy()
    booster.feature_names = names
    explainer = WoodelfExplainer(booster, background)
    return lambda: np.asarray(explainer.shap_values(rows, verbose=False))
