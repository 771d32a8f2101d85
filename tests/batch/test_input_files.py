"""Input files: many of them, each opened once, and damage that must be noticed."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from disk_tables import small_explainer, table, write

import gigrad as gig
from gigrad import batch
from gigrad.batch import sources, workspace


@pytest.fixture(scope="module")
def explainer() -> gig.Explainer:
    return small_explainer()


# ------------------------------------------------------------ many files


@contextmanager
def opens_counted(folder: Path) -> Iterator[Counter[str]]:
    """How often the system has opened each file of a folder, by whichever library."""
    if not sys.platform.startswith("linux"):
        pytest.skip("inotify is Linux's")
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_NONBLOCK)
    assert watch >= 0
    found: Counter[str] = Counter()
    try:
        assert libc.inotify_add_watch(watch, os.fsencode(folder), 0x20) >= 0  # IN_OPEN
        yield found
        data = b""
        with suppress(BlockingIOError):
            while block := os.read(watch, 1 << 16):
                data += block
        while data:
            _, _, _, length = struct.unpack_from("iIII", data)
            found[os.fsdecode(data[16 : 16 + length].rstrip(b"\0"))] += 1
            data = data[16 + length :]
    finally:
        os.close(watch)


@pytest.mark.parametrize("on_error", ["fail", "skip"])
def test_each_of_many_small_files_is_opened_once(
    on_error: Any, explainer: gig.Explainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted, not timed: each file is opened once, and no step looks at all that is waiting."""
    asked = [0]
    concat = pa.concat_tables

    def joined(tables: Any, *args: Any, **options: Any) -> Any:
        tables = list(tables)
        asked[0] += len(tables)
        return concat(tables, *args, **options)

    (tmp_path / "in").mkdir()
    whole = table(300)
    for i in range(300):
        pq.write_table(whole.slice(i, 1), tmp_path / "in" / f"{i:03d}.parquet")
    monkeypatch.setattr(pa, "concat_tables", joined)
    with opens_counted(tmp_path / "in") as opened:
        done = batch.run(
            explainer, tmp_path / "in", tmp_path / "out.parquet", id_cols=["id"], batch_rows=200, on_error=on_error
        )
    assert done.rows == 300
    del opened[""]  # the folder itself, which was listed
    assert opened == {f"{i:03d}.parquet": 1 for i in range(300)}
    assert asked[0] < 3 * 300
    assert pq.read_table(tmp_path / "out.parquet")["id"].to_pylist() == whole["id"].to_pylist()


