"""Mixed ensembles: error and time of exact credit for trees and nets joined, beside the parts alone and Captum.

Nets have random weights (He's scale) over standard normal columns, so that anybody can repeat them. Errors are the
largest difference of a credit from a run at tol 1e-10, relative to the largest credit. Times are per (row, reference)
pair, the least processor time of several repeats on one thread, all in one run. `--quick` runs small sizes, so that the
benchmarks cannot rot unnoticed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import captum
import lightgbm
import numpy as np
import shap
import torch
import workloads
from captum.attr import IntegratedGradients
from run import machine, options_on_one_thread
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.svm import SVC, SVR
from torch import nn

import gigrad as gig
from gigrad.engine.roles import pull_back
from gigrad.graph import KernelMachine, evaluate, topological

LIMITS = (
    "What limits the net at 1e-6 and below: a path passes about a thousand kinks, half of them of the first layer. "
    "What one of these changes in the third layer depends on which units of the second have a slope then: with one "
    "product of both matrices for the row, the 270 of 1,000 units whose slope differs from that at the row are "
    "multiplied for each of them, a fifth of the time of the net alone, and the same products serve the way back. "
    "Pairs of their own have no such product, and multiply all units that are not at rest. A tanh unit is evaluated "
    "once for each kink: its value and two derivatives at both ends of a panel determine it in between to 1e-10. "
    "The rest is spread over the kinks of both layers, sums from kink to kink, and the head on 400 segments; no "
    "part is more than a tenth. At looser tolerances layers are evaluated at a few times of a path (16 to 64 where "
    "`tol` is 1e-3), while the kinks of both ReLU layers are still found; the error then falls with the square of "
    "the number of times, where that of plain steps falls with the number itself on a single path. A row against "
    "many references needs fewer than a pair of its own, since errors of paths have either sign and `error` is "
    "about the row: the second goal is reached there, and missed for single pairs. Explainers are made before the "
    "clock starts, as Captum's is; a call also compares the model with its own predictions, 50 ms for the forest "
    "alone whatever the number of references, and each call of `explain_pairs` imports the model. In turns with the "
    "code before, on the same machine and at the same load: the whole ensemble 58 to 31 ms a pair at tol 1e-8 with "
    "20 references, its net 42 to 25."
)

ENSEMBLES = (
    "What limits the tanh ensemble: the head takes 31 % of the time, the net 27 %, the list of the trees' jumps 12 %, "
    "and the rest, a quarter, is Python: some thousands of small calls for every 256 paths. The net is run by the "
    "core at 47 nodes of a path, 23,000 multiply-adds each (there, back, and 3,000 through the first layer for the "
    "estimate of the error), in 0.041 ms a path, of which half are products at the processor's full speed without "
    "fused multiply-adds (58 billion a second with AVX-512, 27 with AVX2; NumPy's BLAS has 29 there) and a fifth are "
    "tanh. What is left is the number of nodes. Fewer first nodes cost more: panels whose estimate is too large are "
    "halved and evaluated again (52 nodes in all instead of 44 where 9 digits are aimed at, 69 for 7, of 5 rows). The "
    "estimate is 100 to 500 times the error: each path's counts in full, while errors of paths have either sign. Tried "
    "and not taken: a pass of its own for heads that are piecewise linear in one curve (the head 1.8 times as fast, "
    "the ensemble 1.17 times, for 230 lines of C++); errors of 32 or more paths added up as the root of the sum of "
    "their squares, with factors of safety: 37 nodes, and `error` 20 to 60 times the true one, for seven more "
    "constants; ten times what the two highest degrees make, summed with its signs: 32 nodes, but `error` was too "
    "small for 5 of 564 rows of random ensembles; first nodes chosen by the distance of the poles of every unit's "
    "tanh from the panel, which explain half of the variance of the logarithm of a panel's error where the largest "
    "move of a unit explains 3 %: by simulation a tenth fewer nodes, before they are rounded up to the few sizes; "
    "panels of up to 16 or 24 nodes (6% and 10% fewer nodes, and longer series in the head); blocks of twice the size "
    "(6%, and fewer of them than threads). Of one row a call a tenth goes to the libraries' own predictions of that "
    "row, with which the credits are compared.\n\n"
    "The ReLU ensemble: of a path with 400 jumps and 100 kinks the core follows the net, integrates the head from kink "
    "to kink and jump to jump, and pulls the derivatives back, in one pass and nothing of it stored; before, these "
    "were three calls with tables of panels in between. A quarter of the time goes to the trees' jumps, as much to "
    "the net, a fifth to the head, the rest to Python, the libraries and copies. In turns with the code before (10 "
    "rows a call, load 4 to 9 on two cores) the least times fell from 0.100 to 0.105 ms to 0.070 to 0.074, and of one "
    "row from 0.144 to 0.105. The parts, each in turns: units of the net checked without branches, and fewer passes "
    "over its rows, 4%; the pass of the head, where the net's own link is computed once for the two segments beside a "
    "jump, with one table of all legs in the place of panels, 14%; corners and the trees' outputs listed by the core "
    "rather than by NumPy, 6%; one pass for all, 14%; what the references give, kept, 6% of one row. Tried and not "
    "taken: room for the lists of jumps in advance (no difference)."
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


def sampled(quick: bool) -> list[list[str]]:
    """What shap's explainers for any model take on the tanh ensemble, and how far two runs lie apart.

    They answer another question, the interventional Shapley value, so that only their noise is comparable.
    """
    trees, depth, references = (20, 3, 4) if quick else (500, 6, 100)
    work = workloads.boosted(trees, depth, 1, references)
    mean = gig.average([work.model, net(30, [100, 100], [nn.Tanh, nn.Tanh])])
    f = mean.then(gig.SmoothedECDF.fit(mean.predict(workloads.table(2_000, 30, 0)[0])))
    row, samples = work.rows[:1], 70 if quick else "auto"

    def kernel(_: int) -> np.ndarray:  # draws from NumPy's global generator, which goes on
        return shap.KernelExplainer(f.predict, work.reference).shap_values(row, nsamples=samples, silent=True)

    def permutation(seed: int) -> np.ndarray:
        masker = shap.maskers.Independent(work.reference, max_samples=references)
        return shap.PermutationExplainer(f.predict, masker, seed=seed)(row, silent=True).values

    out = []
    for name, explain in (("KernelExplainer", kernel), ("PermutationExplainer", permutation)):
        values, spent = [], []
        for seed in (0, 1):
            began = time.process_time()
            values.append(explain(seed))
            spent.append(time.process_time() - began)
        noise = np.abs(values[0] - values[1]).max() / np.abs(values[0]).max()
        out.append(
            [f"shap's {name}, the tanh ensemble, one row, {references} references",
             f"{min(spent) / references * 1e3:.1f} ms a pair", f"two runs differ by {noise:.1%} of the largest value"]
        )  # fmt: skip
    return out


def paper_size(quick: bool) -> list[list[str]]:
    """The paper's ensemble, and Captum on its net alone: one row against references, then each pair for itself."""
    width, references = (50, 2) if quick else (1000, 100)
    X, y = workloads.table(4_000, 54, 0)
    forest = ExtraTreesClassifier(100, max_depth=10, min_samples_leaf=2, random_state=0).fit(X, y)
    module = net(54, [width] * 3, [nn.ReLU, nn.ReLU, nn.Tanh])
    head = net(2, [width], [nn.Tanh], seed=1)
    f = gig.stack([forest, module], head=head)
    f = f.then(gig.SmoothedECDF.fit(f.predict(X[:2_000])))
    starts, row = X[:references], X[references : references + 1]
    ends, others = np.repeat(row, references, axis=0), X[references : 2 * references]
    explain = IntegratedGradients(module)
    exact, names, functions = [], [], []
    for name, model in (("the whole ensemble, ranked", f), ("its net alone", module)):
        truth = gig.Explainer(model, starts, n_threads=1, tol=1e-10)(row).values
        for tol in (1e-3, 1e-4, 1e-8):
            names.append(f"gigrad, tol {tol:.0e}: {name}")
            explainer = gig.Explainer(model, starts, n_threads=1, tol=tol)
            functions.append(lambda e=explainer: e(row).values)
            exact.append(truth)
    for steps in (50, 200):
        names.append(f"Captum, {steps} steps, float64: its net alone")
        functions.append(
            lambda n=steps: explain.attribute(torch.tensor(ends), torch.tensor(starts), n_steps=n).numpy().mean(axis=0)
        )
        exact.append(truth)
    truth = gig.explain_pairs(f, starts, others, n_threads=1, tol=1e-10).values
    for tol in (1e-3, 1e-8):
        names.append(f"gigrad, tol {tol:.0e}: the whole ensemble, ranked, pairs of their own")
        functions.append(lambda t=tol: gig.explain_pairs(f, starts, others, n_threads=1, tol=t).values)
        exact.append(truth)
    spent, values = in_turns(functions, 1 if quick else 2)
    fifty = spent[next(i for i, name in enumerate(names) if name.startswith("Captum, 50 "))]
    errors = [np.abs(v - e).max() / np.abs(e).max() for v, e in zip(values, exact, strict=True)]
    return [
        [name, f"{error:.1e}", f"{each / references * 1e3:.1f} ms", f"{each / fifty:.1f}"]
        for name, error, each in zip(names, errors, spent, strict=True)
    ]


