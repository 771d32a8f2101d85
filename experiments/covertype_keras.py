"""Covertype with the paper's own kind of net: all nets and heads are built and trained with Keras, as the paper did.

The forest is that of `covertype.py`. The net has 1000-1000 ReLU and 1000 tanh units and a sigmoid, and is trained with
Adam with Nesterov momentum, batches of 100 and an L2 penalty, on the torch backend of Keras 3. Heads are Keras models,
too: linear ones, and nets of 1000 tanh units. Every net goes through a `.keras` file, which is read without Keras and
must give the same.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
from common import Run, progress
from covertype import claim_sums, draw, explained, forest, show_quality, show_sizes, splits
from keras import layers

import gigrad as gig
from gigrad._io.modelfiles import load_model

SAMPLE = {"quick": (2, 3), "full": (6, 6)}  # rows and reference rows that are explained
TRAIN_ROWS = {"quick": 4_000, "full": 40_000}
EPOCHS, HEAD_EPOCHS = 2, 2
RATE, PENALTY, BATCH = 0.01, 1e-3, 100  # the paper's


def dense(units: int, activation: str) -> Any:
    return layers.Dense(units, activation, kernel_regularizer=keras.regularizers.L2(PENALTY))


def net(X: np.ndarray, quick: bool) -> Any:
    units = 100 if quick else 1000
    scaled = layers.Normalization()
    scaled.adapt(X)
    hidden = [dense(units, "relu"), dense(units, "relu"), dense(units, "tanh")]
    return keras.Sequential([keras.Input((54,)), scaled, *hidden, dense(1, "sigmoid")])


def head(quick: bool) -> Any:
    return keras.Sequential([keras.Input((2,)), dense(100 if quick else 1000, "tanh"), dense(1, "sigmoid")])


def linear() -> Any:
    return keras.Sequential([keras.Input((2,)), layers.Dense(1)])


def fit(model: Any, X: np.ndarray, y: np.ndarray, loss: str, epochs: int, what: str) -> Any:
    model.compile(keras.optimizers.Nadam(RATE), loss)
    began = time.perf_counter()
    for epoch in range(epochs):
        model.fit(X.astype(np.float32), y.astype(np.float32)[:, None], BATCH, 1, verbose=0)
        progress(epoch + 1, epochs, what, began)
    return model


def trained(run: Run, name: str, model: Any, *how: Any) -> Any:
    """A trained net, or the one an earlier run trained."""

    def compute() -> dict[str, np.ndarray]:
        fit(model, *how, f"training {name}")
        return {str(i): w for i, w in enumerate(model.get_weights())}

    arrays = run.stage(name, compute)
    model.set_weights([arrays[str(i)] for i in range(len(arrays))])
    return model


def through_a_file(run: Run, name: str, model: Any, X: np.ndarray) -> gig.Graph:
    """The graph of a model; the file that Keras writes of it, read without Keras, must give the same."""
    path = Path(run.folder) / "stages" / f"{name}.keras"
    model.save(path)
    graph = gig.import_model(model)
    if not np.array_equal(load_model(path).predict(X), graph.predict(X)):
        raise RuntimeError(f"{path} gives other scores than the model it was written from")
    return graph


def models(run: Run, parts: dict[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, gig.Graph]:
    """The twelve models, by the paper's names."""
    keras.utils.set_random_seed(0)
    X, y = (v[: TRAIN_ROWS["quick" if run.quick else "full"]] for v in parts["train"])
    early, y_early = parts["early"]
    etf = gig.import_model(forest(parts))
    made = trained(run, "net", net(X, run.quick), X, y, "binary_crossentropy", EPOCHS)
    mlp = through_a_file(run, "net", made, early)

    def ranked(graph: gig.Graph) -> gig.Graph:
        return graph.then(gig.SmoothedECDF.fit(graph.predict(early)))

    found = {"ETF": etf, "ECDF(ETF)": ranked(etf), "MLP": mlp, "ECDF(MLP)": ranked(mlp)}
    for kind, below in (("raw", [etf, mlp]), ("normalised", [found["ECDF(ETF)"], found["ECDF(MLP)"]])):
        scores = np.column_stack([g.predict(early) for g in below])
        plain = trained(run, f"linear_{kind}", linear(), scores, y_early, "mean_squared_error", HEAD_EPOCHS)
        deep = trained(run, f"head_{kind}", head(run.quick), scores, y_early, "binary_crossentropy", HEAD_EPOCHS)
        for name, one in ((f"linear of {kind}", plain), (f"MLP of {kind}", deep)):
            graph = gig.stack(below, head=through_a_file(run, name.replace(" ", "_"), one, scores))
            found |= {name: graph, f"ECDF({name})": ranked(graph)}
    return found


def main() -> None:
    run = Run.from_command_line("covertype_keras", __doc__)
    parts = splits(run.quick)
    found = models(run, parts)
    test, y_test = parts["test"]
    draw(run, found, test[:2_000])
    rng = np.random.default_rng(0)
    n_rows, n_reference = SAMPLE["quick" if run.quick else "full"]
    rows = test[rng.choice(len(test), n_rows, replace=False)][: run.rows]
    reference = parts["late"][0][rng.choice(len(parts["late"][0]), n_reference, replace=False)]
    results = explained(run, found, rows, reference, tol=1e-6)
    show_quality(run, found, results, test, y_test, rows, reference)
    show_sizes(run, results)
    claim_sums(run, found["ETF"], results, rows, reference, own=1e-6)  # Keras predicts in float32
    own = keras.models.load_model(Path(run.folder) / "stages" / "net.keras").predict(test[:2_000], verbose=0)[:, 0]
    apart = float(np.abs(found["MLP"].predict(test[:2_000]) - own).max())
    run.claim("the graph is the Keras net", "", f"largest difference from predict {apart:.1e}", apart < 1e-5)
    run.finish()


if __name__ == "__main__":
    main()
