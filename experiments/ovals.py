"""Ovals: points of two overlapping ovals, GIG beside shap's TreeExplainer.

In the shared region the class cannot be known. Do the credits tell the lower, the shared and the upper region apart?
"""

from __future__ import annotations

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import xgboost
from common import Run
from scipy.stats import spearmanr
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

import gigrad as gig

matplotlib.use("Agg")

CENTRES = {"lower": np.array([-0.35, -0.35]), "upper": np.array([0.35, 0.35])}
AXES = np.array([1.0, 0.7])
COLOURS = {-1: "#0072B2", 0: "#009E73", 1: "#D55E00"}
REGIONS = {-1: "lower", 0: "shared", 1: "upper"}


def inside(points: np.ndarray, which: str) -> np.ndarray:
    return (((points - CENTRES[which]) / AXES) ** 2).sum(axis=1) <= 1


def ovals(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Uniform points of each oval, the oval each was drawn from, and its region: -1 lower, 0 shared, 1 upper."""
    label = rng.integers(0, 2, n)
    radius, angle = np.sqrt(rng.random(n)), rng.random(n) * 2 * np.pi
    disc = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]) * AXES
    points = disc + np.where(label[:, None] == 1, CENTRES["upper"], CENTRES["lower"])
    return points, label, inside(points, "upper").astype(int) - inside(points, "lower").astype(int)


def separation(values: np.ndarray, region: np.ndarray) -> float:
    """Share of the credits' variance that lies between the regions, both variables together: 0 to 1."""
    total = ((values - values.mean(axis=0)) ** 2).sum()
    between = sum(
        (region == r).sum() * ((values[region == r].mean(axis=0) - values.mean(axis=0)) ** 2).sum() for r in REGIONS
    )
    return float(between / total)


def recovered(values: np.ndarray, region: np.ndarray) -> float:
    """Share of rows whose region their 15 nearest neighbours in credit tell, in five-fold cross-validation."""
    return float(cross_val_score(KNeighborsClassifier(15), values, region, cv=5).mean())


def fitted(X: np.ndarray, y: np.ndarray) -> xgboost.XGBClassifier:
    return xgboost.XGBClassifier(n_estimators=50, max_depth=6, random_state=0).fit(X, y)


def credits(run: Run) -> dict[str, np.ndarray]:
    import shap

    rng = np.random.default_rng(0)
    X, y, region = ovals(rng, 20_000)
    test, _, test_region = ovals(rng, 300 if run.quick else 3_000)
    model = fitted(X, y)
    size = 50 if run.quick else 500
    pick = {name: np.nonzero(np.isin(region, of))[0][:size] for name, of in
            (("everybody", (-1, 0, 1)), ("shared region", (0,)), ("lower region", (-1,)))}  # fmt: skip
    found = {"X": test, "region": test_region, "margin": model.predict(test, output_margin=True)}
    for name, rows in pick.items():
        e = gig.explain(model, test, X[rows], output="margin")
        found[f"GIG|{name}"], found[f"gap|{name}"] = e.values, e.gap
        tree = shap.TreeExplainer(model, X[rows], feature_perturbation="interventional")
        found[f"TreeExplainer, interventional|{name}"] = tree.shap_values(test)
    found["TreeExplainer, path-dependent|its own"] = shap.TreeExplainer(model).shap_values(test)
    return found


def draw(run: Run, found: dict[str, np.ndarray]) -> None:
    methods = ["GIG|everybody", "TreeExplainer, interventional|everybody", "TreeExplainer, path-dependent|its own"]
    figure, axes = plt.subplots(3, 3, figsize=(13, 9), gridspec_kw={"height_ratios": [3, 1, 1]})
    for column, method in enumerate(methods):
        top = axes[0, column]
        for r, colour in COLOURS.items():
            of = found["region"] == r
            top.scatter(*found[method][of].T, s=4, color=colour, label=REGIONS[r], linewidths=0)
            for j in (0, 1):
                axes[1 + j, column].hist(found[method][of, j], bins=60, color=colour, alpha=0.6)
        top.set(title=method.split("|")[0], xlabel="credit of f0", ylabel="credit of f1")
        for j in (0, 1):
            axes[1 + j, column].set_xlabel(f"credit of f{j}")
    for row in axes:  # one scale for all three, so that distances can be compared
        across, up = np.array([ax.get_xlim() for ax in row]), np.array([ax.get_ylim() for ax in row])
        for ax in row:
            ax.set(xlim=(across.min(), across.max()), ylim=(up.min(), up.max()))
    axes[0, 0].legend(title="region", markerscale=3)
    figure.tight_layout()
    run.figure(figure, "credits")
    plt.close(figure)

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2))
    for r, colour in COLOURS.items():
        of = found["region"] == r
        left.scatter(*found["X"][of].T, s=4, color=colour, label=REGIONS[r], linewidths=0)
    left.legend(title="region", markerscale=3)
    points = right.scatter(*found["X"].T, s=4, c=found["margin"], cmap="PuOr_r", linewidths=0)
    figure.colorbar(points, ax=right, label="margin")
    for ax, title in ((left, "The data"), (right, "What the model says")):
        ax.set(title=title, xlabel="f0", ylabel="f1")
    run.figure(figure, "data")
    plt.close(figure)


def main() -> None:
    run = Run.from_command_line("ovals", __doc__)
    found = run.stage("credits", lambda: credits(run))
    draw(run, found)
    rows, ranks, spread, told = [], {}, {}, {}
    for key, values in found.items():
        if "|" not in key or key.startswith("gap"):
            continue
        rank = ranks[key] = [float(spearmanr(values[:, j], found["region"]).statistic) for j in (0, 1)]
        spread[key], told[key] = separation(values, found["region"]), recovered(values, found["region"])
        rows.append([*key.split("|"), f"{rank[0]:.3f}", f"{rank[1]:.3f}", f"{spread[key]:.3f}", f"{told[key]:.1%}"])
    header = ["method", "reference", "Spearman f0", "Spearman f1", "variance between regions", "region told by credit"]
    run.table("How well credits tell the regions apart", header, rows)
    for row in rows:
        print("  " + "  ".join(f"{cell:<30}" for cell in row))
    mine = "GIG|everybody"
    for peer in ("TreeExplainer, interventional|everybody", "TreeExplainer, path-dependent|its own"):
        (a, b), (c, d) = ranks[mine], ranks[peer]
        run.claim(
            f"GIG separates the regions better than {peer.split('|')[0]}", "better, by Spearman coefficients",
            f"Spearman {a:.3f} and {b:.3f} against {c:.3f} and {d:.3f}, variance between regions {spread[mine]:.3f} "
            f"against {spread[peer]:.3f}, region told by credit {told[mine]:.1%} against {told[peer]:.1%}",
            a > c and b > d, must=False,
        )  # fmt: skip
    gap = max(np.abs(v).max() for k, v in found.items() if k.startswith("gap"))
    run.claim("completeness", "efficient", f"largest gap {gap:.1e}", bool(gap < 1e-4))
    run.finish()


if __name__ == "__main__":
    main()
