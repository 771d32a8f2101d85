"""Covertype: a forest and a net, raw and ranked, joined by linear and by net heads, each explained exactly.

Extra trees (100 of depth 10) and a net of 1000-1000 ReLU and 1000 tanh units tell lodgepole pine from the other covers.
Each gives a raw score and its smoothed rank; a linear and a net head join the raw scores, another two the ranks; and
each of these four is ranked as well: twelve models, all on the 54 columns as they are.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from common import DATA, HERE, Run, progress
from scipy.stats import spearmanr
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LinearRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from torch import nn

import gigrad as gig
from gigrad import kernels
from gigrad.graph import Affine, TreeEnsemble, topological

matplotlib.use("Agg")

LODGEPOLE_PINE = 2
HEAD_ROWS = 10_000
SAMPLE = {"quick": (4, 4), "full": (200, 100)}  # rows and reference rows that are explained: each pair costs its path
TOL = 1e-2  # of a credit, relative to the score; `claim_accuracy` compares some with credits at CHECK_TOL
CHECK_TOL, CHECK_ROWS = 1e-6, 2
STAGE_ROWS = 20  # rows that are explained in one stage, after which a run can go on


def splits(quick: bool) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The four parts: to train on, to validate and train heads on, to validate heads on, to test on."""
    path = DATA / "covertype.parquet"
    if path.exists():
        table = pd.read_parquet(path)
    else:  # where there is a network
        from sklearn.datasets import fetch_covtype

        table = fetch_covtype(as_frame=True).frame.rename(columns={"Cover_Type": "cover_type"})
    if quick:
        table = table.sample(12_000, random_state=0)
    X = table.drop(columns="cover_type").to_numpy(np.float64)
    y = (table["cover_type"] == LODGEPOLE_PINE).to_numpy(int)
    train, rest, y_train, y_rest = train_test_split(X, y, train_size=0.6, random_state=0)
    early, rest, y_early, y_rest = train_test_split(rest, y_rest, train_size=0.4, random_state=0)
    late, test, y_late, y_test = train_test_split(rest, y_rest, train_size=0.5, random_state=0)
    some = slice(0, HEAD_ROWS)  # heads of two inputs and ECDFs of 100 knots need no more
    return {
        "train": (train, y_train),
        "early": (early[some], y_early[some]),
        "late": (late, y_late),
        "test": (test, y_test),
    }


def names() -> list[str]:
    path = DATA / "covertype.parquet"
    return (
        [c for c in pd.read_parquet(path).columns if c != "cover_type"]
        if path.exists()
        else [f"x{j}" for j in range(54)]
    )


def fit_net(layers: list[nn.Module], X: np.ndarray, y: np.ndarray, epochs: int, what: str) -> nn.Sequential:
    """A net trained by Adam with Nesterov momentum and an L2 penalty; its scaling of the inputs is folded into it."""
    torch.manual_seed(0)
    mean, scale = X.mean(axis=0), X.std(axis=0) + 1e-12
    net = nn.Sequential(*layers)
    optimiser = torch.optim.NAdam(net.parameters(), lr=1e-3, weight_decay=1e-5)
    inputs = torch.tensor((X - mean) / scale, dtype=torch.float32)
    target = torch.tensor(y, dtype=torch.float32)[:, None]
    loss = nn.BCELoss()
    size, began = 500, time.perf_counter()
    for epoch in range(epochs):
        order = torch.randperm(len(X), generator=torch.Generator().manual_seed(epoch))
        for batch in order.split(size):
            optimiser.zero_grad()
            loss(net(inputs[batch]), target[batch]).backward()
            optimiser.step()
        progress(epoch + 1, epochs, what, began)
    net = net.double().eval()
    first = net[0]
    with torch.no_grad():
        first.weight /= torch.tensor(scale)
        first.bias -= first.weight @ torch.tensor(mean)
    return net


def mlp(quick: bool) -> list[nn.Module]:
    units = 100 if quick else 1000
    return [
        nn.Linear(54, units), nn.ReLU(), nn.Linear(units, units), nn.ReLU(), nn.Linear(units, units), nn.Tanh(),
        nn.Linear(units, 1), nn.Sigmoid(),
    ]  # fmt: skip


def head(quick: bool) -> list[nn.Module]:
    units = 100 if quick else 1000
    return [nn.Linear(2, units), nn.Tanh(), nn.Linear(units, 1), nn.Sigmoid()]


