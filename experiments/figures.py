"""The paper's drawings: a sine, a grid of steps, their sum, and a sine of a product and a step, along one path.

Each is a function of two variables from (0.5, 1) to (7, 3), drawn in four panels: the surface, the path seen from
above, the score along it, the credit. The paper does not print its grid's values; the one here has as many cells.
"""

from __future__ import annotations

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from common import Run

import gigrad as gig
from gigrad.graph import Column, Concat, Input, Node, Opaque, Sum, Tree, TreeEnsemble, assemble

matplotlib.use("Agg")

START, END = np.array([[0.5, 1.0]]), np.array([[7.0, 3.0]])
X_CUTS, Y_CUTS = (2.0, 4.5), (1.5, 2.25)
CELLS = np.array([[0.0, 0.6, 0.3], [0.5, 1.2, -0.4], [-0.3, 0.2, 0.9]])  # rows: x, columns: y


def grid(source: Input) -> TreeEnsemble:
    """The piecewise constant function as one tree: x is cut first, then y."""
    nodes: list[tuple[int, float, int, int, float]] = []

    def cut(feature: int, cuts: tuple[float, ...], leaves: list[float] | None, first: int) -> int:
        index = len(nodes)
        nodes.append((-1, 0.0, -1, -1, 0.0))
        if not cuts:
            if leaves is None:
                nodes.pop()
                return cut(1, Y_CUTS, CELLS[first].tolist(), 0)
            nodes[index] = (-1, 0.0, -1, -1, leaves[first])
            return index
        left = cut(feature, (), leaves, first)
        right = cut(feature, cuts[1:], leaves, first + 1)
        nodes[index] = (feature, cuts[0], left, right, 0.0)
        return index

    cut(0, X_CUTS, None, 0)
    feature, threshold, left, right, value = (np.array(a) for a in zip(*nodes, strict=True))
    return assemble(source, [Tree(feature, threshold, left, right, np.zeros(len(feature), bool), value)], np.zeros(1))


def sine(source: Input) -> Node:
    def gradient(x: np.ndarray, cotangent: np.ndarray) -> np.ndarray:
        return np.repeat(cotangent * np.cos(x.sum(axis=1, keepdims=True)), 2, axis=1)

    return Opaque(source, 1, lambda x: np.sin(x.sum(axis=1, keepdims=True)), gradient, "sin(x + y)")


def sine_of_product(source: Input) -> Node:
    """sin(x y / 4 + d(x, y)): smooth in x and y, and the step moves its phase."""

    def value(z: np.ndarray) -> np.ndarray:
        return np.sin(z[:, :1] * z[:, 1:2] / 4 + z[:, 2:])

    def gradient(z: np.ndarray, cotangent: np.ndarray) -> np.ndarray:
        slope = cotangent * np.cos(z[:, :1] * z[:, 1:2] / 4 + z[:, 2:])
        return slope * np.column_stack([z[:, 1] / 4, z[:, 0] / 4, np.ones(len(z))])

    return Opaque(Concat((source, grid(source))), 1, value, gradient, "sin(x y / 4 + d)")


def graph(build: str) -> gig.Graph:
    source = Input(2)
    score = {
        "sine": lambda: sine(source),
        "grid": lambda: grid(source),
        "sum": lambda: Sum((sine(source), grid(source))),
        "product": lambda: sine_of_product(source),
    }[build]()
    return gig.Graph((Column("x"), Column("y")), source, score, score, ("score",))


TITLES = {"sine": "sin(x + y)", "grid": "a grid of steps", "sum": "sin(x + y) + steps", "product": "sin(xy/4 + steps)"}


def by_hand(name: str) -> np.ndarray | None:
    """The credit worked out on paper, where that is short."""
    move = (END - START)[0]
    smooth = (np.sin(END.sum()) - np.sin(START.sum())) * move / move.sum()
    # x passes 2 (a = 0.231) and 4.5 (a = 0.615); y passes 1.5 (a = 0.25) and 2.25 (a = 0.625): x, y, x, y
    steps = [
        CELLS[1, 0] - CELLS[0, 0] + CELLS[2, 1] - CELLS[1, 1],
        CELLS[1, 1] - CELLS[1, 0] + CELLS[2, 2] - CELLS[2, 1],
    ]
    return {"sine": smooth, "grid": np.array(steps), "sum": smooth + steps}.get(name)


def main() -> None:
    run = Run.from_command_line("figures", __doc__)
    rows = []
    for name, title in TITLES.items():
        model = graph(name)
        e = gig.explain_pairs(model, START, END, discrete=(), tol=1e-10)
        axes = gig.plots.surface(e, model.predict, START[0])
        axes[0].figure.suptitle(f"{title}: credit ({e.values[0, 0]:.4f}, {e.values[0, 1]:.4f})")
        run.figure(axes[0].figure, name)
        plt.close(axes[0].figure)
        rows.append([title, f"{e.values[0, 0]:.6f}", f"{e.values[0, 1]:.6f}", f"{e.gap[0]:.1e}", f"{e.error[0]:.1e}"])
        wanted = by_hand(name)
        if wanted is not None:
            difference = float(np.abs(e.values[0] - wanted).max())
            run.claim(f"{title} equals the closed form", "", f"largest difference {difference:.1e}", difference < 1e-9)
        else:
            run.claim(f"{title} adds up", "efficient", f"gap {e.gap[0]:.1e}", bool(abs(e.gap[0]) < 1e-9))
        if name == "sine":
            exact = bool(np.allclose(e.values[0], [-1.17881, -0.36271], atol=5e-6))
            run.claim(
                "sin(x + y) from (0.5, 1) to (7, 3)", "(-0.8, -0.27), which does not sum to sin 10 - sin 1.5 = -1.5415",
                f"({e.values[0, 0]:.5f}, {e.values[0, 1]:.5f})", exact,
            )  # fmt: skip
    run.table("Credits along the path", ["function", "credit of x", "credit of y", "gap", "error"], rows)
    run.finish()


if __name__ == "__main__":
    main()
