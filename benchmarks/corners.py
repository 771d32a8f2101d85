"""Corners of many variables: time and error where flags and categories change at once.

Real tables (Adult with strings, German credit one-hot, Lending Club) lie in ../../shared/data and are left out where
they are not there; the other rows are made. Times are the least processor time of some repeats on one thread, all in
one run.
`--quick` runs small sizes, so that the benchmark cannot rot unnoticed.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import shap
import xgboost
from people import people
from run import HERE, machine, options_on_one_thread
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import gigrad as gig
from gigrad import engine
from gigrad.engine import Population, Settings
from gigrad.graph import Graph, Node

DATA = HERE.parents[1] / "shared" / "data"
Line = dict[str, Any]


def least_time(run: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The least processor time of some runs, and what the last one gave."""
    best, value = np.inf, None
    for _ in range(repeats):
        began = time.process_time()
        value = run()
        best = min(best, time.process_time() - began)
    return best, value


# ---------------------------------------------------------------- the models


def census(rows: int, categories: int, columns: int = 42, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Columns of which the first are categories of six values, and a target that all of them matter to."""
    rng, effect = np.random.default_rng(seed), np.random.default_rng(1).normal(size=(columns, 6))
    X = rng.normal(size=(rows, columns))
    X[:, :categories] = rng.integers(0, 6, size=(rows, categories))
    score = 2 * X[:, -1] * X[:, -2] + np.sin(3 * X[:, -3])
    for j in range(columns):
        score += effect[j][X[:, j].astype(int)] if j < categories else effect[j, 0] * X[:, j]
    y = (score + rng.normal(size=rows) > np.median(score)).astype(int)
    kinds = {
        f"c{j}": pd.Categorical(X[:, j].astype(int), range(6)) if j < categories else X[:, j] for j in range(columns)
    }
    return pd.DataFrame(kinds), y


def boosted(X: pd.DataFrame, y: np.ndarray, trees: int, depth: int) -> xgboost.XGBClassifier:
    return xgboost.XGBClassifier(
        n_estimators=trees, max_depth=depth, learning_rate=0.1, n_jobs=2, random_state=0, enable_categorical=True,
        max_cat_to_onehot=1,
    ).fit(X, y)  # fmt: skip


def office(rows: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """27 flags, 9 categories and 19 numbers, related to each other, as in a table of applications."""
    rng = np.random.default_rng(seed)
    hidden, score, table = rng.normal(size=(rows, 3)), np.zeros(rows), {}
    for j in range(27):
        flag = hidden @ rng.normal(size=3) * 0.5 + rng.normal(size=rows) + rng.uniform(-1.5, 0.5) > 0
        table[f"f{j}"] = flag.astype(int)
        score += flag * rng.normal() * 0.5
    for j in range(9):
        levels = int(rng.integers(3, 9))
        code = rng.choice(levels, size=rows, p=rng.dirichlet(np.full(levels, 2.0)))
        table[f"c{j}"] = np.array([f"v{i}" for i in range(levels)])[code]
        score += rng.normal(size=levels)[code] * 0.4
    for j in range(19):
        table[f"n{j}"] = np.round(hidden @ rng.normal(size=3) + rng.normal(size=rows), 3)
        score += table[f"n{j}"] * rng.normal() * 0.2
    score += table["f0"] * table["f1"] * 1.5 + np.where(table["c0"] == "v1", table["n0"], 0)
    return pd.DataFrame(table), (score + rng.logistic(size=rows) > np.median(score)).astype(int)


def stack(X: pd.DataFrame, y: np.ndarray, quick: bool) -> Any:
    """Boosting, a net of 32 and 16 units and a logistic regression behind a ColumnTransformer, stacked."""
    text = [c for c in X if X[c].dtype == object or X[c].dtype.name in ("category", "str", "string")]
    flags = [c for c in X if c not in text and set(X[c].unique()) <= {0, 1}]
    numbers = [c for c in X if c not in text and c not in flags]
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False, min_frequency=50)
    columns = [("text", encoder, text), ("flags", "passthrough", flags), ("numbers", StandardScaler(), numbers)]
    parts = [
        ("boosting", HistGradientBoostingClassifier(max_iter=20 if quick else 150, random_state=0)),
        ("net", MLPClassifier((32, 16), max_iter=3 if quick else 20, random_state=0)),
        ("linear", LogisticRegression(max_iter=300)),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        joined = StackingClassifier(parts, final_estimator=LogisticRegression(), cv=2)
        return make_pipeline(ColumnTransformer(columns), joined).fit(X, y)


def real(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """A real table without missing categories, and its target."""
    table = pd.read_parquet(DATA / f"{name}.parquet")
    if name == "adult":
        y = (table.pop("income") == ">50K").to_numpy().astype(int)
        table = table.drop(columns=["split"])
    elif name == "german_credit":
        y = (table.pop("credit_risk") == "bad").to_numpy().astype(int)
    else:
        y = (table.pop("loan_status") == "Charged Off").to_numpy().astype(int)
        table = table.drop(columns=["issue_d", "earliest_cr_line"])
    for column in table.columns[table.dtypes == "category"]:
        known = table[column].astype(object)
        table[column] = known.where(known.notna(), "missing").astype(str)
    return table, y


# ---------------------------------------------------------------- what is measured


def explained(name: str, model: Any, rows: pd.DataFrame, reference: pd.DataFrame, repeats: int, **options: Any) -> Line:
    explainer = gig.Explainer(model, reference, n_threads=1, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gig.AccuracyWarning)
        explainer(rows.iloc[:1])
        taken, e = least_time(lambda: explainer(rows), repeats)
    part = np.asarray(e.error) / np.abs(e.values).max(axis=1)
    return {"work": name, "ms a pair": 1e3 * taken / len(rows) / len(reference), "seconds": taken,
            "error": float(part.max()), "within 1e-3": float((part <= 1e-3).mean()), "values": e.values}  # fmt: skip


def attributed(name: str, graph: Graph, node: Node, ends: np.ndarray, starts: np.ndarray, target: float) -> Line:
    """The engine alone, without a table that is read and a model that is asked."""
    paths = Population(starts, np.full(len(starts), 1 / len(starts)), ends)
    settings = Settings(n_threads=1, quiet=True, corner_tol=target)
    taken, found = least_time(lambda: engine.attribute(node, graph.input, paths, settings), 3)
    part = found.error.max(axis=1) / np.abs(found.values).max(axis=(1, 2))
    return {"work": name, "ms a pair": 1e3 * taken / len(ends) / len(starts), "error": float(part.max()),
            "within 1e-3": float((part <= 1e-3).mean())}  # fmt: skip


def against_continuous(quick: bool) -> Iterator[Line]:
    """Two thirds of the columns categorical, against the same trees on continuous columns: the engine alone."""
    trees, rows, starts = (20, 4, 10) if quick else (200, 20, 100)
    base: dict[str, float] = {}
    for categories, differ in ((0, 0), (29, 10), (29, 29)):
        graph = gig.import_model(boosted(*census(2_000 if quick else 20_000, categories), trees, 5))
        some, _ = census(rows + starts, categories, seed=3)
        for j in range(differ, categories):
            some[f"c{j}"] = some[f"c{j}"].iloc[0]
        X = some.astype(float).to_numpy()
        for output, node in (("margin", graph.margin), ("probability", graph.score)):
            name = f"{categories} of 42 columns categorical, at most {differ} of them change, {output}"
            line = attributed(name, graph, node, X[:rows], X[rows:], 1e-3)
            yield {**line, "ratio": line["ms a pair"] / base.setdefault(output, line["ms a pair"])}


def curve(quick: bool) -> Iterator[Line]:
    """One row against 20 references, all of whose categories differ: time against error by number of players."""
    for players in (12, 16, 20, 24, 32):
        X, y = census(2_000 if quick else 20_000, players, columns=players + 6)
        graph = gig.import_model(boosted(X, y, 20 if quick else 200, 5))
        rng = np.random.default_rng(players)
        end, _ = census(1, players, columns=players + 6, seed=5)
        starts, _ = census(2 if quick else 20, players, columns=players + 6, seed=6)
        for j in range(players):
            code = (int(end[f"c{j}"].iloc[0]) + rng.integers(1, 6, len(starts))) % 6
            starts[f"c{j}"] = pd.Categorical(code, range(6))
        for target in (1e-1, 1e-2, 1e-3, 1e-4):
            one, many = (some.astype(float).to_numpy() for some in (end, starts))
            yield attributed(f"{players} players, corner_tol {target:g}", graph, graph.score, one, many, target)


def _tree_peer(model: Any, rows: np.ndarray, reference: np.ndarray, ours: np.ndarray, quick: bool) -> Line:
    trees = shap.TreeExplainer(model, reference, feature_perturbation="interventional", model_output="probability")
    taken, found = least_time(lambda: trees.shap_values(rows, check_additivity=False), 1 if quick else 3)
    apart = float(np.abs(found - ours).max()) / float(np.abs(ours).max())
    return {"work": "shap, interventional TreeExplainer", "ms a pair": 1e3 * taken / len(rows) / len(reference),
            "noise": 0.0, "apart": apart}  # fmt: skip


def peers_of(model: Any, table: pd.DataFrame, rows: int, ours: np.ndarray, quick: bool) -> Iterator[Line]:
    """shap's explainers of the same probability, of the first rows against the others; two seeds where they sample.

    They take numbers alone: categories are given to them as codes, and made categories again for the model. shap's
    TreeExplainer does not take trees that split on categories.
    """
    kinds = {c: table[c].cat.categories for c in table if table[c].dtype.name == "category"}
    codes = pd.DataFrame({c: table[c].cat.codes if c in kinds else table[c] for c in table}).to_numpy(float)
    few, reference = codes[: len(ours)], codes[rows:]
    pairs, largest = len(ours) * len(reference), float(np.abs(ours).max())

    def probability(X: np.ndarray) -> np.ndarray:
        made = {c: pd.Categorical.from_codes(X[:, j].astype(int), kinds[c]) if c in kinds else X[:, j]
                for j, c in enumerate(table)}  # fmt: skip
        return model.predict_proba(pd.DataFrame(made))[:, 1]

    if not kinds:
        yield _tree_peer(model, few, reference, ours, quick)
    for name in ("PermutationExplainer", "KernelExplainer"):
        values = []
        for seed in (0, 1):
            np.random.seed(seed)  # noqa: NPY002  (shap's own generator)
            began = time.process_time()
            if name == "KernelExplainer":
                kernel = shap.KernelExplainer(probability, reference)
                values.append(kernel.shap_values(few, silent=True, nsamples=200 if quick else 2000))
            else:
                permutation = shap.PermutationExplainer(probability, reference, seed=seed)
                values.append(permutation(few, max_evals=10 * (2 * codes.shape[1] + 1), silent=True).values)
            taken = time.process_time() - began
        yield {"work": f"shap, {name}", "ms a pair": 1e3 * taken / pairs,
               "noise": float(np.abs(values[0] - values[1]).max()) / largest,
               "apart": float(np.abs(values[0] - ours).max()) / largest}  # fmt: skip


def tables(quick: bool) -> Iterator[Line]:
    """Real tables in probability space, beside shap."""
    trees, rows, starts = (20, 2, 5) if quick else (300, 20, 100)
    for name in ("adult", "german_credit", "lending_club_2007_2011"):
        if not (DATA / f"{name}.parquet").exists():
            continue
        X, y = real(name)
        X = X.iloc[:3_000] if quick else X
        y = y[: len(X)]
        text = [c for c in X if X[c].dtype == object or X[c].dtype.name in ("str", "string")]
        order = np.random.default_rng(0).permutation(len(X))
        if name == "german_credit":
            X = pd.get_dummies(X, columns=text, dtype=float).astype(float)
            X.columns = [f"x{j}" for j in range(X.shape[1])]
        else:
            X = X.assign(**{c: X[c].astype("category") for c in text})
        model = boosted(X, y, trees, 6)
        some = X.iloc[order[: rows + starts]]
        kind = "one-hot" if name == "german_credit" else "strings"
        line = explained(f"{name}, {kind}", model, some.iloc[:rows], some.iloc[rows:], 1 if quick else 3)
        yield line
        for peer in peers_of(model, some, rows, line["values"][: 1 if quick else 3], quick):
            yield {**peer, "work": f"{name}, {peer['work']}"}


def linked(quick: bool) -> Iterator[Line]:
    """33 categories: skew ones that depend on each other, as in a census, and even ones that all matter."""
    trees, rows, starts = (20, 2, 5) if quick else (300, 20, 100)
    size = 2_000 if quick else 60_000
    for name, (X, y) in {"census-like": people(size), "even": census(size, 33, columns=40)}.items():
        model = boosted(X, y, trees, 6)
        some = X.iloc[np.random.default_rng(0).permutation(len(X))[: rows + starts]]
        if name == "even":  # some minutes: all 33 change with nearly every reference
            few = min(rows, 5)
            yield explained(f"33 categories, even, {few} rows", model, some.iloc[:few], some.iloc[rows:], 1)
        else:
            yield explained(f"33 categories, {name}", model, some.iloc[:rows], some.iloc[rows:], 3)


def stacks(quick: bool) -> Iterator[Line]:
    rows, starts = (2, 4) if quick else (10, 50)
    made = {"made table of 27 flags, 9 categories, 19 numbers": office(1_000 if quick else 12_000)}
    if (DATA / "adult.parquet").exists():
        X, y = real("adult")
        made["adult, strings"] = (X.iloc[:2_000], y[:2_000]) if quick else (X, y)
    for name, (X, y) in made.items():
        cut = len(X) - rows
        model = stack(X.iloc[:cut], y[:cut], quick)
        yield explained(f"stack, {name}", model, X.iloc[cut:], X.iloc[:starts], 1 if quick else 3)


# ---------------------------------------------------------------- the page


def page(parts: dict[str, list[Line]]) -> str:
    facts = machine()
    out = [
        f"Measured on {facts['date']}, {facts['processor']}, one thread, processor time, load {facts['load']}; "
        f"shap {facts.get('shap', '-')}, xgboost {facts.get('xgboost', '-')}. Errors are bounds at 99.9 % for all "
        "credits of a row, as a part of its largest credit; `apart` is the difference from gigrad's credits, which "
        "answer another question wherever numbers change, and `noise` that of two seeds."
    ]  # fmt: skip
    titles = {
        "continuous": "XGBoost 200 x depth 5, 20 rows against 100 references. The ratio is that to continuous columns.",
        "curve": "XGBoost 200 x depth 5, one row against 20 references that differ in all categories, probability.",
        "linked": "XGBoost 300 x depth 6 on 33 categories and 7 numbers, 20 rows against 100 references, probability.",
        "tables": "XGBoost 300 x depth 6, 20 rows against 100 references, probability; peers explain three rows.",
        "stacks": "HistGradientBoosting, MLP (32, 16) and a logistic regression behind a ColumnTransformer, stacked; "
        "10 rows against 50 references.",
    }
    for key, lines in parts.items():
        names = [
            k
            for k in ("ms a pair", "seconds", "ratio", "error", "within 1e-3", "noise", "apart")
            if any(k in x for x in lines)
        ]
        out += ["", titles[key], "", f"| work | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
        for line in lines:
            cells = [f"{line[k]:.3g}" if k in line else "" for k in names]
            out.append(f"| {line['work']} | {' | '.join(cells)} |")
    return "\n".join(out) + "\n"


def main() -> None:
    options = options_on_one_thread(__doc__)
    parts: dict[str, list[Line]] = {}
    measured = {"continuous": against_continuous, "curve": curve, "linked": linked, "tables": tables, "stacks": stacks}
    for key, lines in measured.items():
        parts[key] = []
        for line in lines(options.quick):
            parts[key].append({k: v for k, v in line.items() if k != "values"})
            print(parts[key][-1], flush=True)
            (options.folder / "corners.json").write_text(json.dumps({"machine": machine(), **parts}, indent=1) + "\n")
            (options.folder / "corners.md").write_text(page(parts))


if __name__ == "__main__":
    main()
