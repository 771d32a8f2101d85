"""`settle` on Lending Club: the time and references it takes, and whether its reasons are those of all references.

Refused loans against 2,000 approved ones, XGBoost in probability space. Both ways run in turn in one process on one
thread, and the least processor time of each counts. The first choice of loans was used for tuning, the others not. The
table lies in ../../shared/data; `--quick` runs a made one instead, so that the benchmark cannot rot unnoticed.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import xgboost
from run import HERE, machine, options_on_one_thread
from workloads import table

import gigrad as gig

DATA = HERE.parents[1] / "shared" / "data" / "lending_club_2007_2011.parquet"
MODELS = [(100, 3), (60, 4), (200, 5)]
CHOICES = [0, 11, 12, 13]
TOP, TIE = 4, 0.05


def loans(quick: bool) -> tuple[pd.DataFrame, Any]:
    if quick:
        made, bad = table(3000, 12, 3)
        return pd.DataFrame(made, columns=[f"c{j}" for j in range(12)]), bad
    X = pd.read_parquet(DATA).iloc[::2].reset_index(drop=True)
    bad = X.pop("loan_status") == "Charged Off"
    return X.drop(columns=["issue_d", "earliest_cr_line", "meets_credit_policy"]), bad


def wrong(exact: Any, given: Any) -> int:
    """How many rows have reasons that are not those of all references, beyond a tie; higher is worse."""
    count = 0
    for true, found in zip(exact, given, strict=True):
        order = np.argsort(-found, kind="stable")
        named = order[:TOP][found[order[:TOP]] > 0]
        left, tie = np.setdiff1d(order, named), TIE * true.max()
        floor = min(true[named].min(initial=np.inf), 0.0) if len(named) < TOP else true[named].min()
        count += bool((true[named] < -tie).any() or true[left].max(initial=-np.inf) > floor + tie)
    return count


def measured(X: pd.DataFrame, bad: Any, quick: bool) -> Iterator[dict[str, Any]]:
    """A line for each model and choice of loans."""
    repeats, some, most = (1, 8, 500) if quick else (5, 60, 2000)
    for trees, depth in MODELS[:1] if quick else MODELS:
        fit = xgboost.XGBClassifier(n_estimators=trees, max_depth=depth, enable_categorical=True, n_jobs=1).fit(X, bad)
        risk = fit.predict_proba(X)[:, 1].astype(float)
        cutoff = float(np.quantile(risk, 0.8))
        approved = gig.references.approved(X, risk, cutoff, higher_is_better=False)
        explainer = gig.Explainer(fit, gig.references.sample(approved, most, 0))
        for choice in CHOICES[:1] if quick else CHOICES:
            rows = X[risk > cutoff].sample(some, random_state=choice)
            times = np.full(2, np.inf)
            for _ in range(repeats):
                began = time.process_time()
                exact = explainer(rows)
                between = time.process_time()
                found = gig.settle(explainer, rows, confidence=0.99, top=TOP, tie=TIE)
                times = np.minimum(times, [between - began, time.process_time() - between])
            yield {
                "model": f"{trees} x depth {depth}",
                "loans": choice,
                "references": round(float(found.references.mean())),
                "all": round(float(times[0]), 2),
                "settled": round(float(times[1]), 2),
                "faster": round(float(times[0] / times[1]), 2),
                "wrong": wrong(exact.values, found.explanation.values),
            }


def page(lines: list[dict[str, Any]]) -> str:
    facts = machine()
    head = list(lines[0])
    rows = [head, ["---"] * len(head), *[list(map(str, line.values())) for line in lines]]
    return (
        f"Measured on {facts['date']}, {facts['processor']}, one thread, least processor time in seconds, "
        f"load {os.getloadavg()[0]:.1f}.\n"
        "60 refused loans of Lending Club against 2,000 approved ones, XGBoost in probability space, at 99 %.\n\n"
    ) + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main() -> None:
    options = options_on_one_thread(__doc__)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    lines = []
    for line in measured(*loans(options.quick), options.quick):
        lines.append(line)
        print(line, flush=True)
    (options.folder / "settling.json").write_text(json.dumps({"machine": machine(), "lines": lines}, indent=1) + "\n")
    (options.folder / "settling.md").write_text(page(lines))


if __name__ == "__main__":
    main()
