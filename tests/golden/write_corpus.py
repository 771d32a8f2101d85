"""Writes the golden corpus of a release: PYTHONPATH=tests/helpers python tests/golden/write_corpus.py, before it
is tagged.

Every case is an explainer (NAME.gig), rows and what they were credited with (NAME.json), and a ledger of reasons
(NAME.jsonl), in a folder named after the version of the `.gig` format. Later test runs replay them (test_corpus.py), so
a file here is never written anew: numbers that change on purpose get a folder of their own and a line in the changelog.
Models that the folder lacks are added, and in nodes-VERSION every kind of node that no file of it has.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from node_cases import KINDS, graph_of, kinds_in

import gigrad as gig
from gigrad.portable import archive

HERE = Path(__file__).parent
FOLDER = HERE / f"format-{archive.VERSION}"


def table(seed: int, n: int) -> pd.DataFrame:
    """Rows as in models/rows.csv: a flag, a count, two measures with gaps, a category."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "flag": rng.integers(0, 2, n).astype(float),
        "count": rng.poisson(2, n).astype(float),
        "amount": np.round(rng.gamma(2.0, 20.0, n), 1),
        "share": np.round(rng.normal(0.4, 0.2, n), 3),
        "purpose": rng.integers(0, 4, n).astype(float),
    })  # fmt: skip
    for name in ("amount", "share"):
        frame.loc[rng.random(n) < 0.1, name] = np.nan
    return frame


def bad(frame: pd.DataFrame, seed: int) -> Any:
    filled = frame.fillna(frame.mean())
    z = 0.8 * filled["flag"] - 0.4 * filled["count"] + 0.02 * filled["amount"] + 2 * filled["share"]
    return (z + np.random.default_rng(seed).logistic(size=len(frame)) > 1.2).astype(int)


def models(train: pd.DataFrame, y: Any) -> dict[str, tuple[Any, dict[str, Any]]]:
    """By name: a model and the options of its explainer; one for each engine and space."""
    import catboost
    import lightgbm
    import xgboost
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    boosted = xgboost.XGBClassifier(n_estimators=12, max_depth=3, random_state=0, n_jobs=1).fit(train, y)
    light = lightgbm.LGBMClassifier(n_estimators=8, num_leaves=6, verbose=-1, n_jobs=1).fit(train, y)
    cat = catboost.CatBoostClassifier(iterations=8, depth=3, verbose=False, allow_writing_files=False).fit(train, y)
    three = xgboost.XGBClassifier(n_estimators=4, max_depth=2, random_state=0, n_jobs=1)
    three.fit(train, (train["count"].clip(0, 2)).astype(int))
    net = make_pipeline(SimpleImputer(), StandardScaler(), MLPClassifier((6,), activation="tanh", random_state=0))
    net.fit(train, y)
    linear = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression()).fit(train, y)
    mixed = gig.average([boosted, net], weights=[0.6, 0.4])
    scores = gig.import_model(boosted).predict(train)
    return {
        "margin": (boosted, {"output": "margin"}),
        "probability": (boosted, {}),
        "rank": (gig.import_model(boosted).then(gig.SmoothedECDF.fit(scores)), {}),
        "classes": (three, {"output": "margin"}),
        "lightgbm": (light, {"output": "margin"}),
        "catboost": (cat, {}),
        "linear": (linear, {}),
        "mixed": (mixed, {}),
        "grouped": (boosted, {"output": "margin", "groups": {"size": ["amount", "share"]}}),
        "nominal": (boosted, {"nominal": ["purpose"]}),
    }


def write(name: str, model: Any, options: dict[str, Any], reference: pd.DataFrame, rows: pd.DataFrame) -> None:
    gig.Explainer(model, reference, n_threads=1, **options).save(FOLDER / f"{name}.gig")
    e = gig.Explainer.load(FOLDER / f"{name}.gig", n_threads=1)(rows)  # predicts without the model's library, as later
    numbers = {k: getattr(e, k).tolist() for k in ("values", "base_values", "predictions", "error")}
    given = rows.astype(object).where(rows.notna(), None).to_numpy().tolist()
    told = {"columns": list(rows.columns), "rows": given, "feature_names": list(e.feature_names), **numbers}
    (FOLDER / f"{name}.json").write_text(json.dumps(told) + "\n")
    if e.values.ndim == 2:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", gig.StatementWarning)
            found = gig.reasons(e, 3, higher_is_better=False, row_ids=[f"A-{i}" for i in range(len(rows))])
        found.write_audit(FOLDER / f"{name}.jsonl")


def write_missing_nodes() -> None:
    """One more case with the kinds of nodes that no file has, if there are any."""
    held = {kind for path in FOLDER.glob("*.gig") for kind in kinds_in(archive.read(path)[0]["nodes"])}
    if held >= KINDS:
        return
    rng = np.random.default_rng(4)
    rows = pd.DataFrame(rng.uniform(0.1, 0.9, (10, 3)).round(2), columns=["a", "b", "c"])
    rows["label"] = rng.integers(0, 3, len(rows)).astype(float)
    rows.loc[4, "a"] = rows.loc[5, "b"] = rows.loc[6, "label"] = np.nan
    write("nodes-" + gig.__version__.replace(".", "-"), graph_of(KINDS - held), {"tol": 1e-9}, rows[:4], rows[4:])


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    train = table(1, 400)
    y = bad(train, 2)
    for name, (model, options) in models(train, y).items():
        if not (FOLDER / f"{name}.gig").exists():
            write(name, model, options, train[y == 0].head(15), table(3, 6))
    write_missing_nodes()
