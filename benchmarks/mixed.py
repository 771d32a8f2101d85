"""Mixed ensembles: error and time of exact credit for trees and nets joined, beside the parts alone and Captum.

Nets have random weights (He's scale) over standard normal columns, so that anybody can repeat them. Errors are the
largest difference of a credit from a run at tol 1e-10, relative to the largest credit. Times are per (row, reference)
pair, the least processor time of several repeats on one thread, all in one run. `--quick` runs small sizes, so that the
benchmarks cannot rot unnoticed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import captum
import numpy as np
import torch
import workloads
from captum.attr import IntegratedGradients
from run import HERE, ONE_THREAD, machine
from sklearn.ensemble import ExtraTreesClassifier
from torch import nn

import gigrad as gig

LIMITS = (
    "What limits the net: a path passes about a thousand kinks. Each kink of the first layer costs a product with the "
    "matrix of the third, there and back, for the half of the units that are not at rest: together two to three times "
    "the work of Captum's 50 steps. Between each two kinks the thousand tanh units are asked at two or three nodes, "
    "which is as much as one time Captum's steps. A call also imports the model and compares it with its own "
    "predictions at both ends of every pair. The head of the ensemble, a smooth function of two scores, is tabulated "
    "once for all paths; what it adds is the order of its steps, piece by piece, in Python."
)


def net(columns: int, widths: list[int], activations: list[type[nn.Module]], seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    for width, activation in zip(widths, activations, strict=True):
        linear = nn.Linear(columns, width)
        nn.init.kaiming_normal_(linear.weight)
        layers += [linear, activation()]
        columns = width
    return nn.Sequential(*layers, nn.Linear(columns, 1), nn.Sigmoid()).double().eval()


def timed(function: Callable[[], np.ndarray], repeats: int) -> tuple[float, np.ndarray]:
    (best,), (value,) = in_turns([function], repeats)
    return best, value


def in_turns(functions: list[Callable[[], np.ndarray]], repeats: int) -> tuple[list[float], list[np.ndarray]]:
    """The least processor time of each, and what they give: one after the other, `repeats` times after a first turn."""
    values = [function() for function in functions]
    best = [np.inf] * len(functions)
    for _ in range(repeats):
        for i, function in enumerate(functions):
            began = time.process_time()
            function()
            best[i] = min(best[i], time.process_time() - began)
    return best, values


def gradients(module: nn.Module, rows: np.ndarray) -> np.ndarray:
    x = torch.tensor(rows, requires_grad=True)
    (found,) = torch.autograd.grad(module(x).sum(), x)
    return found.numpy()


def joined(kind: str, rows: int, quick: bool) -> list[str]:
    """ECDF(0.5 GBM + 0.5 net), 30 columns, 100 references, against the tree part and 64 gradients of the net."""
    trees, depth, references = (20, 3, 4) if quick else (500, 6, 100)
    work = workloads.boosted(trees, depth, rows, references)
    activation = nn.Tanh if kind == "tanh" else nn.ReLU
    module = net(30, [100, 100], [activation, activation])
    mean = gig.average([work.model, module])
    f = mean.then(gig.SmoothedECDF.fit(mean.predict(workloads.table(2_000, 30, 0)[0])))
    explainer = gig.Explainer(f, work.reference, n_threads=1)
    exact = gig.Explainer(f, work.reference, n_threads=1, tol=1e-10)(work.rows).values
    repeats, pairs = (1 if quick else max(5, 20 // rows)), rows * references
    spent, values = timed(lambda: explainer(work.rows).values, repeats)
    alone = []
    for output in (None, "margin"):
        tree = gig.Explainer(gig.import_model(work.model), work.reference, output=output, n_threads=1)
        alone.append(timed(lambda tree=tree: tree(work.rows).values, repeats)[0] / pairs)
    points = np.repeat(work.reference, 64, axis=0)  # what one row needs, the size at which torch is fastest here
    slope = timed(lambda: gradients(module, points), repeats)[0] / references
    error = np.abs(values - exact).max() / np.abs(exact).max()
    goal, each = (1e-6 if kind == "tanh" else 1e-8), spent / pairs
    ratios = [f"{each / (part + slope):.2f}" for part in alone]
    return [
        f"ECDF(mean of GBM {trees} x depth {depth} and net 100-100 {kind}), {rows} row{'s' * (rows > 1)} a call, "
        f"{references} references",
        f"{error:.1e}", f"{goal:.0e}", *(f"{t * 1e3:.3f} ms" for t in (each, *alone, slope)), *ratios,
    ]  # fmt: skip


def paper_size(quick: bool) -> list[list[str]]:
    """The paper's ensemble, and Captum on its net alone."""
    width, pairs = (50, 2) if quick else (1000, 6)
    X, y = workloads.table(4_000, 54, 0)
    forest = ExtraTreesClassifier(100, max_depth=10, min_samples_leaf=2, random_state=0).fit(X, y)
    module = net(54, [width] * 3, [nn.ReLU, nn.ReLU, nn.Tanh])
    head = net(2, [width], [nn.Tanh], seed=1)
    f = gig.stack([forest, module], head=head)
    f = f.then(gig.SmoothedECDF.fit(f.predict(X[:2_000])))
    starts, ends = X[:pairs], X[pairs : 2 * pairs]
    explain = IntegratedGradients(module)
    exact, names, functions = [], [], []
    for name, model in (("the whole ensemble, ranked", f), ("its net alone", module)):
        truth = gig.explain_pairs(model, starts, ends, n_threads=1, tol=1e-10).values
        for tol in (1e-6, 1e-8):
            names.append(f"gigrad, tol {tol:.0e}: {name}")
            functions.append(lambda m=model, t=tol: gig.explain_pairs(m, starts, ends, n_threads=1, tol=t).values)
            exact.append(truth)
    for steps in (50, 200) if quick else (50, 200, 1000):
        names.append(f"Captum, {steps} steps, float64: its net alone")
        functions.append(lambda n=steps: explain.attribute(torch.tensor(ends), torch.tensor(starts), n_steps=n).numpy())
        exact.append(truth)
    spent, values = in_turns(functions, 1 if quick else 5)
    fifty = spent[next(i for i, name in enumerate(names) if name.startswith("Captum, 50 "))]
    errors = [np.abs(v - e).max() / np.abs(e).max() for v, e in zip(values, exact, strict=True)]
    return [
        [name, f"{error:.1e}", f"{each / pairs * 1e3:.0f} ms", f"{each / fifty:.1f}"]
        for name, error, each in zip(names, errors, spent, strict=True)
    ]


