"""Tables on disk in, tables on disk out: the right numbers, bad rows named, clear refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from disk_tables import NAMES, files, graph, read, small_explainer, table, write
from forests import random_columns, random_forest, random_rows
from pyarrow import csv

import gigrad as gig
from gigrad import batch
from gigrad._output import spreadsheet
from gigrad.batch import targets
from gigrad.batch.sources import Source
from gigrad.graph import Graph, Input


@pytest.fixture(scope="module")
def explainer() -> gig.Explainer:
    return small_explainer()


# ------------------------------------------------------------ right


@pytest.mark.parametrize("target", ["out.parquet", "out.csv", "out.arrow", "out"])
@pytest.mark.parametrize("source", ["x.parquet", "x.csv", "x.arrow", "x.ipc", "folder"])
def test_every_format_gives_the_credits_of_a_plain_call(
    source: str, target: str, explainer: gig.Explainer, tmp_path: Path
) -> None:
    content = table(230)
    summary = batch.run(
        explainer, write(tmp_path / source, content), tmp_path / target, id_cols=["id", "note"], batch_rows=64
    )
    assert (summary.rows, summary.written, summary.rejected, summary.resumed) == (230, 230, 0, 0)
    found, expected = read(tmp_path / target), explainer(content.select(list(NAMES)))
    assert found.column_names == [
        "id", "note", "base_value", "prediction", "gap", "error", *(f"credit_{n}" for n in NAMES),
    ]  # fmt: skip
    assert found["id"].to_pylist() == content["id"].to_pylist()
    assert found["note"].to_pylist() == content["note"].to_pylist()
    credits = np.column_stack([found[f"credit_{n}"].to_numpy() for n in NAMES])
    assert np.array_equal(credits, expected.values)
    assert np.array_equal(found["prediction"].to_numpy(), expected.predictions)
    assert np.array_equal(found["gap"].to_numpy(), expected.gap)
    left = {source, target} | ({"out.csv.provenance.json"} if target == "out.csv" else set())
    assert set(files(tmp_path)) == left, "nothing else may be left behind"


def test_several_outputs_have_a_line_each(tmp_path: Path) -> None:
    explainer = gig.Explainer(graph(outputs=3), table(9, seed=1).select(list(NAMES)), n_threads=1)
    content = table(50)
    batch.run(explainer, write(tmp_path / "x.parquet", content), tmp_path / "out.parquet", id_cols=["id"])
    found, expected = pq.read_table(tmp_path / "out.parquet"), explainer(content.select(list(NAMES)))
    assert found["output"].to_pylist() == ["y0", "y1", "y2"] * 50
    assert found["id"].to_pylist() == np.repeat(content["id"].to_pylist(), 3).tolist()
    assert np.array_equal(found["credit_debt"].to_numpy().reshape(50, 3), expected.values[:, 2])
    loaded = gig.Explanation.load(tmp_path / "out.parquet")
    assert np.array_equal(loaded.values, expected.values)


def test_the_result_says_what_it_stands_on(explainer: gig.Explainer, tmp_path: Path) -> None:
    source = write(tmp_path / "x.parquet", table(30))
    for name in ("out.parquet", "out.csv", "out"):
        batch.run(explainer, source, tmp_path / name, id_cols=["id"])
    heads = [
        json.loads(pq.read_schema(tmp_path / "out.parquet").metadata[b"gigrad"]),
        json.loads((tmp_path / "out.csv.provenance.json").read_text()),
        json.loads((tmp_path / "out" / "_gigrad.json").read_text()),
        json.loads(pq.read_schema(tmp_path / "out" / "part-000000.parquet").metadata[b"gigrad"]),
    ]
    for head in heads:
        record = head["provenance"]
        assert record["model"] == explainer.provenance["model"]
        assert record["data"]["files"][0]["name"] == "x.parquet"
        assert len(record["data"]["files"][0]["sha256"]) == 64
    loaded = gig.Explanation.load(tmp_path / "out.parquet")
    assert loaded.ids.tolist() == table(30)["id"].to_pylist()
    assert loaded.provenance["model"] == explainer.provenance["model"]


def test_a_table_without_rows(explainer: gig.Explainer, tmp_path: Path) -> None:
    for source, target in (("x.parquet", "out.parquet"), ("x.csv", "out.csv")):
        summary = batch.run(explainer, write(tmp_path / source, table(0)), tmp_path / target, id_cols=["id"])
        assert summary.rows == 0
        assert read(tmp_path / target).num_rows == 0


def test_models_without_names_are_matched_by_position_or_as_told(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    columns = random_columns(np.random.default_rng(3), 3)
    source = Input(3)
    trees = random_forest(rng, columns, source)
    explainer = gig.Explainer(Graph(columns, source, trees, trees, ("y",)), random_rows(rng, columns, 5), n_threads=1)
    rows = random_rows(rng, columns, 10)
    content = pa.table({"id": range(10), "p": rows[:, 0], "q": rows[:, 1], "r": rows[:, 2]})
    values = explainer(rows).values
    out = batch.explain_batch(explainer, content.to_batches()[0], id_cols=["id"])
    assert out.schema.names[-3:] == [f"credit_{c.name}" for c in columns], "the reference's names"
    assert np.array_equal(out["credit_x1"].to_numpy(), values[:, 1])
    wide = content.append_column("s", content["p"]).to_batches()[0]
    with pytest.raises(gig.InputError, match="by position only, and the table has 4 beside the ids"):
        batch.explain_batch(explainer, wide, id_cols=["id"])
    out = batch.explain_batch(explainer, wide, columns=["s", "q", "r"])
    assert np.array_equal(out["credit_x0"].to_numpy(), values[:, 0])


def test_explain_batch_takes_read_only_batches_and_changes_nothing(explainer: gig.Explainer) -> None:
    content = table(40).combine_chunks().to_batches()[0]
    before = content.to_pydict()
    first = batch.explain_batch(explainer, content, id_cols=["id"])
    assert first.equals(batch.explain_batch(explainer, content, id_cols=["id"]))
    assert content.to_pydict() == before
    assert first.schema == batch.output_schema(explainer, content.schema, id_cols=["id"])
    empty = batch.explain_batch(explainer, content.slice(0, 0), id_cols=["id"])
    assert empty.num_rows == 0
    assert empty.schema == first.schema


# ------------------------------------------------------------ bad rows


def spoiled() -> Any:
    content = table(300)
    cells = {name: content[name].to_pylist() for name in content.column_names}
    cells["age"][7] = float("inf")
    cells["debt"][120] = None
    cells["income"] = [str(v) for v in cells["income"]]
    cells["income"][121] = "twelve"
    cells["income"][299] = ""
    return pa.table(cells)


@pytest.mark.parametrize("source", ["x.csv", "x.parquet"])
def test_bad_rows_are_skipped_or_emptied_and_named(source: str, explainer: gig.Explainer, tmp_path: Path) -> None:
    content = spoiled()
    path = write(tmp_path / source, content)
    good = [i for i in range(300) if i not in (7, 120, 121)]
    kept = content.take(good)
    expected = explainer(
        kept.set_column(5, "income", [[float(v) if v else None for v in kept["income"].to_pylist()]]).select(
            list(NAMES)
        )
    )
    for mode in ("skip", "null"):
        out = tmp_path / f"{mode}.parquet"
        summary = batch.run(explainer, path, out, id_cols=["id"], on_error=mode, batch_rows=50)
        assert (summary.rows, summary.rejected) == (300, 3)
        found = pq.read_table(out)
        assert found["id"].to_pylist() == [f"{i:05d}" for i in (good if mode == "skip" else range(300))]
        rows = found if mode == "skip" else found.take(good)
        assert np.array_equal(rows["credit_income"].to_numpy(), expected.values[:, 1])
        if mode == "null":
            empty = found.take([7, 120, 121]).to_pylist()
            assert all(v is None for line in empty for name, v in line.items() if name != "id")
        rejected = csv.read_csv(tmp_path / f"{mode}.parquet.rejects.csv").to_pylist()
        assert [(r["row"], r["id"]) for r in rejected] == [(7, 7), (120, 120), (121, 121)]
        assert "'age' is infinite" in rejected[0]["reason"]
        assert "'debt' is missing" in rejected[1]["reason"]
        assert "got 'twelve'" in rejected[2]["reason"]


def test_by_default_bad_rows_stop_the_run_before_anything_is_written(explainer: gig.Explainer, tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", spoiled())
    (tmp_path / "out.parquet").write_text("old")
    with pytest.raises(
        gig.InputError, match=r"Row 7 cannot be explained: column 'age' is infinite.*2 more rows are bad"
    ):
        batch.run(explainer, path, tmp_path / "out.parquet", batch_rows=50)
    assert files(tmp_path) == ["out.parquet", "x.csv"]
    assert (tmp_path / "out.parquet").read_text() == "old"


def test_broken_lines_of_a_csv_are_named_by_where_they_stand(explainer: gig.Explainer, tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", table(60).drop_columns(["note"]))
    lines = path.read_text().splitlines()
    broken = {3: "only,three,cells", 25: "1,2,3,4,5,6,7,8", 60: "x"}
    for at, text in broken.items():
        lines.insert(at + 1, text)
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(gig.InputError, match="Row 3 cannot be read: it has 3 cells; the header has 6"):
        batch.run(explainer, path, tmp_path / "out.parquet")
    for rows in (7, 60, 1000):
        out = tmp_path / f"out{rows}.parquet"
        summary = batch.run(explainer, path, out, id_cols=["id"], on_error="null", batch_rows=rows)
        assert (summary.rows, summary.written, summary.rejected) == (63, 60, 3)
        rejected = csv.read_csv(f"{out}.rejects.csv").to_pylist()
        assert [r["row"] for r in rejected] == list(broken)
        assert pq.read_table(out)["id"].to_pylist() == [f"{i:05d}" for i in range(60)]


def test_an_emptied_row_has_a_line_for_each_output_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    explainer = gig.Explainer(graph(outputs=3), table(9, seed=1).select(list(NAMES)), n_threads=1)
    content = table(60)
    ages = content["age"].to_pylist()
    for bad in (0, 31, 32, 59):
        ages[bad] = float("inf")
    path = write(tmp_path / "x.parquet", content.set_column(content.column_names.index("age"), "age", [ages]))
    options: dict[str, Any] = {"id_cols": ["id"], "on_error": "null", "batch_rows": 16}
    summary = batch.run(explainer, path, tmp_path / "whole.parquet", **options)
    assert (summary.rows, summary.written, summary.rejected) == (60, 180, 4)
    found = pq.read_table(tmp_path / "whole.parquet")
    assert found["id"].to_pylist() == [f"{i:05d}" for i in range(60) for _ in range(3)]
    assert found["output"].to_pylist() == ["y0", "y1", "y2"] * 60
    empty = [i for i, v in enumerate(found["credit_age"].to_pylist()) if v is None]
    assert empty == [3 * row + k for row in (0, 31, 32, 59) for k in range(3)]
    loaded = gig.Explanation.load(tmp_path / "whole.parquet")
    assert np.flatnonzero(np.isnan(loaded.values).all(axis=(1, 2))).tolist() == [0, 31, 32, 59]
    # broken off between two pieces, it goes on to the same bytes
    done: list[Any] = []
    real = batch.run.__globals__["_do"]

    def breaks(*arguments: Any) -> None:
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(real(*arguments))

    with monkeypatch.context() as patch:
        patch.setitem(batch.run.__globals__, "_do", breaks)
        with pytest.raises(KeyboardInterrupt):
            batch.run(explainer, path, tmp_path / "again.parquet", **options)
    assert batch.run(explainer, path, tmp_path / "again.parquet", **options).resumed == 48
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()


def test_a_table_of_bad_rows_only(explainer: gig.Explainer, tmp_path: Path) -> None:
    content = table(10)
    path = write(tmp_path / "x.parquet", content.set_column(6, "debt", [[None] * 10]))
    assert batch.run(explainer, path, tmp_path / "a.parquet", on_error="skip").written == 0
    assert batch.run(explainer, path, tmp_path / "b.parquet", on_error="null").written == 10


HEADERS: dict[bytes, list[str] | str] = {
    b"a,b\n1,2\n": ["a", "b"],
    b"\xef\xbb\xbfa,b\r\n1,2\r\n": ["a", "b"],
    b'"a,1","b\n2"\n1,2\n': ["a,1", "b\n2"],
    b'\n\n"a""x",c\n1,2\n': ['a"x', "c"],
    b"a,,c\r1,2,3\r": ["a", "", "c"],
    b"a,b\n\xff,2\n": ["a", "b"],
    b"a,b": "have no header",
    b"\n": "have no header",
    b"": "Empty CSV file",
    b"\xff\xfea\x00,\x00b\x00\n": "invalid UTF8 data in its header. Save it in UTF-8",
    b"a" * 5_000_000: "cannot be read",
    b"x,a\n" * 2_000_000: ["x", "a"],
}


@pytest.mark.parametrize("raw", HEADERS, ids=lambda raw: ascii(raw[:12]))
def test_headers_are_read_as_arrow_reads_them_but_without_its_threads(
    raw: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, expected = tmp_path / "x.csv", HEADERS[raw]
    path.write_bytes(raw)
    if isinstance(expected, list):
        assert csv.open_csv(path).schema.names == expected
    monkeypatch.setattr(csv, "open_csv", None)  # its thread can end the process with an abort when Python exits
    if isinstance(expected, list):
        assert Source.open(path).schema().names == expected
    else:
        with pytest.raises(gig.InputError, match=expected):
            Source.open(path).schema()


# ------------------------------------------------------------ clear refusals


def test_what_does_not_fit_is_said_and_nothing_is_touched(explainer: gig.Explainer, tmp_path: Path) -> None:
    path, out = write(tmp_path / "x.parquet", table(20)), tmp_path / "out.parquet"
    out.write_text("old")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    write(tmp_path / "narrow.parquet", table(5).drop_columns(["debt", "age"]))
    (tmp_path / "no.parquet").write_text("this is no parquet file")
    (tmp_path / "empty.csv").write_text("")
    clash = write(tmp_path / "clash.parquet", table(5).append_column("gap", [[1] * 5]))
    (tmp_path / "empty").mkdir()
    (tmp_path / "x.txt").write_text("x")
    cases: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (gig.InputError, "does not exist", {"source": tmp_path / "none.parquet"}),
        (gig.InputError, "its format", {"source": tmp_path / "x.txt"}),
        (gig.InputError, "no .parquet|has none", {"source": tmp_path / "empty"}),
        (gig.InputError, "columns 'age', 'debt'", {"source": tmp_path / "narrow.parquet"}),
        (gig.InputError, "cannot be read", {"source": tmp_path / "no.parquet"}),
        (gig.InputError, "cannot be read: Empty CSV", {"source": tmp_path / "empty.csv"}),
        (gig.InputError, "id column 'number'", {"id_cols": ["number"]}),
        (gig.InputError, "got 'id' twice", {"id_cols": ["id", "id"]}),
        (gig.InputError, "'gap' has the name of a column", {"source": clash, "id_cols": ["gap"]}),
        (gig.InputError, "5 columns, in its order; got 1", {"columns": ["age"]}),
        (gig.InputError, "on_error must be", {"on_error": "ignore"}),
        (gig.InputError, "batch_rows must be", {"batch_rows": 0}),
        (gig.InputError, "its format", {"sink": tmp_path / "out.xlsx"}),
        (gig.OutputError, "does not exist", {"sink": tmp_path / "none" / "out.parquet"}),
        (gig.OutputError, "which would be lost", {"sink": tmp_path / "mine"}),
        (gig.OutputError, "cannot be written", {"sink": "/proc/out.parquet"}),
    ]  # fmt: skip
    for kind, message, options in cases:
        with pytest.raises(kind, match=message):
            batch.run(explainer, **{"source": path, "sink": out, **options})
    assert out.read_text() == "old"
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"
    assert not [name for name in files(tmp_path) if "unfinished" in name]


def test_formulas_are_made_harmless_in_csv_and_kept_in_parquet(explainer: gig.Explainer, tmp_path: Path) -> None:
    hostile = ["=HYPERLINK(1)", "+cmd|' /C calc'!A0", "@SUM(A1)", "-2+3", "\tx", "-12.5", "+3", 'a"b,\nc', "", "plain"]
    content = table(10).set_column(1, "id", [hostile])
    path = write(tmp_path / "x.parquet", content)
    for name in ("out.csv", "out.parquet"):
        batch.run(explainer, path, tmp_path / name, id_cols=["id"])
    assert pq.read_table(tmp_path / "out.parquet")["id"].to_pylist() == hostile
    assert read(tmp_path / "out.csv")["id"].to_pylist() == ["'" + h if i < 5 else h for i, h in enumerate(hostile)]


@pytest.mark.parametrize(
    "text", ["=1", "-1", "-1\n", "+.5e-3", "-inf", "-1_0", "@a", "\ta", "\ra", "1-", "", "-", "a=1", "+é"]
)
def test_texts_and_columns_are_made_harmless_by_one_rule(text: str) -> None:
    assert targets.harmless(pa.array([text])).to_pylist() == [spreadsheet.harmless(text)]
    assert spreadsheet.harmless(text) in (text, f"'{text}")
