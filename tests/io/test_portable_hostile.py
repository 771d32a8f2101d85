"""Portable files that are damaged or made to do harm: each is refused in one sentence, or is still an explainer."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forests import random_columns, random_rows, tree_explainer
from unchecked import unchecked

import gigrad as gig
from gigrad import portable


def rebuilt(data: bytes, change: Callable[[dict[str, bytes]], Any], compression: int = zipfile.ZIP_STORED) -> bytes:
    """The file with some of its members changed."""
    with zipfile.ZipFile(io.BytesIO(data)) as old:
        members = {i.filename: old.read(i) for i in old.infolist()}
    change(members)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as new:
        for name, content in members.items():
            new.writestr(name, content)
    return out.getvalue()


def with_document(data: bytes, change: Callable[[dict[str, Any]], Any]) -> bytes:
    def edit(members: dict[str, bytes]) -> None:
        document = json.loads(members["gigrad.json"])
        change(document)
        members["gigrad.json"] = json.dumps(document).encode()

    return rebuilt(data, edit)


@pytest.fixture(scope="module")
def good() -> bytes:
    return portable.to_bytes(tree_explainer(9, output="margin")[0])


def npy(dtype: str, shape: str, body: bytes) -> bytes:
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + body


def first_array(members: dict[str, bytes], content: bytes) -> None:
    members["arrays/0.npy"] = content


HOSTILE_MEMBERS: dict[str, Callable[[dict[str, bytes]], Any]] = {
    "path traversal": lambda m: m.update({"../../evil.npy": b"x"}),
    "absolute path": lambda m: m.update({"/etc/passwd": b"x"}),
    "missing document": lambda m: m.pop("gigrad.json"),
    "missing array": lambda m: m.pop("arrays/0.npy"),
    "no JSON": lambda m: m.update({"gigrad.json": b"{"}),
    "not UTF-8": lambda m: m.update({"gigrad.json": b"\xff\xff"}),
    "deep JSON": lambda m: m.update({"gigrad.json": b"[" * 100_000}),
    "huge number": lambda m: m.update({"gigrad.json": b"9" * 10_000}),
    "NaN": lambda m: m.update({"gigrad.json": b'{"format": NaN}'}),
    "list": lambda m: m.update({"gigrad.json": b"[]"}),
    "pickled array": lambda m: first_array(m, npy("|O8", "(1,)", b"")),
    "huge shape": lambda m: first_array(m, npy("<f8", "(999999999999, 9)", b"12345678")),
    "overflowing shape": lambda m: first_array(m, npy("<f8", "(4294967296, 4294967296)", b"")),
    "shape of code": lambda m: first_array(m, npy("<f8", "(__import__('os'),)", b"")),
    "many dimensions": lambda m: first_array(m, npy("<f8", "(1, 1, 1, 1, 1, 1)", bytes(8))),
    "empty array file": lambda m: first_array(m, b""),
    "wrong dtype": lambda m: first_array(m, npy("<f8", "(1,)", bytes(8))),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE_MEMBERS)
def test_hostile_members_are_refused(name: str, good: bytes) -> None:
    with pytest.raises(gig.CorruptModelError):
        portable.from_bytes(rebuilt(good, HOSTILE_MEMBERS[name]))


def chain(document: dict[str, Any], make: Callable[[int], dict[str, Any]], length: int) -> None:
    """Append nodes, each made of the number of the one before it, and make the last one the output."""
    first = len(document["nodes"])
    document["nodes"] += [make(first + i - 1) for i in range(length)]
    document["output"] = first + length - 1


def product(i: int) -> dict[str, Any]:
    return {"type": "Product", "left": {"node": i}, "right": {"node": i}}


def doubled(i: int) -> dict[str, Any]:
    return {"type": "Concat", "sources": [{"node": i}, {"node": i}]}


def nothing(i: int) -> dict[str, Any]:
    return {"type": "Select", "source": {"node": i}, "columns": []}


def beyond(i: int) -> dict[str, Any]:
    return {"type": "Select", "source": {"node": i}, "columns": [10**9]}


def lookup(document: dict[str, Any]) -> dict[str, Any]:
    rows, row = document["reference"], document["weights"]
    return {"type": "Lookup", "source": {"node": 0}, "column": 99, "table": rows, "unknown": row, "missing": row}


HOSTILE_DOCUMENTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "newer version": lambda d: d.update(version=99),
    "no version": lambda d: d.update(version="1"),
    "cycle": lambda d: d["nodes"][1].update(source={"node": 1}),
    "forward reference": lambda d: d["nodes"][1].update(source={"node": 2}),
    "negative node": lambda d: d["nodes"][1].update(source={"node": -1}),
    "true for a node": lambda d: d["nodes"][1].update(source={"node": True}),
    "unknown class": lambda d: d["nodes"][0].update(type="Opaque"),
    "builtin class": lambda d: d["nodes"][0].update(type="eval"),
    "extra field": lambda d: d["nodes"][0].update(label="x"),
    "absent field": lambda d: d["nodes"][0].pop("size"),
    "huge input": lambda d: d["nodes"][0].update(size=10**15),
    "input of none": lambda d: d["nodes"][0].update(size=0),
    "text for a number": lambda d: d["nodes"][0].update(size="5"),
    "array out of range": lambda d: d["nodes"][1].update(values={"array": 10**6}),
    "children as thresholds": lambda d: d["nodes"][1].update(left=d["nodes"][1]["threshold"]),
    "swapped arrays": lambda d: d["nodes"][1].update(left=d["nodes"][1]["roots"]),
    "fewer columns": lambda d: d["graph"]["columns"].pop(),
    "column of a list": lambda d: d["graph"]["columns"].__setitem__(0, []),
    "label of a list": lambda d: d["graph"]["columns"][0].update(labels=[["x"]]),
    "kind": lambda d: d["graph"]["columns"][0].update(kind="number?"),
    "names": lambda d: d.update(output_names=["a", "b"]),
    "no nodes": lambda d: d.update(nodes=[]),
    "nodes of null": lambda d: d.update(nodes=None),
    "reference of another shape": lambda d: d.update(reference=d["weights"]),
    "weights of another shape": lambda d: d.update(weights=d["reference"]),
    "tol": lambda d: d["settings"].update(tol=0),
    "provenance": lambda d: d.update(provenance=[]),
    "explainer of no kind": lambda d: d.pop("graph"),
    "column out of range": lambda d: chain(d, beyond, 1),
    "lookup out of range": lambda d: chain(d, lambda i: lookup(d), 1),
    "nothing added up": lambda d: chain(d, lambda i: {"type": "Sum", "sources": []}, 1),
    "widths that do not fit": lambda d: chain(d, lambda i: {"type": "Sum", "sources": [{"node": 0}, {"node": 1}]}, 1),
    "width bomb": lambda d: chain(d, doubled, 60),
    "time bomb": lambda d: [unchecked(chain)(d, product, 100), d.update(output_names=["a", "b"])],
    "zero-width bomb": lambda d: [unchecked(chain)(d, *more) for more in ((nothing, 1), (doubled, 60))],
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE_DOCUMENTS)
def test_hostile_documents_are_refused(name: str, good: bytes) -> None:
    with pytest.raises(gig.CorruptModelError):
        portable.from_bytes(with_document(good, HOSTILE_DOCUMENTS[name]))


def test_a_compressed_file_is_refused_because_it_could_grow(good: bytes) -> None:
    bomb = rebuilt(good, lambda m: m.update({"gigrad.json": b" " * 10**8}), zipfile.ZIP_DEFLATED)
    assert len(bomb) < 10**6
    with pytest.raises(gig.CorruptModelError, match="neither compressed nor encrypted"):
        portable.from_bytes(bomb)


def test_a_deep_chain_of_steps_is_read(good: bytes) -> None:
    """Depth alone is no offence, and nothing recurses over it."""
    step = {"type": "Elementwise", "name": "tanh", "parameter": 0}
    deep = with_document(good, lambda d: chain(d, lambda i: {**step, "source": {"node": i}}, 5000))
    assert portable.from_bytes(deep).scorer.node.width == 1


def test_not_a_zip_at_all(tmp_path: Path) -> None:
    for data in (b"", b"hello", b"\x80\x04K\x01.", bytes(1000)):
        (tmp_path / "x.gig").write_bytes(data)
        with pytest.raises(gig.CorruptModelError, match=r"not a whole \.gig file"):
            gig.Explainer.load(tmp_path / "x.gig")


# ------------------------------------------------------------ fuzz


def mutated(rng: np.random.Generator, data: bytes) -> bytes:
    """Truncated, with flipped bits, with a piece overwritten, or with random values put into the JSON."""
    kind = rng.integers(4)
    if kind == 0:
        return data[: int(rng.integers(len(data)))]
    if kind == 3:
        return with_document(data, lambda d: scramble(rng, d))
    out = bytearray(data)
    if kind == 1:
        for _ in range(int(rng.integers(1, 9))):
            out[int(rng.integers(len(out)))] ^= 1 << int(rng.integers(8))
    else:
        at, size = int(rng.integers(len(out))), int(rng.integers(1, 64))
        out[at : at + size] = rng.bytes(size)
    return bytes(out)


WORDS: list[Any] = [
    None,
    True,
    0,
    1,
    -1,
    2**31,
    2**70,
    0.5,
    1e308,
    "",
    "nan",
    "Sum",
    [],
    [[]],
    {},
    {"node": 0},
    {"array": 1},
]


def scramble(rng: np.random.Generator, document: Any) -> None:
    """Replace one value, anywhere, by another; or swap, drop or double one."""
    while True:
        keys = list(document) if isinstance(document, dict) else list(range(len(document)))
        key = keys[int(rng.integers(len(keys)))]
        inside = document[key]
        if isinstance(inside, (dict, list)) and inside and rng.random() < 0.9:
            document = inside
            continue
        if rng.random() < 0.2:
            del document[key]
        else:
            document[key] = WORDS[int(rng.integers(len(WORDS)))]
        return


@pytest.mark.parametrize("batch", range(10))
def test_ten_thousand_damaged_files_do_no_harm(batch: int, good: bytes) -> None:
    """Each is refused with our own error, or it is still an explainer whose answers have the right shape."""
    rng = np.random.default_rng(batch)
    rows = random_rows(rng, random_columns(np.random.default_rng(9), 5), 3)
    refused = 0
    for _ in range(1000):
        try:
            explainer = portable.from_bytes(mutated(rng, good), n_threads=1)
            assert explainer(np.nan_to_num(rows, nan=0.0)).values.shape[:2] == (3, 5)
        except gig.GigradError:
            refused += 1
    assert refused > 700


@pytest.mark.parametrize("value", [None, 3, "x", []])
@pytest.mark.parametrize(
    "path",
    [
        ("model",), ("output",), ("reference",), ("settings",), ("versions",), ("model", "fingerprint"),
        ("output", "fingerprint"), ("reference", "typical"), ("versions", "gigrad"),
    ],
)  # fmt: skip
def test_a_record_that_nothing_can_be_read_from_is_refused(path: tuple[str, ...], value: Any, good: bytes) -> None:
    """Reasons, reports and runs read the record; a file must not fail there that was taken here."""

    def change(document: Any) -> None:
        inside = document["provenance"]
        for name in path[:-1]:
            inside = inside[name]
        inside[path[-1]] = 3.5 if isinstance(inside[path[-1]], type(value)) else value

    with pytest.raises(gig.CorruptModelError, match=f"its provenance must .*'{path[-1]}'"):
        portable.from_bytes(with_document(good, change), n_threads=1)