def write(folder: Path, first: list[list[str]], second: list[list[str]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    facts = machine()
    text = [
        f"Measured on {facts['date']}, {facts['processor']}, one thread, processor time; torch {torch.__version__}, "
        f"captum {captum.__version__}; random weights.",
        "",
        "The parts: the tree part alone is ours too, in probability (the link that the ensemble has over its trees) "
        "and in margin, where no jump needs to be in order; 64 gradients of the net by torch. A ratio is the time of "
        "the ensemble over the sum of both parts; the goal is 2.",
        "",
        "| model | largest error | goal | time a pair | trees, probability | trees, margin | 64 gradients | ratio | "
        "ratio, margin |",
        "|---|---|---|---|---|---|---|---|---|",
        *(f"| {' | '.join(line)} |" for line in first),
        "",
        "The paper's size: extra trees (100 of depth 10), a net of 1000-1000 ReLU and 1000 tanh units over 54 columns, "
        "joined by a net of 1000 units, ranked. The goal: an error under 1e-8 in ten times the time of Captum's 50 "
        "steps.",
        "",
        "| method | largest error | time a pair | times Captum's 50 steps |",
        "|---|---|---|---|",
        *(f"| {' | '.join(line)} |" for line in second),
        "",
        LIMITS,
    ]
    (folder / "mixed.md").write_text("\n".join(text) + "\n")
    (folder / "mixed.json").write_text(
        json.dumps({"machine": facts, "joined": first, "paper": second}, indent=1) + "\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--folder", type=Path, default=HERE / "results")
    options = parser.parse_args()
    if os.environ.get("OMP_NUM_THREADS") != "1":  # libraries read these when they load, so begin again with them set
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})
    torch.set_num_threads(1)
    first = []
    for kind, rows in (("tanh", 1), ("tanh", 10), ("relu", 1), ("relu", 10)):
        first.append(joined(kind, min(rows, 2) if options.quick else rows, options.quick))
        print("  ".join(first[-1]), flush=True)
    second = paper_size(options.quick)
    for line in second:
        print("  ".join(line), flush=True)
    write(options.folder, first, second)


if __name__ == "__main__":
    main()
