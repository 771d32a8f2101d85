"""Sensitivity: a third feature that is noise, half target, or the target, beside the two of the moons.

A credit that means anything gives such a feature nothing, something, and everything.
"""

from __future__ import annotations

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import xgboost
from common import Run, shares
from sklearn.datasets import make_moons
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

import gigrad as gig

matplotlib.use("Agg")

# how much of the third feature is the target
MIXTURES = {"noise": 0.0, "half": 0.5, "target": 1.0}
NAMES = ("x", "y", "nuisance")


def moons(target_share: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    # "normalize" over columns: over rows, its default, it would put every point on the unit circle and undo the moons.
    X, y = make_moons(20_000, noise=0.2, random_state=0)
    X = normalize(X, axis=0) * np.sqrt(len(X))
    noise = np.random.default_rng(0).normal(size=len(X))
    X = np.column_stack([X, target_share * y + (1 - target_share) * noise])
    return train_test_split(X, y, test_size=6_000, random_state=0)


def fitted(train: np.ndarray, y_train: np.ndarray) -> xgboost.XGBClassifier:
    return xgboost.XGBClassifier(n_estimators=25, max_depth=6, random_state=0).fit(train, y_train)


def credits(run: Run, name: str) -> dict[str, np.ndarray]:
    train, test, y_train, y_test = moons(MIXTURES[name])
    model = fitted(train, y_train)
    rows = np.random.default_rng(1).choice(len(test), 300 if run.quick else len(test), replace=False)
    reference = train[np.random.default_rng(2).choice(len(train), 50 if run.quick else 500, replace=False)]
    e = gig.explain(model, test[rows], reference, output="margin")
    auc = roc_auc_score(y_test, model.predict_proba(test)[:, 1])
    return {"X": test[rows], "y": y_test[rows], "values": e.values, "gap": e.gap, "auc": np.array(auc)}


def draw(run: Run, name: str, found: dict[str, np.ndarray]) -> None:
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), sharey=True)
    for j, ax in enumerate(axes):
        for label, colour in ((0, "#0072B2"), (1, "#D55E00")):
            of = found["y"] == label
            ax.scatter(found["X"][of, j], found["values"][of, j], s=3, color=colour, alpha=0.5, linewidths=0)
        ax.set_xlabel(NAMES[j])
        ax.axhline(0, color="0.6", lw=0.8, zorder=0)
    axes[0].set_ylabel("credit (margin)")
    figure.suptitle(f"Moons, third feature: {name} (blue and orange: the two classes)")
    run.figure(figure, name)
    plt.close(figure)


def main() -> None:
    run = Run.from_command_line("moons", __doc__)
    share: dict[str, float] = {}
    for name in MIXTURES:
        found = run.stage(name, lambda name=name: credits(run, name))
        draw(run, name, found)
        share[name] = float(shares(found["values"])[2])
        run.claim(
            f"{name}: AUC is high", "all three models reach a high AUC", f"{found['auc']:.4f}", bool(found["auc"] > 0.9)
        )
        run.claim(f"{name}: largest gap", "", f"{np.abs(found['gap']).max():.1e}", None)
    run.claim(
        "noise earns next to nothing", "none of the credit", f"{share['noise']:.1%} of |credit|", share["noise"] < 0.1
    )
    between = share["noise"] < share["half"] < share["target"]
    run.claim("half a target earns a part", "some of the credit", f"{share['half']:.1%} of |credit|", between)
    run.claim(
        "the target earns it all", "all of the credit", f"{share['target']:.1%} of |credit|", share["target"] > 0.99
    )
    run.finish()


if __name__ == "__main__":
    main()