def linear_trees(quick: bool) -> list[list[str]]:
    """LightGBM with linear leaves beside the same model with constant ones."""
    rows, references, trees = (2, 5, 5) if quick else (10, 200, 100)
    X, y = workloads.table(4_000, 20, 0)
    target = y + 0.1 * X[:, 0] * X[:, 1]
    explainers = []
    for linear in (False, True):
        options = {"n_estimators": trees, "num_leaves": 31, "linear_tree": linear, "verbose": -1, "n_jobs": 1}
        model = lightgbm.LGBMRegressor(**options).fit(X, target)
        explainers.append(gig.Explainer(model, X[:references], n_threads=1))
    some = X[2_000 : 2_000 + rows]
    spent, _ = in_turns([lambda e=e: e(some).values for e in explainers], 1 if quick else 5)
    name = f"LightGBM, {trees} trees of 31 leaves, 20 columns, {rows} rows x {references} references"
    each = [t / (rows * references) * 1e3 for t in spent]
    return [
        [f"{name}: {kind} leaves", f"{t:.4f} ms", f"{t / each[0]:.1f} x constant leaves"]
        for kind, t in zip(("constant", "linear"), each, strict=True)
    ]


def kernel_machines(quick: bool) -> list[list[str]]:
    """Support vectors and Gaussian processes against 64 of their own gradients, asked of the imported graph.

    With few pairs a call its fixed cost shows: checks of the model's predictions, its fingerprint, Python.
    """
    points = 60 if quick else 2_000
    X, y = workloads.table(4 * points, 10, 0)
    half = points // 2
    models = {
        "SVC": SVC(C=0.05, random_state=0).fit(X, y),
        "SVR": SVR(C=0.05, epsilon=0.01).fit(X[:points], X[:points, 0] + y[:points]),
        "Gaussian process": GaussianProcessRegressor(kernel=RBF(3.0), alpha=0.1, optimizer=None).fit(
            X[:half], X[:half, 0] + y[:half]
        ),
    }
    return [
        along_kernels(name, model, X[-pairs:], X[-2 * pairs : -pairs], 1 if quick else 5)
        for name, model in models.items()
        for pairs in ((2,) if quick else (10, 100))
    ]


