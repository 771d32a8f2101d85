"""The container of a .gig file: a zip of one JSON document and numbered .npy arrays, nothing compressed, no pickle.

    gigrad.json      {"format": "gigrad", "version": 2, ...}
    arrays/0.npy     little-endian float64, int32, int64, uint32 or bool, C order
    arrays/1.npy     ...

Reading treats the file as hostile. Members are not compressed, so that declared sizes can be checked against the size
of the file before anything is allocated. No member is ever written to the disk. Anything invalid is a
CorruptModelError.
"""

from __future__ import annotations

import io
import json
import re
import struct
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from .._io.durable import replacing
from ..errors import CorruptModelError, InputError

VERSION = 2
"""Version 1 had no places beside thresholds, and its credits followed definition 1."""
MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""By version: a function that upgrades a document to the next version. Files since version 2 stay readable: whoever
raises VERSION adds a step here, and the golden corpus (tests/golden) tests it."""
_DOCUMENT = "gigrad.json"
_MOST_TEXT = 64 * 2**20
_DTYPES = {"<f8": np.float64, "<i4": np.int32, "<i8": np.int64, "<u4": np.uint32, "|b1": np.bool_}
_HEADER = re.compile(rb"\{'descr': '([<|][a-z]\d)', 'fortran_order': False, 'shape': \(([\d, ]*)\), \} *\n")
# Exceptions of zipfile for files that are not, or no longer, valid zips
_ZIP_ERRORS = (
    zipfile.BadZipFile, struct.error, EOFError, OSError, ValueError, RuntimeError, NotImplementedError, OverflowError,
    KeyError,
)  # fmt: skip


def write(path: Path, document: dict[str, Any], arrays: Sequence[NDArray[Any]]) -> None:
    """Write the file atomically; the same content gives the same bytes."""
    with replacing(path) as aside, open(aside, "wb") as file:
        _write(file, document, arrays)


def to_bytes(document: dict[str, Any], arrays: Sequence[NDArray[Any]]) -> bytes:
    """The content of the file that `write` would write."""
    buffer = io.BytesIO()
    _write(buffer, document, arrays)
    return buffer.getvalue()


def read(source: str | Path | bytes) -> tuple[dict[str, Any], list[NDArray[Any]]]:
    """The document and the arrays of a file, or of its content as bytes; arrays are read-only."""
    with _opened(source) as file:
        try:
            members = _members(file)
        except _ZIP_ERRORS as error:
            if isinstance(error, CorruptModelError):
                raise
            raise CorruptModelError(f"This is not a whole .gig file: {error}.") from None
    return _document(members.pop(_DOCUMENT)), [_array(members[name], name) for name in _array_names(len(members))]


def _opened(source: str | Path | bytes) -> BinaryIO:
    """A file or bytes, open for reading."""
    if isinstance(source, bytes):
        return io.BytesIO(source)
    try:
        return Path(source).open("rb")
    except OSError as error:
        raise InputError(f"{source!s} cannot be read: {(error.strerror or str(error)).lower()}.") from None


def _write(file: BinaryIO, document: dict[str, Any], arrays: Sequence[NDArray[Any]]) -> None:
    """Write a document and its arrays as a zip whose bytes depend on them alone."""
    text = json.dumps({"format": "gigrad", "version": VERSION, **document}, allow_nan=False, ensure_ascii=False)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        # A fixed date: the bytes must depend on the content alone.
        archive.writestr(zipfile.ZipInfo(_DOCUMENT), text.encode())
        for name, array in zip(_array_names(len(arrays)), arrays, strict=True):
            archive.writestr(zipfile.ZipInfo(name), _npy(array))


def _array_names(count: int) -> list[str]:
    return [f"arrays/{i}.npy" for i in range(count)]


def _npy(array: NDArray[Any]) -> bytes:
    """An array as an .npy file, little-endian."""
    little = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
    if little.dtype.str not in _DTYPES:
        raise InputError(f"A .gig file holds arrays of {', '.join(_DTYPES)}; got one of dtype {array.dtype}.")
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, little, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def _members(file: BinaryIO) -> dict[str, bytes]:
    """Every member's bytes, after checking that all declared sizes fit into the file."""
    size = file.seek(0, io.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        infos = archive.infolist()
        expected = {_DOCUMENT, *_array_names(len(infos) - 1)}
        if len(infos) != len(expected) or {i.filename for i in infos} != expected:
            _corrupt(f"a .gig file holds {_DOCUMENT} and arrays/0.npy, arrays/1.npy ... and nothing else")
        if any(i.compress_type != zipfile.ZIP_STORED or i.flag_bits & 0x1 for i in infos):
            _corrupt("its members must be stored, neither compressed nor encrypted")
        if sum(i.file_size for i in infos) > size or any(i.file_size != i.compress_size for i in infos):
            _corrupt(f"its members claim to be larger than the whole file, {size} bytes")
        if archive.getinfo(_DOCUMENT).file_size > _MOST_TEXT:
            _corrupt(f"{_DOCUMENT} must be under {_MOST_TEXT // 2**20} MiB")
        return {i.filename: archive.read(i) for i in infos}


def _document(data: bytes) -> dict[str, Any]:
    """The JSON of a file, of a version that this release reads."""
    try:
        document: dict[str, Any] = json.loads(data, parse_constant=lambda word: _corrupt(f"{word} is not a number"))
    except (ValueError, RecursionError) as error:
        if isinstance(error, CorruptModelError):
            raise
        _corrupt(f"{_DOCUMENT} is not JSON ({error})")
    if type(document) is not dict or document.get("format") != "gigrad":
        _corrupt(f'{_DOCUMENT} does not say "format": "gigrad"')
    version = document.get("version")
    if type(version) is not int or version < 1:
        _corrupt(f"its format version must be a positive whole number, not {version!r}")
    if version == 1:
        raise CorruptModelError(
            f"This file has format version {version}, whose trees have no places of splits: it explains under "
            "definition 1, which this gigrad does not compute. Save it again from the model, with "
            "gigrad.Explainer(model, reference).save(path) or the command gigrad save."
        )
    if version > VERSION:
        raise CorruptModelError(
            f"This file has format version {version} and this gigrad reads up to {VERSION}; install a newer gigrad."
        )
    for step in range(version, VERSION):
        document = MIGRATIONS[step](document)
    return document


def _array(data: bytes, name: str) -> NDArray[Any]:
    """An array from an .npy file, read without NumPy's own header parser, which evaluates text."""
    if data[:8] != b"\x93NUMPY\x01\x00" or len(data) < 10:
        _corrupt(f"{name} is not an .npy file of version 1.0")
    begin = 10 + int.from_bytes(data[8:10], "little")
    found = _HEADER.fullmatch(data[10:begin])
    if not found or found[1].decode() not in _DTYPES:
        _corrupt(f"{name} must be a C-ordered array of {', '.join(_DTYPES)}")
    parts = [p.strip() for p in found[2].split(b",") if p.strip()]
    if len(parts) > 2 or any(not p.isdigit() or len(p) > 18 for p in parts):
        _corrupt(f"{name} must have at most two dimensions")
    shape = tuple(int(p) for p in parts)
    dtype = np.dtype(found[1].decode())
    count = 1
    for length in shape:
        count *= length
    if count * dtype.itemsize != len(data) - begin:
        _corrupt(f"{name} declares the shape {shape} and has {len(data) - begin} bytes of numbers")
    if dtype.kind == "b" and max(data[begin:], default=0) > 1:
        _corrupt(f"{name} must hold true and false only")
    array: NDArray[Any] = np.empty(shape, _DTYPES[dtype.str])  # aligned, in the machine's own byte order
    if count:
        array[...] = np.frombuffer(data, dtype, count, begin).reshape(shape)
    array.setflags(write=False)
    return array


def _corrupt(what: str) -> NoReturn:
    raise CorruptModelError(f"This .gig file is damaged: {what}.")