def saved(run: Run, name: str, layers: list[nn.Module], X: np.ndarray, y: np.ndarray, epochs: int) -> nn.Sequential:
    """A trained net, or the one an earlier run trained."""
    arrays = run.stage(
        name,
        lambda: {k: v.numpy() for k, v in fit_net(layers, X, y, epochs, f"training {name}").state_dict().items()},
    )
    net = nn.Sequential(*layers).double().eval()
    net.load_state_dict({k: torch.tensor(v) for k, v in arrays.items()})
    return net


def forest(parts: dict[str, tuple[np.ndarray, np.ndarray]]) -> ExtraTreesClassifier:
    return ExtraTreesClassifier(100, max_depth=10, min_samples_leaf=2, random_state=0, n_jobs=2).fit(*parts["train"])


def linear_weights(graph: gig.Graph) -> tuple[float, float]:
    """The weights of forest and net in the linear head."""
    score = graph.score
    if not isinstance(score, Affine):
        raise TypeError(f"the linear ensemble must end in an Affine node; it ends in {type(score).__name__}")
    first, second = score.weight[0]
    return float(first), float(second)


def models(run: Run, parts: dict[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, gig.Graph]:
    """The twelve models, by the paper's names."""
    X, y = parts["train"]
    etf = gig.import_model(forest(parts))
    net = gig.import_model(saved(run, "net", mlp(run.quick), X, y, 3 if run.quick else 1))
    early, y_early = parts["early"]

    def ranked(graph: gig.Graph) -> gig.Graph:
        return graph.then(gig.SmoothedECDF.fit(graph.predict(early)))

    found = {"ETF": etf, "ECDF(ETF)": ranked(etf), "MLP": net, "ECDF(MLP)": ranked(net)}
    for kind, below in (("raw", [etf, net]), ("normalised", [found["ECDF(ETF)"], found["ECDF(MLP)"]])):
        scores = np.column_stack([g.predict(early) for g in below])
        linear = gig.stack(below, head=LinearRegression().fit(scores, y_early))
        deep = gig.stack(
            below, head=saved(run, f"head_{kind}", head(run.quick), scores, y_early, 3 if run.quick else 20)
        )
        for name, graph in ((f"linear of {kind}", linear), (f"MLP of {kind}", deep)):
            found |= {name: graph, f"ECDF({name})": ranked(graph)}
    return found


def explained(
    run: Run, found: dict[str, gig.Graph], rows: np.ndarray, reference: np.ndarray, tol: float = TOL
) -> dict[str, dict[str, np.ndarray]]:
    """The credits of every model, stage by stage of some rows each."""
    explainers = {name: gig.Explainer(graph, reference, tol=tol) for name, graph in found.items()}
    parts: dict[str, list[dict[str, np.ndarray]]] = {name: [] for name in found}
    for first in range(0, len(rows), STAGE_ROWS):  # the first rows of all models first
        for name, explainer in explainers.items():
            stage = f"credits {name} {first}".replace(" ", "_")
            some = rows[first : first + STAGE_ROWS]
            parts[name].append(run.stage(stage, lambda e=explainer, r=some: credits(e, r)))
    return {name: {key: np.concatenate([p[key] for p in of]) for key in of[0]} for name, of in parts.items()}


def credits(explainer: gig.Explainer, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Credits, gaps and errors of rows one by one, and the processor time that each takes."""
    parts, seconds = [], []
    for i in range(len(rows)):
        began = time.process_time()
        parts.append(explainer(rows[i : i + 1]))
        seconds.append(time.process_time() - began)
    return {
        "values": np.concatenate([e.values for e in parts]),
        "gap": np.concatenate([e.gap for e in parts]),
        "error": np.concatenate([e.error for e in parts]),
        "seconds": np.array(seconds),
    }


def radix(graph: gig.Graph, rows: np.ndarray, reference: np.ndarray) -> tuple[int, int]:
    """How many crossings the paths have, and how many of them are corners of two or more variables."""
    trees = next(iter(forests(graph)))
    starts, ends = np.tile(reference, (len(rows), 1)), np.repeat(rows, len(reference), axis=0)
    found = kernels.jumps(trees.forest, starts, ends)
    pair = np.repeat(np.arange(len(starts)), np.diff(found.offsets))  # crossings of a pair are in order of time
    fresh = np.concatenate([[True], (np.diff(pair) != 0) | (np.diff(found.time) != 0)])
    size = np.diff(np.append(np.nonzero(fresh)[0], len(pair)))
    return len(size), int((size > 1).sum())


def forests(graph: gig.Graph) -> Iterator[Any]:
    return (n for n in topological(graph.score) if isinstance(n, TreeEnsemble))


def top_table(run: Run, number: int, title: str, values: dict[str, np.ndarray], labels: list[str]) -> None:
    """Two models of one of the paper's tables, the paper's 15 largest variables beside ours, the largest scaled to 1.

    The first table has signed credits, as its signs show; the others have sizes.
    """
    paper = pd.read_csv(HERE / "paper_tables.csv").query("table == @number")
    header, cells = [], []
    for name, of_model in paper.groupby("model", sort=False):
        size = values[name].mean(axis=0) if number == 1 else np.abs(values[name]).mean(axis=0)
        size = size / np.abs(size).max()
        order = np.argsort(-np.abs(size), kind="stable")[: len(of_model)]
        header += [f"{name}, paper", "credit", f"{name}, here", "credit"]
        cells.append(of_model["variable"].tolist())
        cells.append([f"{c:.3f}" for c in of_model["credit"]])
        cells.append([labels[j] for j in order])
        cells.append([f"{size[j]:.3f}" for j in order])
        shared = len(set(of_model["variable"]) & {labels[j] for j in order})
        run.claim(f"{title}, {name}: largest variables", "15 of 54", f"{shared} of the paper's 15 are among ours", None)
    run.table(title, header, [list(row) for row in zip(*cells, strict=True)])


def draw(run: Run, found: dict[str, gig.Graph], X: np.ndarray) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.4))
    for ax, kind, title in zip(axes, ("{}", "ECDF({})"), ("scores", "ranks"), strict=True):
        mlp_score, etf_score = (found[kind.format(m)].predict(X) for m in ("MLP", "ETF"))
        ax.scatter(mlp_score, etf_score, s=6, alpha=0.4, color="#0072B2", linewidths=0)
        ax.set(xlabel=f"MLP, {title}", ylabel=f"ETF, {title}")
    run.figure(figure, "scores")
    plt.close(figure)


def main() -> None:
    run = Run.from_command_line("covertype", __doc__)
    parts = splits(run.quick)
    found = models(run, parts)
    test, y_test = parts["test"]
    draw(run, found, test[:2_000])
    rng = np.random.default_rng(0)
    n_rows, n_reference = SAMPLE["quick" if run.quick else "full"]
    rows = test[rng.choice(len(test), n_rows, replace=False)][: run.rows]
    reference = parts["late"][0][rng.choice(len(parts["late"][0]), n_reference, replace=False)]
    results = explained(run, found, rows, reference)
    sample = f"{len(rows)} rows against {len(reference)} reference rows, all pairs, each credit at tol {TOL:.0e}"
    run.claim("sample", "", sample, None)
    show_quality(run, found, results, test, y_test, rows, reference)
    show_sizes(run, results)
    claim_sums(run, found["ETF"], results, rows, reference)
    claim_accuracy(run, found, results, rows, reference)
    run.finish()


def claim_accuracy(
    run: Run,
    found: dict[str, gig.Graph],
    results: dict[str, dict[str, np.ndarray]],
    rows: np.ndarray,
    reference: np.ndarray,
) -> None:
    """That credits are within their error of those at a tight tolerance, for some rows of two models."""
    for name in ("MLP", "ECDF(MLP of normalised)"):
        explainer, some = gig.Explainer(found[name], reference, tol=CHECK_TOL), slice(CHECK_ROWS)
        exact = run.stage(f"check {name}".replace(" ", "_"), lambda e=explainer, s=some: credits(e, rows[s]))
        off = np.abs(results[name]["values"][some] - exact["values"]).max(axis=1)
        error, largest = results[name]["error"][some] + exact["error"], np.abs(exact["values"]).max()
        run.claim(
            f"credits within their error: {name}", "",
            f"{CHECK_ROWS} rows are off by {off.max():.1e} from tol {CHECK_TOL:.0e}, {off.max() / largest:.1e} of the "
            f"largest credit; their error is {error.max():.1e}", bool((off <= error).all()),
        )  # fmt: skip


def show_quality(
    run: Run,
    found: dict[str, gig.Graph],
    results: dict[str, dict[str, np.ndarray]],
    test: np.ndarray,
    y_test: np.ndarray,
    rows: np.ndarray,
    reference: np.ndarray,
) -> None:
    some = slice(0, 2_000)
    run.table(
        "Every model: quality, completeness, time",
        [
            "model", "AUC", "largest gap", "largest error", "mean error", "largest mean credit", "ms a pair",
            "crossings", "radix above 1",
        ],
        [
            [
                name, f"{roc_auc_score(y_test[some], graph.predict(test[some])):.3f}", f"{np.abs(r['gap']).max():.1e}",
                f"{r['error'].max():.1e}", f"{r['error'].mean():.1e}", f"{np.abs(r['values']).mean(axis=0).max():.3f}",
                f"{r['seconds'].mean() / len(reference) * 1e3:.1f}", *crossings(graph, rows, reference),
            ]
            for (name, graph), r in zip(found.items(), results.values(), strict=True)
        ],
    )  # fmt: skip


def show_sizes(run: Run, results: dict[str, dict[str, np.ndarray]]) -> None:
    """What is large in which model, and that sizes and order change from one to the other."""
    labels = names()
    values = {name: r["values"] for name, r in results.items()}
    top_table(run, 1, "MLP and ETF (mean credit)", values, labels)
    top_table(run, 2, "MLP and its rank (mean |credit|)", values, labels)
    top_table(run, 3, "Ranked ensembles (mean |credit|)", values, labels)
    ensembles = ("ECDF(linear of normalised)", "ECDF(MLP of normalised)")
    size = {name: np.abs(v).mean(axis=0) for name, v in values.items()}
    pairs = [(a, f"ECDF({a})") for a in values if not a.startswith("ECDF")]
    pairs += [(s, e) for e in ensembles for s in ("ECDF(ETF)", "ECDF(MLP)")]
    rank = {p: float(spearmanr(size[p[0]], size[p[1]]).statistic) for p in pairs}
    run.table(
        "Rank correlation of mean |credit|", ["one", "other", "Spearman"], [[*p, f"{r:.3f}"] for p, r in rank.items()]
    )
    moves = [float(np.abs(size[a] / size[a].max() - size[b] / size[b].max()).max()) for a, b in pairs]
    # a mean is off by no more than the mean error, and so is the largest one that it is scaled by
    off = {name: 2.0 * float(r["error"].mean()) / float(size[name].max()) for name, r in results.items()}
    sure = sum(move > off[a] + off[b] for move, (a, b) in zip(moves, pairs, strict=True))
    run.claim(
        "sizes change under the ECDF and under ensembling", "order and magnitude change",
        f"some variable's scaled credit moves by {min(moves):.3f} to {max(moves):.3f}, over {len(pairs)} pairs; by "
        f"more than the bounds on both errors in {sure}", sure > 0,
    )  # fmt: skip
    reordered = sum(r < 1 for r in rank.values())
    run.claim("order changes", "order changes", f"in {reordered} of {len(pairs)} pairs", reordered > len(pairs) // 2)


def claim_sums(
    run: Run,
    forest: gig.Graph,
    results: dict[str, dict[str, np.ndarray]],
    rows: np.ndarray,
    reference: np.ndarray,
    own: float = 1e-12,
) -> None:
    """That credits add up everywhere, and that corners are rare. `own`: the rounding of the models' own predictions."""
    gap = max(float(np.abs(r["gap"]).max()) for r in results.values())
    error = max(float(r["error"].max()) for r in results.values())
    within = all((np.abs(r["gap"]) <= r["error"] + own).all() for r in results.values())
    run.claim(
        "completeness for every model", "efficient",
        f"largest gap {gap:.1e}, largest error {error:.1e}, every gap within its row's error and {own:.0e}", within,
    )  # fmt: skip
    total, corners = radix(forest, rows, reference)
    share = corners / total
    run.claim(
        "corners are rare", "no more than a few intersections in a thousand have radix above 1",
        f"{1000 * share:.1f} in a thousand of {total} crossings", share < 0.01,
    )  # fmt: skip


def crossings(graph: gig.Graph, rows: np.ndarray, reference: np.ndarray) -> list[str]:
    if not any(forests(graph)):
        return ["none", "none"]
    total, corners = radix(graph, rows, reference)
    return [str(total), f"{corners} ({1000 * corners / total:.1f} in 1000)"]


if __name__ == "__main__":
    main()