@pytest.mark.parametrize(("small", "kept"), [(2**20, 0), (0, 0)], ids=["small files, no room", "large files"])
def test_a_file_that_a_disk_changes_during_the_run_is_noticed(
    small: int, kept: int, explainer: gig.Explainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same size, same time: only the content tells. What is kept in memory cannot change."""
    monkeypatch.setattr(sources, "_SMALL", small)
    monkeypatch.setattr(sources, "_KEPT", kept)
    (tmp_path / "in").mkdir()
    whole, victim = table(200), tmp_path / "in" / "3.parquet"
    for i in range(4):
        pq.write_table(whole.slice(50 * i, 50), tmp_path / "in" / f"{i}.parquet", compression="none")

    def rot(what: str, done: int, of: int) -> None:
        if what != "explaining" or done != 50:
            return
        data, state = bytearray(victim.read_bytes()), victim.stat()
        chunk = pq.read_metadata(victim).row_group(0).column(5)
        data[chunk.data_page_offset + chunk.total_compressed_size - 9] ^= 16
        victim.write_bytes(data)
        os.utime(victim, ns=(state.st_atime_ns, state.st_mtime_ns))

    with pytest.raises(gig.InputError, match=r"The content of .*3\.parquet has changed since the run began"):
        batch.run(explainer, tmp_path / "in", tmp_path / "out.parquet", batch_rows=50, progress=rot)
    assert not (tmp_path / "out.parquet").exists()
    done = batch.run(explainer, tmp_path / "in", tmp_path / "out.parquet", batch_rows=50)
    assert (done.rows, done.resumed) == (200, 0), "nothing of what was made of it is gone on with"


def test_waiting_pieces_are_not_counted_again(tmp_path: Path) -> None:
    from gigrad.batch.sources import _cut

    class Counted:
        """A table that counts how often it is asked for its rows."""

        asked = 0

        def __init__(self, inner: Any) -> None:
            self.inner = inner

        @property
        def num_rows(self) -> int:
            Counted.asked += 1
            return 0

    one = Counted(None)
    stream: Iterator[tuple[Any, list[Any]]] = ((one, []) for _ in range(2000))
    with pytest.raises(TypeError):
        list(_cut(iter(stream), 10_000, 0))
    assert Counted.asked <= 3 * 2000


# ------------------------------------------------------------ damage


@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out"])
def test_a_part_that_is_damaged_within_the_run_is_noticed(
    name: str, explainer: gig.Explainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = write(tmp_path / "x.parquet", table(200)), tmp_path / name
    batch.run(explainer, path, tmp_path / f"whole-{name}", batch_rows=50)
    add = workspace.Workspace.add

    def damaging(self: Any, *args: Any, **options: Any) -> None:
        add(self, *args, **options)
        if len(self.parts) == 4:
            victim = self.folder / self.parts[1].file
            data = bytearray(victim.read_bytes())
            data[len(data) // 2] ^= 4
            victim.write_bytes(data)

    monkeypatch.setattr(workspace.Workspace, "add", damaging)
    with pytest.raises(gig.OutputError, match=r"part-000001\S* was damaged on the disk after it had been written"):
        batch.run(explainer, path, out, batch_rows=50)
    assert not out.exists()
    monkeypatch.undo()
    assert batch.run(explainer, path, out, batch_rows=50).resumed == 50

    def content(p: Path) -> Any:
        return p.read_bytes() if p.is_file() else {f.name: f.read_bytes() for f in p.iterdir() if f.name[0] != "_"}

    assert content(out) == content(tmp_path / f"whole-{name}")


def rotted(path: Path, whole: Any, flips: Any, columns: list[str]) -> Counter[str]:
    """What becomes of a table when single bits of its file are flipped, each (byte, bit) by itself."""
    data, found = path.read_bytes(), Counter[str]()
    for place, bit in flips:
        damaged = bytearray(data)
        damaged[place] ^= 1 << bit
        path.write_bytes(damaged)
        try:
            read = sources.Source.open(path).read(columns)
        except gig.InputError:
            found["noticed"] += 1
            continue
        same_rows = read.num_rows == whole.num_rows
        kind = "the same" if read.equals(whole) else "other types" if read.schema != whole.schema else "other values"
        found[kind if same_rows else "rows lost"] += 1
    path.write_bytes(data)
    return found


def test_no_flipped_bit_of_parquet_input_changes_a_value_where_pages_have_checksums(tmp_path: Path) -> None:
    """Every byte of a file: pages, their headers, which no checksum covers, the dictionary and the footer."""
    rng = np.random.default_rng(0)
    whole = pa.table({
        "income": rng.random(40), "age": pa.array(rng.integers(18, 80, 40), mask=rng.random(40) < 0.1),
        "purpose": np.array(["car", "house", "other"])[rng.integers(0, 3, 40)],
    })  # fmt: skip
    outcome = {}
    for codec, checksums in (("none", True), ("zstd", True), ("none", False), ("zstd", False)):
        path = tmp_path / f"{codec}-{checksums}.parquet"
        pq.write_table(
            whole,
            path,
            compression=codec,
            use_dictionary=["purpose"],
            write_page_checksum=checksums,
            store_schema=False,
        )
        flips = [(i, i % 8) for i in range(path.stat().st_size)]
        kinds = [(i, bit) for i in (4, 5) for bit in range(8)]  # of the first page: Arrow passes over unknown ones
        outcome[codec, checksums] = rotted(path, whole, flips + kinds, whole.column_names)
    for (codec, checksums), found in outcome.items():
        assert found["rows lost"] == 0, (codec, checksums, found)
        if checksums:
            assert found["other values"] == 0, (codec, found)
            assert found["noticed"] > 2 * found["the same"], (codec, found)
        else:  # a number is then another number, and nothing in the file contradicts it
            assert found["other values"] > 100, (codec, found)


def test_what_is_written_as_parquet_has_checksums(explainer: gig.Explainer, tmp_path: Path) -> None:
    rows = table(80)
    path = write(tmp_path / "x.parquet", rows)
    batch.run(explainer, path, tmp_path / "credits.parquet")
    batch.run(explainer, path, tmp_path / "folder", batch_rows=50)
    explanation = explainer(rows.select(list(explainer.reference.names)))
    explanation.save(tmp_path / "saved.parquet")
    parts = sorted((tmp_path / "folder").glob("*.parquet"))
    for written in (tmp_path / "credits.parquet", tmp_path / "saved.parquet", *parts):
        data = bytearray(written.read_bytes())
        chunk = pq.read_metadata(written).row_group(0).column(4)
        data[(chunk.dictionary_page_offset or chunk.data_page_offset) + chunk.total_compressed_size - 3] ^= 16
        written.write_bytes(data)
        with pytest.raises(OSError, match=r"CRC"):
            pq.read_table(written, page_checksum_verification=True)
    with pytest.raises((OSError, gig.InputError), match="CRC"):
        gig.Explanation.load(tmp_path / "saved.parquet")
