"""
Writing an importer
===================

A model class of our own, a scorecard that adds up points, becomes a model that gigrad can explain: one function, and a
check that tries it at every threshold.
"""

# %%
import numpy as np

import gigrad as gig
from gigrad.graph import Column, Graph, Input, Tree, Witness, assemble
from gigrad.testing import check_importer


class Scorecard:
    """Points for every bin of every column; a value on an edge belongs to the bin below it."""

    def __init__(self, bins: dict[str, tuple[list[float], list[float]]]) -> None:
        self.bins = bins

    def predict(self, X: np.ndarray) -> np.ndarray:
        columns = enumerate(self.bins.values())
        return sum(
            np.asarray(p)[np.searchsorted(e, X[:, j], side="left")]
            for j, (e, p) in columns
        )


# %%
# Each column's bins are a chain of splits ``x <= edge``.


def chain(column: int, edges: list[float], points: list[float]) -> Tree:
    size, split = 2 * len(edges) + 1, slice(0, 2 * len(edges), 2)
    feature, left, right = (np.full(size, -1) for _ in range(3))
    threshold, values = np.zeros(size), np.zeros(size)
    feature[split], threshold[split] = column, edges
    left[split], right[split] = (
        np.arange(len(edges)) * 2 + 1,
        np.arange(len(edges)) * 2 + 2,
    )
    values[1::2], values[-1] = points[:-1], points[-1]
    return Tree(feature, threshold, left, right, np.zeros(size, bool), values)


# %%
# The importer gives the graph, and the model's own prediction as its witness.


@gig.register_importer(f"{Scorecard.__module__}.Scorecard")
def import_scorecard(model: Scorecard) -> Graph:
    columns = tuple(Column(name, missing=False) for name in model.bins)
    source = Input(len(columns))
    score = assemble(
        source,
        [chain(j, *b) for j, b in enumerate(model.bins.values())],
        base=np.zeros(1),
    )
    witness = Witness(
        score, lambda rows: model.predict(rows.matrix), "this scorecard"
    )
    return Graph(
        columns, source, score, score, ("points",), witnesses=(witness,), named=True
    )


# %%
# Check it, then use it: for an additive model, credits are the differences of points.

card = Scorecard(
    {
        "months_employed": ([25, 40, 60], [0, 10, 25, 30]),
        "debt": ([1.0, 3.5], [40, 20, 0]),
    }
)
rng = np.random.default_rng(0)
X = np.column_stack([rng.uniform(18, 80, 200), rng.exponential(2, 200)])
print(check_importer(card, X))

e = gig.explain_pairs(card, [[30, 2.0]], [[70, 0.5]])
print(dict(zip(e.feature_names, e.values[0], strict=True)))
assert e.values.tolist() == [[20.0, 20.0]]
