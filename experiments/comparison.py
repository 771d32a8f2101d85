"""Who can explain which model: gigrad beside Captum, shap's explainers and the sum of tree and net explanations.

For every model of the other experiments: whether a method applies at all, its time a row, how far its credits are from
adding up to the model's own scores, and how much they change with the seed. Every method gets the same rows, the same
reference and one thread; its time is processor time, with what it prepares for a reference, the better of two runs.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import covertype
import moons
import numpy as np
import ovals
import shap
import torch
from captum.attr import IntegratedGradients
from common import Run, progress
from threadpoolctl import threadpool_limits
from torch import nn

import gigrad as gig

Explain = Callable[[int], np.ndarray]  # seed -> credits (rows, columns)


class Ranked(nn.Module):
    """A net and its smoothed ECDF in torch, so that methods for nets are given their best chance."""

    def __init__(self, net: nn.Module, rank: gig.SmoothedECDF) -> None:
        super().__init__()
        self.net, self.x, self.u = net, torch.tensor(rank.x), torch.tensor(rank.u)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        score = self.net(rows).clamp(self.x[0], self.x[-1])
        left = (torch.searchsorted(self.x, score.detach().contiguous(), right=True) - 1).clamp(0, len(self.x) - 2)
        slope = (self.u[left + 1] - self.u[left]) / (self.x[left + 1] - self.x[left])
        return self.u[left] + slope * (score - self.x[left])


@dataclass(frozen=True)
class Setting:
    """One model with what each method needs of it."""

    name: str
    model: Any  # for gigrad
    output: str | None
    predict: Callable[[np.ndarray], np.ndarray]
    rows: np.ndarray
    reference: np.ndarray
    samples: int  # of KernelExplainer
    trees: Any = None  # the model, where it is one sum of trees that shap knows
    net: nn.Module | None = None  # the model, where it can be written in torch
    parts: tuple[tuple[float, Setting], tuple[float, Setting]] | None = None  # where it is a weighted sum of those


def with_gigrad(s: Setting) -> Explain:
    def explain(seed: int) -> np.ndarray:
        return gig.explain(s.model, s.rows, s.reference, output=s.output, seed=seed, n_threads=1).values

    return explain


def with_ig(s: Setting) -> Explain | None:
    """Integrated Gradients, 50 steps, averaged over the reference: needs the whole model in torch."""
    net = s.net
    return None if net is None else lambda seed: integrated(net, s)


def integrated(net: nn.Module, s: Setting) -> np.ndarray:
    ends, starts = np.repeat(s.rows, len(s.reference), axis=0), np.tile(s.reference, (len(s.rows), 1))
    found = IntegratedGradients(net).attribute(torch.tensor(ends), torch.tensor(starts), n_steps=50)
    return found.detach().numpy().reshape(len(s.rows), len(s.reference), -1).mean(axis=1)


def with_trees(s: Setting) -> Explain | None:
    """shap's TreeExplainer: needs one sum of trees."""
    return None if s.trees is None else lambda seed: tree_values(s)


def tree_values(s: Setting) -> np.ndarray:
    explainer = shap.TreeExplainer(s.trees, s.reference, feature_perturbation="interventional", model_output="raw")
    found = np.asarray(explainer.shap_values(s.rows, check_additivity=False))
    return found[..., 1] if found.ndim == 3 else found


def with_deep(s: Setting) -> Explain | None:
    """shap's DeepExplainer: needs the whole model in torch; for layers that it does not know it takes plain slopes."""
    net = s.net
    if net is None:
        return None

    def explain(seed: int) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            explainer = shap.DeepExplainer(net, torch.tensor(s.reference))
            found = explainer.shap_values(torch.tensor(s.rows), check_additivity=False)
        return np.asarray(found).reshape(len(s.rows), -1)

    return explain


def with_sum(s: Setting) -> Explain | None:
    """Tree values and IG values summed with the head's weights: needs a weighted sum of trees and a net."""
    if s.parts is None:
        return None
    (a, one), (b, other) = s.parts

    def explain(seed: int) -> np.ndarray:
        if other.net is None:
            raise TypeError("the second part of the sum must be a net")
        return a * tree_values(one) + b * integrated(other.net, other)

    return explain


def with_kernel(s: Setting) -> Explain:
    def explain(seed: int) -> np.ndarray:
        np.random.seed(seed)  # noqa: NPY002  (KernelExplainer draws from the global generator)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            explainer = shap.KernelExplainer(s.predict, s.reference)
            return np.asarray(explainer.shap_values(s.rows, nsamples=s.samples, silent=True))

    return explain


METHODS: dict[str, Callable[[Setting], Explain | None]] = {
    "gigrad": with_gigrad,
    "IG (Captum, 50 steps)": with_ig,
    "TreeExplainer": with_trees,
    "DeepExplainer": with_deep,
    "tree values + IG, summed": with_sum,
    "KernelExplainer": with_kernel,
}


