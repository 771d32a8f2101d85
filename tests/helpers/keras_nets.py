"""Small Keras nets on the backend of this process, and the marks of tests that need one backend or another."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import gigrad as gig
from gigrad.graph import Opaque, topological

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras", reason="Keras is not installed, and all models here are of it")
torch = pytest.importorskip("torch", reason="torch is not installed, which the layers written by hand are in")
BACKEND = keras.config.backend()
on_torch = pytest.mark.skipif(BACKEND != "torch", reason="Keras has another backend than torch in this process")
traced = pytest.mark.skipif(BACKEND == "torch", reason="Keras on torch is not traced; another test starts processes")
layers, ops = keras.layers, keras.ops
base_layer: Any = layers.Layer
base_model: Any = keras.Model
RNG = np.random.default_rng(0)
ENDS, STARTS = RNG.normal(size=(2, 4)), RNG.normal(size=(3, 4))


def net(*made: Any, **options: Any) -> Any:
    """These layers after an input of four columns."""
    return keras.Sequential([keras.Input((4,), **options), *made])


def functions(model: Any) -> list[str]:
    """The labels of the parts that no nodes are built for, which are called as functions."""
    return [n.label for n in topological(gig.import_model(model).score) if isinstance(n, Opaque)]