def along_kernels(name: str, model: object, starts: np.ndarray, ends: np.ndarray, repeats: int) -> list[str]:
    """One kernel machine explained for some pairs of rows, against 64 gradients for each of them."""
    graph, pairs = gig.import_model(model), len(starts)
    nodes = np.repeat(starts, 64, axis=0)
    order = topological(graph.score)[1:]

    def slopes() -> np.ndarray:
        values = evaluate((graph.score,), {graph.input: nodes})
        return pull_back(order, {graph.score: np.ones_like(values[graph.score])}, values)[graph.input]

    spent, _ = in_turns([lambda: gig.explain_pairs(graph, starts, ends, n_threads=1).values, slopes], repeats)
    machine_ = next(n for n in order if isinstance(n, KernelMachine))
    each = [t / pairs * 1e3 for t in spent]
    return [
        f"{name}, {len(machine_.support)} points, {pairs} pairs a call",
        f"{each[0]:.2f} ms",
        f"{each[0] / each[1]:.2f} x 64 gradients",
    ]


def two_threads(quick: bool) -> list[list[str]]:
    """Two threads against one by the clock: says little where other processes share the cores."""
    work = workloads.boosted(*((20, 3, 2, 4) if quick else (500, 6, 20, 100)))
    mean = gig.average([work.model, net(30, [100, 100], [nn.ReLU, nn.ReLU])])
    f = mean.then(gig.SmoothedECDF.fit(mean.predict(workloads.table(2_000, 30, 0)[0])))
    best = []
    for threads in (1, 2):
        explainer = gig.Explainer(f, work.reference, n_threads=threads)
        times = []
        for _ in range(2 if quick else 6):
            began = time.perf_counter()
            explainer(work.rows)
            times.append(time.perf_counter() - began)
        best.append(min(times))
    return [["mean of GBM and ReLU net, ranked, 20 rows x 100 references", f"{best[0] / best[1]:.2f} x by the clock"]]


