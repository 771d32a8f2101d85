"""Keras models that read text and whole numbers as labels, which only TensorFlow can build; files of them are kept.

`KERAS_BACKEND=tensorflow python keras_lookups.py` writes the files anew, with the predictions of the models.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

FILES = Path(__file__).resolve().parents[1] / "importers" / "files"


def table() -> Any:
    import pandas as pd

    rng = np.random.default_rng(21)
    n = 60
    return pd.DataFrame(
        {
            "job": rng.choice(["clerk", "café", "none of these", "smith"], n),
            "branch": rng.choice([10, 20, 35, 77], n),
            "amount": rng.normal(size=n).round(1),
        }
    )


def inputs(keras: Any) -> list[Any]:
    kinds = {"job": "string", "branch": "int64", "amount": "float32"}
    return [keras.Input((1,), name=name, dtype=kind) for name, kind in kinds.items()]


def given(keras: Any) -> Any:
    """Vocabularies that are given, read twice, in every form of output."""
    layers = keras.layers
    job, branch, amount = inputs(keras)
    words = layers.StringLookup(vocabulary=["clerk", "smith", "café"])
    others = layers.StringLookup(vocabulary=["smith", "baker"], output_mode="one_hot")
    coded = layers.IntegerLookup(vocabulary=[10, 20, 35], output_mode="multi_hot")
    parts = [
        layers.Flatten()(layers.Embedding(6, 2)(words(job))),
        layers.CategoryEncoding(4, output_mode="one_hot")(words(job)),
        others(job),
        coded(branch),
        amount,
    ]
    hidden = layers.Dense(4, activation="tanh")(layers.Concatenate()(parts))
    return keras.Model([job, branch, amount], layers.Dense(1, activation="sigmoid")(hidden))


def adapted(keras: Any) -> Any:
    """Vocabularies learnt from a table, with a mask, in a model inside of a model."""
    layers = keras.layers
    job, branch, amount = inputs(keras)
    words = layers.StringLookup(mask_token="none of these")
    words.adapt(table()["job"].to_numpy(object))
    coded = layers.IntegerLookup(mask_token=77, output_mode="one_hot")
    coded.adapt(table()["branch"].to_numpy())
    inside = keras.Input((1,), name="text", dtype="string")
    inner = keras.Model(inside, layers.Flatten()(layers.Embedding(5, 2)(words(inside))), name="inner")
    hidden = layers.Dense(4, activation="relu")(layers.Concatenate()([inner(job), coded(branch), amount]))
    return keras.Model([job, branch, amount], layers.Dense(1)(hidden))


MODELS = {"given": given, "adapted": adapted}


def own(model: Any, frame: Any) -> Any:
    asked = [
        frame[["job"]].to_numpy(object), frame[["branch"]].to_numpy(np.int64), frame[["amount"]].to_numpy(np.float32),
    ]  # fmt: skip
    return np.asarray(model(asked, training=False), np.float64)[:, 0]


def build(name: str) -> Any:
    import keras

    keras.utils.set_random_seed(4)
    return MODELS[name](keras)


if __name__ == "__main__":
    FILES.mkdir(exist_ok=True)
    for name in MODELS:
        made = build(name)
        made.save(FILES / f"lookups_{name}.keras")
        (FILES / f"lookups_{name}.json").write_text(json.dumps(own(made, table()).tolist()) + "\n")
