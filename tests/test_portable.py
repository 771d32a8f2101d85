"""The portable explainer: the same answers without the model's library, and no harm from hostile files."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forests import graph_of, random_columns, random_forest, random_rows

import gigrad as gig
from gigrad import portable
from gigrad.graph import (
    Affine,
    Column,
    Concat,
    Elementwise,
    Fill,
    Graph,
    Input,
    IsMissing,
    LogSoftmax,
    Lookup,
    Node,
    Opaque,
    PiecewiseLinear,
    PiecewisePolynomial,
    Product,
    Select,
    Softmax,
    Sum,
    topological,
)
from gigrad.portable.nodes import NODES


def tree_explainer(number: int, outputs: int = 1, rows: int = 7, **options: Any) -> tuple[gig.Explainer, Any]:
    rng = np.random.default_rng(number)
    columns = random_columns(rng, 5)
    source = Input(5)
    margin = random_forest(rng, columns, source, outputs=outputs)
    score = Softmax(margin) if outputs > 1 else Elementwise(margin, "sigmoid")
    graph = graph_of(columns, source, score, margin)
    explainer = gig.Explainer(graph, random_rows(rng, columns, rows), weights=rng.random(rows), **options)
    return explainer, random_rows(rng, columns, 20)


def every_node() -> Graph:
    """A graph that uses every kind of node that can be saved."""
    rng = np.random.default_rng(0)
    columns = (
        Column("a", missing=False),
        Column("b", missing_value=-999.0),
        Column("c", "category", ("x", "y", None, 3, 2.5, True, float("inf")), unknown="missing"),
    )
    source = Input(3)
    numbers = Fill(Select(source, (1, 0, 1)), np.array([0.5, 1.0, -1.0]))
    looked = Lookup(source, 2, rng.normal(size=(7, 3)), rng.normal(size=3), rng.normal(size=3))
    both = Product(Sum((numbers, looked, IsMissing(numbers))), Affine(looked, rng.normal(size=(1, 3)), np.ones(1)))
    trees = random_forest(rng, (columns[0], columns[0], columns[2]), source, outputs=3)
    curves = PiecewisePolynomial(Select(numbers, (0,)), np.array([-1.0, 1.0]), rng.normal(size=(12, 2)))
    wide = Concat(
        (Elementwise(both, "leaky_relu", 0.1), Softmax(trees), LogSoftmax(trees), curves, _kernel_machine(looked))
    )
    score = PiecewiseLinear(
        Affine(wide, rng.normal(size=(2, wide.width)), np.zeros(2)), np.array([-9.0, 0, 9]), np.arange(3.0)
    )
    return Graph(
        columns, source, score, wide, ("no", "yes"), tuple(f"m{i}" for i in range(wide.width)), label="all of it"
    )


def _kernel_machine(source: Node) -> Node:
    from gigrad.graph import KernelMachine
    from gigrad.graph.kernel_machine import Factor

    rng = np.random.default_rng(1)
    factors = (Factor("linear", np.ones(source.width), 0.5), Factor("polynomial", np.ones(source.width), 1.0, 2.0))
    return KernelMachine(source, rng.normal(size=(4, source.width)), rng.normal(size=(2, 4)), np.zeros(2), factors)


def same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and (
        np.array_equal(a, b, equal_nan=True) if isinstance(a, np.ndarray) else a == b or a != a
    )


# ------------------------------------------------------------ the same before and after


@pytest.mark.parametrize("outputs", [1, 3])
def test_credits_are_the_same_to_the_bit(outputs: int, tmp_path: Path) -> None:
    explainer, X = tree_explainer(outputs, outputs, output="margin", tol=1e-7, seed=3)
    explainer.save(tmp_path / "x.gig")
    loaded = gig.Explainer.load(tmp_path / "x.gig")
    a, b = explainer(X), loaded(X)
    for name in ("values", "base_values", "predictions", "gap", "error"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    assert a.feature_names == b.feature_names
    assert a.output_names == b.output_names
    assert loaded.settings == explainer.settings


def test_saving_what_was_loaded_gives_the_same_bytes(tmp_path: Path) -> None:
    explainer, _ = tree_explainer(5, output="margin")
    once = portable.to_bytes(portable.from_bytes(portable.to_bytes(explainer)))
    assert portable.to_bytes(portable.from_bytes(once)) == once


def test_every_kind_of_node_comes_back_as_it_was(tmp_path: Path) -> None:
    graph = every_node()
    graph.save(tmp_path / "g.gig")
    loaded = Graph.load(tmp_path / "g.gig")
    before, after = topological(graph.score, graph.margin), topological(loaded.score, loaded.margin)
    assert {type(n).__name__ for n in before} == set(NODES), "a new kind of node must be added to every_node"
    assert [type(n) for n in before] == [type(n) for n in after]
    for old, new in zip(before, after, strict=True):
        for field in fields(old):
            a, b = getattr(old, field.name), getattr(new, field.name)
            if isinstance(a, Node) or (isinstance(a, tuple) and a and not isinstance(a[0], int)):
                continue  # parents and factors: seen by the values below
            assert same(a, b), (type(old), field.name)
    assert all(
        same(a, b)
        for c, d in zip(graph.columns, loaded.columns, strict=True)
        for a, b in zip(c.labels or (), d.labels or (), strict=True)
    )
    assert loaded.columns[:2] == graph.columns[:2]
    rows = np.array([[0.0, 1, 2], [1, -999, -1], [2, np.nan, np.nan]])
    assert np.array_equal(graph.predict(rows), loaded.predict(rows))
    assert np.array_equal(graph.predict(rows, "margin"), loaded.predict(rows, "margin"))


def test_an_explainer_works_where_only_numpy_is(tmp_path: Path) -> None:
    """The model's library, pandas, pyarrow and scipy may all be absent."""
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    model = xgboost.XGBClassifier(n_estimators=5, max_depth=3, n_jobs=1).fit(X, X[:, 0] + X[:, 1] ** 2 > 0.5)
    explainer = gig.Explainer(model, X[:50], output="margin")
    explainer.save(tmp_path / "x.gig")
    code = """
import sys
for name in ("xgboost", "sklearn", "torch", "pandas", "scipy", "pyarrow"):
    sys.modules[name] = None
import numpy as np, gigrad
e = gigrad.Explainer.load(sys.argv[1])(np.load(sys.argv[2]))
np.save(sys.argv[3], e.values)
assert "without the model's own library" in e.provenance["loaded"]["predictions"]
assert np.abs(e.gap).max() < 1e-12
"""
    np.save(tmp_path / "X.npy", X)
    names = [str(tmp_path / n) for n in ("x.gig", "X.npy", "out.npy")]
    subprocess.run([sys.executable, "-c", code, *names], check=True)
    assert np.array_equal(np.load(names[2]), explainer(X).values)


