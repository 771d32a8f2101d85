"""How much hangs on where a library writes its thresholds: one model, its thresholds moved where no value can lie.

    python experiments/flags.py        measures, and writes the table of docs/flags.md

Each table has an XGBoost classifier whose splits on whole numbers are rewritten, in its own file, from `x < 1` to
`x < 0.5` and to `x <= 0`: three models that agree on every row. Refused applicants (the riskiest fifth) are explained
against 100 approved ones (of the safest half), and the sets of their four principal reasons are compared.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import numpy as np
import pandas as pd
import xgboost
from common import DATA, HERE

import gigrad as gig

REASONS = 4
PAGE = HERE.parent / "docs" / "flags.md"
MARKS = ("<!-- measured: written by experiments/flags.py -->", "<!-- end of the measured table -->")


def taiwan() -> tuple[pd.DataFrame, Any]:
    table = pd.read_parquet(DATA / "taiwan_credit_default.parquet")
    return table.drop(columns="default_payment_next_month"), table["default_payment_next_month"]


def german_categories() -> tuple[pd.DataFrame, Any]:
    table = pd.read_parquet(DATA / "german_credit.parquet")
    return table.drop(columns="credit_risk"), (table["credit_risk"] == "bad").astype(int)


def german() -> tuple[pd.DataFrame, Any]:
    X, bad = german_categories()
    return _named(pd.get_dummies(X).astype(int)), bad


def club() -> tuple[pd.DataFrame, Any]:
    table = pd.read_parquet(DATA / "lending_club_2007_2011.parquet")
    kept = ["loan_amnt", "term_months", "int_rate", "annual_inc", "dti", "inq_last_6mths", "open_acc", "pub_rec",
            "delinq_2yrs", "revol_util", "home_ownership", "purpose", "emp_length", "verification_status"]  # fmt: skip
    return _named(pd.get_dummies(table[kept], dtype=int)), (table["loan_status"] == "Charged Off").astype(int)


def _named(X: pd.DataFrame) -> pd.DataFrame:
    return X.rename(columns=lambda name: re.sub(r"[\[\]<]", " ", name))  # which XGBoost takes in no name


TABLES = {"Taiwan default": taiwan, "German credit, one-hot": german,
          "German credit, categories": german_categories, "Lending Club, one-hot": club}  # fmt: skip


def moved(model: xgboost.XGBClassifier, X: pd.DataFrame, how: str) -> xgboost.XGBClassifier:
    """The same model with its thresholds elsewhere between two whole numbers, on columns that hold nothing else."""
    content = json.loads(model.get_booster().save_raw("json"))
    numbers = [X[c].dropna() if X[c].dtype != "category" else None for c in X.columns]
    whole = [n is not None and bool((n == n.round()).all()) for n in numbers]
    for tree in content["learner"]["gradient_booster"]["model"]["trees"]:
        for node, (column, threshold) in enumerate(zip(tree["split_indices"], tree["split_conditions"], strict=True)):
            if tree["left_children"][node] >= 0 and whole[column] and threshold == round(threshold):
                above = np.nextafter(np.float32(threshold - 1), np.float32(np.inf))
                tree["split_conditions"][node] = threshold - 0.5 if how == "x < 0.5" else float(above)
    out = xgboost.XGBClassifier(enable_categorical=True)
    out.load_model(bytearray(json.dumps(content).encode()))
    return out


def measured(X: pd.DataFrame, y: Any, rows: int) -> dict[str, Any]:
    """Shares of refused applicants whose reasons change with the thresholds, and the largest change of a credit."""
    trees = {"n_estimators": 150, "max_depth": 4, "learning_rate": 0.1, "n_jobs": 2, "random_state": 0}
    model = xgboost.XGBClassifier(**trees, enable_categorical=True).fit(X, y)
    others = {how: moved(model, X, how) for how in ("x < 0.5", "x <= 0")}
    risk = model.predict_proba(X)[:, 1]
    for how, other in others.items():
        if np.abs(other.predict_proba(X)[:, 1] - risk).max() > 1e-6:
            raise SystemExit(f"thresholds moved to {how} change a prediction")
    random = np.random.default_rng(0)
    approved = X.iloc[random.choice(np.flatnonzero(risk <= np.median(risk)), 100, replace=False)]
    refused = X.iloc[random.permutation(np.flatnonzero(risk >= np.quantile(risk, 0.8)))[:rows]]
    out: dict[str, Any] = {"columns": X.shape[1], "refused": len(refused)}
    for name, options in {"as written": {"discrete": ()}, "half-way": {}}.items():
        credits = [gig.explain(m, refused, approved, **options).values for m in (model, *others.values())]
        sets = [np.sort(np.argsort(-c, axis=1, kind="stable")[:, :REASONS], axis=1) for c in credits]
        changed = np.any([(s != sets[0]).any(axis=1) for s in sets[1:]], axis=0)
        out[name] = {
            "reasons change": float(changed.mean()),
            "credit moves": float(max(np.abs(c - credits[0]).max() for c in credits[1:]) / np.abs(credits[0]).max()),
        }
    explained = gig.explain(model, refused, approved)
    chosen = explained.provenance["choice"]["discrete"]
    out["discrete"] = sum(map(len, chosen.values()))
    before = gig.explain(model, refused, approved, discrete=()).values
    sets = [np.sort(np.argsort(-c, axis=1, kind="stable")[:, :REASONS], axis=1) for c in (before, explained.values)]
    out["new reasons"] = float((sets[0] != sets[1]).any(axis=1).mean())
    trial = gig.reason_stability(
        model, refused.head(100), approved, higher_is_better=False, bootstrap=0, spaces={}, top=REASONS
    )
    out["conventional"] = len(trial.conventional) / min(len(refused), 100)
    return out


def table(results: dict[str, dict[str, Any]]) -> str:
    head = [
        "data", "columns, discrete", "as written: reasons, credit", "half-way: reasons, credit",
        "half-way, not as written", "depends on half-way",
    ]  # fmt: skip
    lines = [head, ["---"] * len(head)]
    for name, r in results.items():
        written, half = r["as written"], r["half-way"]
        lines.append(
            [name, f"{r['columns']}, {r['discrete']}",
             f"{written['reasons change']:.0%}, {written['credit moves']:.2f}",
             f"{half['reasons change']:.0%}, {half['credit moves']:.2g}",
             f"{r['new reasons']:.0%}", f"{r['conventional']:.0%}"]
        )  # fmt: skip
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main(rows: int = 200) -> None:
    results = {}
    for name, read in TABLES.items():
        results[name] = measured(*read(), rows)
        print(name, json.dumps(results[name]), file=sys.stderr)
    text = table(results)
    print(text)
    if PAGE.exists():
        page = PAGE.read_text()
        begin, end = (re.escape(mark) for mark in MARKS)
        PAGE.write_text(re.sub(f"(?<={begin}\n).*?(?={end})", lambda _: text + "\n", page, flags=re.DOTALL))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