def measure(s: Setting, explain: Explain) -> tuple[float, float, float]:
    """Seconds a row, the completeness gap and the change between two seeds, both relative."""
    marks, found = [time.process_time()], []
    for seed in (0, 1):
        found.append(explain(seed))
        marks.append(time.process_time())
    (one, two), seconds = found, float(np.diff(marks).min()) / len(s.rows)
    rise = s.predict(s.rows) - s.predict(s.reference).mean()
    gap = float(np.abs(one.sum(axis=1) - rise).max() / max(np.abs(rise).max(), 1e-12))
    noise = float(np.linalg.norm(one - two) / np.linalg.norm(one))
    return seconds, gap, noise


def pick(rng: np.random.Generator, X: np.ndarray, n: int) -> np.ndarray:
    return X[rng.choice(len(X), n, replace=False)]


def boosted(run: Run) -> list[Setting]:
    """The XGBoost models of moons and ovals, their margin."""
    made = {f"moons, {name}": moons.moons(share)[:3] for name, share in moons.MIXTURES.items()}
    X, y, _ = ovals.ovals(np.random.default_rng(0), 20_000)
    made["ovals"] = (X, X, y)
    found = []
    for name, (train, test, y_train) in made.items():
        model = ovals.fitted(train, y_train) if name == "ovals" else moons.fitted(train, y_train)

        def margin(rows: np.ndarray, model: Any = model) -> np.ndarray:
            return model.predict(rows, output_margin=True).astype(np.float64)

        rng = np.random.default_rng(3)
        rows, reference = pick(rng, test, 10), pick(rng, train, 10 if run.quick else 50)
        found.append(Setting(name, model, "margin", margin, rows, reference, 512, trees=model))
    return found


def of_covertype(run: Run) -> list[Setting]:
    shared = Run("covertype", run.quick, run.folder)  # the very nets of that experiment
    parts = covertype.splits(run.quick)
    graphs = covertype.models(shared, parts)
    net = covertype.saved(shared, "net", covertype.mlp(run.quick), *parts["train"], 0)
    rng = np.random.default_rng(3)
    rows, reference = pick(rng, parts["test"][0], 2), pick(rng, parts["late"][0], 4 if run.quick else 6)
    samples = 512 if run.quick else 2048
    found = {
        name: Setting(name, graph, None, graph.predict, rows, reference, samples) for name, graph in graphs.items()
    }
    rank = gig.SmoothedECDF.fit(graphs["MLP"].predict(parts["early"][0]))
    etf = Setting(**{**vars(found["ETF"]), "trees": covertype.forest(parts)})
    mlp = Setting(**{**vars(found["MLP"]), "net": net})
    a, b = covertype.linear_weights(graphs["linear of raw"])
    found |= {
        "ETF": etf,
        "MLP": mlp,
        "ECDF(MLP)": Setting(**{**vars(found["ECDF(MLP)"]), "net": Ranked(net, rank)}),
        "linear of raw": Setting(**{**vars(found["linear of raw"]), "parts": ((a, etf), (b, mlp))}),
    }
    return list(found.values())


def main() -> None:
    run = Run.from_command_line("comparison", __doc__)
    torch.set_num_threads(1)
    with threadpool_limits(1):
        settings = boosted(run) + of_covertype(run)
        measured = measure_all(run, settings)
    table, alone, worst = [], 0, 0.0
    for s in settings:
        of_model = measured[s.name]
        for method in METHODS:
            if method not in of_model:
                table.append([s.name, method, "no", "", "", ""])
                continue
            seconds, gap, noise = of_model[method]
            table.append([s.name, method, "yes", f"{seconds:.2g} s", f"{gap:.1e}", f"{noise:.1%}" if noise else "none"])
        worst = max(worst, *of_model["gigrad"][1:])
        alone += set(of_model) == {"gigrad", "KernelExplainer"}
    run.table("Who can explain what", ["model", "method", "applies", "time a row", "gap", "seed to seed"], table)
    run.claim(
        "gigrad explains every model and adds up", "GIG explains compositions of mixed type",
        f"largest relative gap or noise {worst:.1e}", worst < 1e-5,
    )  # fmt: skip
    run.claim(
        "models that only gigrad and sampling can explain", "prior methods fail on non-linear or ranked ensembles",
        f"{alone} of {len(settings)}: ranked trees, and every ensemble but the linear one of raw scores", alone == 8,
    )  # fmt: skip
    run.finish()


def measure_all(run: Run, settings: list[Setting]) -> dict[str, dict[str, tuple[float, float, float]]]:
    """Every method on every model it applies to, each a stage, so that a run that was cut off goes on."""
    todo = [(s, m, e) for s in settings for m, prepare in METHODS.items() if (e := prepare(s)) is not None]
    found: dict[str, dict[str, tuple[float, float, float]]] = {s.name: {} for s in settings}
    began = time.perf_counter()
    for done, (s, method, explain) in enumerate(todo):
        key = f"{s.name} {method}".replace(" ", "_").replace("/", "")
        got = run.stage(key, lambda s=s, e=explain: {"measured": np.array(measure(s, e))})["measured"]
        seconds, gap, noise = got.tolist()
        found[s.name][method] = (seconds, gap, noise)
        progress(done + 1, len(todo), "comparing", began)
    return found


if __name__ == "__main__":
    main()