def test_columns_are_matched_by_name_after_loading(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    graph = tree_explainer(2)[0].scorer.graph.with_columns(["v", "w", "x", "y", "z"])
    rows = random_rows(np.random.default_rng(0), graph.columns, 6)
    explainer = gig.Explainer(graph, rows, output="margin")
    explainer.save(tmp_path / "x.gig")
    frame = pd.DataFrame(rows, columns=list(graph.feature_names))
    shuffled = gig.Explainer.load(tmp_path / "x.gig")(frame[["z", "y", "x", "w", "v"]])
    assert np.array_equal(shuffled.values, explainer(frame).values)


def test_a_python_function_cannot_be_saved(tmp_path: Path) -> None:
    source = Input(2)
    net = Opaque(source, 1, lambda x: x[:, :1], lambda x, c: np.zeros_like(x), label="torch module Net")
    graph = Graph((Column("a"), Column("b")), source, net, net, ("y",))
    with pytest.raises(gig.UnsupportedModelError, match=r"'torch module Net' cannot be saved.*never code"):
        graph.save(tmp_path / "x.gig")
    assert not list(tmp_path.iterdir())


def test_labels_that_are_no_plain_values_are_refused(tmp_path: Path) -> None:
    source = Input(1)
    graph = Graph((Column("a", "category", (("x", 1j),)),), source, source, source, ("y",))
    with pytest.raises(gig.UnsupportedModelError, match="1j"):
        graph.save(tmp_path / "x.gig")


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    explainer, _ = tree_explainer(1, output="margin")
    with pytest.raises(gig.InputError, match=r"must end in \.gig"):
        explainer.save(tmp_path / "x.pkl")
    with pytest.raises(gig.OutputError, match="the folder does not exist"):
        explainer.save(tmp_path / "none" / "x.gig")
    with pytest.raises(gig.InputError, match=r"x\.gig cannot be read: no such file"):
        gig.Explainer.load(tmp_path / "x.gig")
    every_node().save(tmp_path / "g.gig")
    with pytest.raises(gig.InputError, match="no reference population"):
        gig.Explainer.load(tmp_path / "g.gig")


# ------------------------------------------------------------ hostile files


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
    "time bomb": lambda d: (chain(d, product, 100), d.update(output_names=["a", "b"])),
    "zero-width bomb": lambda d: (chain(d, nothing, 1), chain(d, doubled, 60)),
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


WORDS = [None, True, 0, 1, -1, 2**31, 2**70, 0.5, 1e308, "", "nan", "Sum", [], [[]], {}, {"node": 0}, {"array": 1}]


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
