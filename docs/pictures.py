"""Draw the pictures of the pages and the README that no other script draws, from what gigrad computes.

    python docs/pictures.py

Run it when a plot changes; the pictures are committed, since the README shows them too.
"""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import gigrad as gig
from gigrad.graph import Column, Graph, Input, Tree, assemble

HERE = Path(__file__).resolve().parent


CELLS = np.array(
    [[0.10, 0.20], [0.25, 0.60]]
)  # rows: late payments no, yes; columns: short of income no, yes
NAMES = ("late payments", "short of income")
COLOURS = ("#E1690F", "#2C84BF")


def corner_tree() -> Graph:
    """One tree that asks both questions at one half."""
    source = Input(2)
    feature, threshold = np.array([0, 1, 1, -1, -1, -1, -1]), np.full(7, 0.5)
    left, right = (
        np.array([1, 3, 5, -1, -1, -1, -1]),
        np.array([2, 4, 6, -1, -1, -1, -1]),
    )
    values = np.concatenate([np.zeros(3), CELLS.ravel()])
    score = assemble(
        source,
        [Tree(feature, threshold, left, right, np.zeros(7, bool), values)],
        np.zeros(1),
    )
    return Graph(tuple(map(Column, NAMES)), source, score, score, ("risk",))


def corner(path: Path) -> None:
    """Two questions answered at the same moment: the path, the two orders around the corner, and their mean."""
    credit = gig.explain_pairs(corner_tree(), [[0.0, 0.0]], [[1.0, 1.0]]).values[0]
    x_first = (CELLS[1, 0] - CELLS[0, 0], CELLS[1, 1] - CELLS[1, 0])
    y_first = (CELLS[1, 1] - CELLS[0, 1], CELLS[0, 1] - CELLS[0, 0])
    assert np.allclose(credit, np.mean([x_first, y_first], axis=0))

    figure, (plan, bars) = plt.subplots(
        1, 2, figsize=(9, 3.9), width_ratios=(1, 1.25), layout="constrained"
    )
    plan.imshow(
        CELLS.T,
        origin="lower",
        extent=(-0.15, 1.15, -0.15, 1.15),
        cmap="Greys",
        vmin=0,
        vmax=1.2,
    )
    for i, j in np.ndindex(2, 2):
        plan.text(
            0.17 + 0.66 * i,
            -0.08 + 1.16 * j,
            f"risk {CELLS[i, j]:.2f}",
            ha="center",
            va="center",
        )
    plan.plot([0, 1], [0, 1], color="black", lw=2.5, marker="o")
    plan.annotate("", (0.72, 0.62), (0.4, 0.3), arrowprops={"arrowstyle": "->", "color": COLOURS[0], "lw": 1.8,
                  "connectionstyle": "angle,angleA=0,angleB=90,rad=6"})  # fmt: skip
    plan.annotate("", (0.62, 0.72), (0.3, 0.4), arrowprops={"arrowstyle": "->", "color": COLOURS[1], "lw": 1.8,
                  "connectionstyle": "angle,angleA=90,angleB=0,rad=6"})  # fmt: skip
    plan.set(xticks=(0, 1), yticks=(0, 1), xticklabels=("no", "yes"), yticklabels=("no", "yes"),
             xlabel=NAMES[0], ylabel=NAMES[1], title="both change at the same moment")  # fmt: skip

    rows = {
        f"{NAMES[0]} first": x_first,
        f"{NAMES[1]} first": y_first,
        "credit: the mean": credit,
    }
    for at, (label, shares) in enumerate(rows.items()):
        begin = 0.0
        for share, colour, name in zip(shares, COLOURS, NAMES, strict=True):
            bars.barh(
                -at,
                share,
                left=begin,
                color=colour,
                height=0.62,
                label=name if at == 0 else None,
            )
            bars.text(
                begin + share / 2,
                -at,
                f"{share:+.3f}",
                color="white",
                ha="center",
                va="center",
                weight="bold",
            )
            begin += share
        bars.text(-0.01, -at, label, ha="right", va="center")
    bars.set(
        yticks=(),
        xlabel="change of the risk",
        title="who made the risk rise from 0.10 to 0.60?",
    )
    bars.spines[["left", "right", "top"]].set_visible(False)
    bars.legend(
        loc="upper center", bbox_to_anchor=(0.4, -0.17), ncols=2, frameon=False
    )
    figure.savefig(path, dpi=130)
    plt.close(figure)
    print("wrote", path.relative_to(HERE.parent))


def of_page(page: str) -> None:
    """Run a page's snippets, in order; each call of a plot leaves a figure, and each figure becomes a file."""
    blocks = re.findall(
        r"^```python\n(.*?)^```",
        (HERE / f"{page}.md").read_text(),
        flags=re.DOTALL | re.MULTILINE,
    )
    scope: dict[str, object] = {}
    for block in blocks:
        exec(block, scope)
        if found := re.search(r"gig\.plots\.(\w+)\(", block):
            path = HERE / "_static" / f"{page}_{found.group(1)}.png"
            plt.gcf().savefig(path, dpi=130, bbox_inches="tight")
            plt.close("all")
            print("wrote", path.relative_to(HERE.parent))


if __name__ == "__main__":
    corner(HERE / "_static" / "corner.png")
    of_page("start")
    of_page("changes")
    of_page("together")
    of_page("whatif")