def write(folder: Path, first: list[list[str]], second: list[list[str]], others: list[list[str]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    facts = machine()
    text = [
        f"Measured on {facts['date']}, {facts['processor']}, one thread, processor time; torch {torch.__version__}, "
        f"captum {captum.__version__}; random weights.",
        "",
        "The parts: the tree part alone is ours too, in probability (the link that the ensemble has over its trees) "
        "and in margin, where no jump needs to be in order; 64 gradients of the net by torch. A ratio is the time of "
        "the ensemble over the sum of both parts; the goal is 0.6, and 0.8 for one row a call: met with ReLU, missed "
        "with tanh. Of the tanh ensemble a third goes to the head, a quarter to some 46 nodes of the net, an eighth "
        "to the list of the trees' jumps; of the ReLU ensemble a quarter each to the jumps and to the net, which the "
        "core follows from kink to kink, and a fifth to the head.",
        "",
        "| model | largest error | goal | time a pair | trees, probability | trees, margin | 64 gradients | ratio | "
        "ratio, margin |",
        "|---|---|---|---|---|---|---|---|---|",
        *(f"| {' | '.join(line)} |" for line in first),
        "",
        ENSEMBLES,
        "",
        "The paper's size: extra trees (100 of depth 10), a net of 1000-1000 ReLU and 1000 tanh units over 54 columns, "
        "joined by a net of 1000 units, ranked; one row against 100 references, or pairs of their own with the "
        "error of single pairs. The goals: an error under 1e-8 in three times the time of Captum's 50 steps, and one "
        "under 1e-3 in once that time.",
        "",
        "| method | largest error | time a pair | times Captum's 50 steps |",
        "|---|---|---|---|",
        *(f"| {' | '.join(line)} |" for line in second),
        "",
        LIMITS,
        "",
        "Others. The clock of two threads was read on a machine that other processes shared.",
        "",
        *("- " + ": ".join([line[0], ", ".join(line[1:])]) for line in others),
    ]
    (folder / "mixed.md").write_text("\n".join(text) + "\n")
    (folder / "mixed.json").write_text(
        json.dumps({"machine": facts, "joined": first, "paper": second, "others": others}, indent=1) + "\n"
    )


def main() -> None:
    options = options_on_one_thread(__doc__)
    torch.set_num_threads(1)
    first = []
    for kind, rows in (("tanh", 1), ("tanh", 10), ("relu", 1), ("relu", 10)):
        first.append(joined(kind, min(rows, 2) if options.quick else rows, options.quick))
        print("  ".join(first[-1]), flush=True)
    second = paper_size(options.quick)
    for line in second:
        print("  ".join(line), flush=True)
    others = [
        *sampled(options.quick),
        *linear_trees(options.quick),
        *kernel_machines(options.quick),
        *two_threads(options.quick),
    ]
    for line in others:
        print("  ".join(line), flush=True)
    write(options.folder, first, second, others)


if __name__ == "__main__":
    main()
