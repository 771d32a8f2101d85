"""`.keras` files, read without Keras: a zip of the configuration in JSON and the weights in HDF5.

A hostile file may contain HDF5 links to other files, arrays that decompress to more than the memory, or layers that run
code. All of these are refused: a file holds plain arrays, no larger than itself.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..._common.optional import require
from ...errors import CorruptModelError, UnsupportedModelError
from ...graph import Array, Graph
from ...importers.keras import read_network
from ...importers.keras.values import Weights

_CONFIG, _WEIGHTS = "config.json", "model.weights.h5"
_WORDS = "/vocabulary.txt"  # of a lookup that was adapted: assets/layers/string_lookup/vocabulary.txt
_LARGEST = {_CONFIG: 1 << 26, _WEIGHTS: 1 << 33}


def load_keras(path: Path) -> Graph:
    """The graph of the model in a `.keras` file. It has no witness, since Keras is not used."""
    members = _members(path)
    try:
        content = json.loads(members[_CONFIG])
        kind, config = str(content["class_name"]), content["config"]
        module = str(content.get("module"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptModelError(
            f"{path} must hold the configuration of a Keras model; it does not ({error})."
        ) from None
    if (
        kind not in ("Sequential", "Functional")
        or module.split(".")[0] != "keras"
        or content.get("registered_name") not in (None, kind)
    ):
        raise UnsupportedModelError(
            f"{path} holds a {module}.{kind}; Sequential and functional Keras models are read. Build it as "
            "keras.Model(inputs, outputs) and save it again."
        )
    weights = _weights(path, members, config)
    built = content.get("build_config") or {}
    return read_network(
        kind, {**config, "build_input_shape": config.get("build_input_shape") or built.get("input_shape")}, weights
    ).graph


def _members(path: Path) -> dict[str, bytes]:
    """The members of a .keras zip that are needed, unless they claim to be larger than a model can be."""
    try:
        with zipfile.ZipFile(path) as archive:
            found = {name: archive.getinfo(name) for name in _LARGEST}
            for name, info in found.items():
                if info.file_size > min(_LARGEST[name], 1000 * (path.stat().st_size + 1000)):
                    raise CorruptModelError(f"{path} must not hold a {name} of {info.file_size} bytes.")
            words = {info.filename: info for info in archive.infolist() if info.filename.endswith(_WORDS)}
            if sum(info.file_size for info in words.values()) > _LARGEST[_CONFIG]:
                raise CorruptModelError(f"{path} must not hold vocabularies of more than {_LARGEST[_CONFIG]} bytes.")
            return {name: _bounded(archive, info, path) for name, info in (found | words).items()}
    except KeyError as error:
        raise CorruptModelError(
            f"{path} must be a zip with {_CONFIG} and {_WEIGHTS}, as model.save('net.keras') of Keras 3 writes; "
            f"{error.args[0]}."
        ) from None
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError, EOFError, ValueError) as error:
        if isinstance(error, CorruptModelError):
            raise
        raise CorruptModelError(f"{path} must be a zip, as Keras 3 writes; it cannot be read ({error}).") from None


def _bounded(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> bytes:
    """The bytes of a member of the zip, at most as many as it declares."""
    with archive.open(info) as member:
        data = member.read(info.file_size + 1)
    if len(data) != info.file_size:
        raise CorruptModelError(f"{path} says that its {info.filename} has {info.file_size} bytes; it has not.")
    return data


# ---------------------------------------------------------------- weights


def _weights(path: Path, members: Mapping[str, bytes], config: Mapping[str, Any]) -> Weights:
    """The weights in the HDF5 member of the zip, by layer."""
    h5py = require("h5py", "keras")
    data = members[_WEIGHTS]
    try:
        with h5py.File(io.BytesIO(data), "r") as file:
            return _of_model(file, config, _Reader(h5py, len(data)), members, "assets")
    except (OSError, LookupError, ArithmeticError, ValueError, TypeError, AttributeError, RuntimeError) as error:
        if isinstance(error, CorruptModelError):
            raise
        raise CorruptModelError(f"The weights in {path} cannot be read ({type(error).__name__}: {error}).") from None


class _Reader:
    """Groups and arrays of an HDF5 file, through plain links only."""

    def __init__(self, h5py: Any, size: int) -> None:
        self._h5py, self._left = h5py, size

    def get(self, group: Any, name: str) -> Any:
        """A member of a group, or None; links to elsewhere are refused."""
        link = group.get(name, getlink=True) if name in set(group) else None
        if link is None:
            return None
        if not isinstance(link, self._h5py.HardLink):
            raise CorruptModelError(f"The weights of a Keras model must be in its file; {name!r} links elsewhere.")
        return group[name]

    def array(self, data: Any) -> Array:
        """A dataset as float64; all together may not be larger than the file's member."""
        if not isinstance(data, self._h5py.Dataset) or data.is_virtual or data.external or data.dtype.kind not in "fiu":
            raise CorruptModelError("The weights of a Keras model must be plain arrays of numbers in its file.")
        self._left -= data.nbytes
        if self._left < 0:
            raise CorruptModelError("The weights of a Keras model must not decompress to more than the file's size.")
        return np.asarray(data[()], np.float64)


def _of_model(
    group: Any, config: Mapping[str, Any], reader: _Reader, members: Mapping[str, bytes], folder: str
) -> Weights:
    """The weights of a model's layers, which Keras names by their class, numbered in the order of the layers."""
    layers: dict[str, list[Array]] = {}
    models: dict[str, Weights] = {}
    words: dict[str, list[Any]] = {}
    used: Counter[str] = Counter()
    inside = reader.get(group, "layers")
    for layer in config["layers"]:
        kind = _snake(str(layer["class_name"]))
        name = str(layer["config"]["name"])
        place = kind if not used[kind] else f"{kind}_{used[kind]}"
        used[kind] += 1
        asset = f"{folder}/layers/{place}"
        if asset + _WORDS in members:
            words[name] = _vocabulary(members[asset + _WORDS], kind, name)
        found = None if inside is None else reader.get(inside, place)
        if found is None:
            continue  # a layer without variables; one that needs some raises when it is built
        variables = reader.get(found, "vars")
        if variables is not None and str(variables.attrs.get("name", name)) != name:
            raise CorruptModelError(
                f"The weights of a Keras model must be in the order of its layers; those of {name!r} are said to be "
                f"of {variables.attrs['name']!r}."
            )
        if "layers" in layer["config"]:
            models[name] = _of_model(found, layer["config"], reader, members, asset)
        elif variables is not None:
            keys = sorted(variables.keys(), key=int)
            layers[name] = [reader.array(reader.get(variables, key)) for key in keys]
    return Weights(layers, models, words)


def _vocabulary(data: bytes, kind: str, name: str) -> list[Any]:
    """The labels of a lookup, one a line."""
    try:
        lines = data.decode("utf-8").split("\n")
        return [int(line) for line in lines] if kind == "integer_lookup" else list(lines)
    except ValueError:
        what = "whole numbers" if kind == "integer_lookup" else "text in UTF-8"
        raise CorruptModelError(f"The vocabulary of the layer {name!r} must be {what}, one a line.") from None


def _snake(name: str) -> str:
    """`BatchNormalization` -> `batch_normalization`, as Keras does."""
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", re.sub(r"\W+", "", name))
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()
