"""Ledgers: compact, whole, chained; no byte can be changed unnoticed, and models that say otherwise are noticed."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost
from office import NAMES, called, furnish

import gigrad as gig
from gigrad._reasons import ledger

KEY = b"a key that only the lender has"


@pytest.fixture(scope="module")
def office(tmp_path_factory: Any) -> Path:
    return furnish(tmp_path_factory.mktemp("office"))


@pytest.fixture(scope="module")
def lender(office: Path) -> Any:
    """The model, its approved applicants, and the reasons of some who were refused, with groups and categories."""
    model = xgboost.XGBClassifier()
    model.load_model(office / "model.json")
    past, new = (pd.read_parquet(office / f"{n}.parquet") for n in ("past", "new"))
    risk = gig.import_model(model).predict(past[NAMES])
    approved = gig.references.approved(past[NAMES], risk, 0.5, higher_is_better=False)
    refused = new[model.predict_proba(new[NAMES])[:, 1] > 0.5].head(12)
    e = gig.explain(model, refused[NAMES], approved, n_threads=1)
    ids = ["=1+1", "\u2028 and \x85", "Zoë", *refused["number"][3:]]
    book = {"debt": "Too much debt", "home": "Not long enough"}
    found = gig.reasons(e, row_ids=ids, statements=book, groups={"home": ["age", "years"]}, permitted=["age"])
    return model, approved, found


def test_a_ledger_gives_the_records_back(lender: Any, tmp_path: Path) -> None:
    _, _, found = lender
    plain, packed = tmp_path / "r.jsonl", tmp_path / "r.jsonl.gz"
    found.write_audit(plain)
    found.write_audit(packed, KEY)
    records = found.audit()
    assert list(gig.read_ledger(plain)) == records
    assert list(gig.read_ledger(packed)) == list(gig.read_ledger(packed, KEY)) == records
    for record, applicant in zip(gig.read_ledger(plain), found, strict=True):
        assert gig.replay_reasons(record) == applicant
    whole = sum(len(json.dumps(record)) for record in records)
    own = [len(line) for line in plain.read_bytes().split(b"\n") if line.startswith(b'{"record"')]
    assert len(own) == 12
    assert 5 * sum(own) < whole
    empty = tmp_path / "none.jsonl"
    empty.write_bytes(b"".join(ledger.lines([])))
    assert list(gig.read_ledger(empty)) == []


def test_every_flipped_byte_is_noticed(lender: Any, tmp_path: Path) -> None:
    _, _, found = lender
    path = tmp_path / "r.jsonl"
    shared, records = ledger.compact(found)
    path.write_bytes(b"".join(ledger.lines([(shared, *records[:2])], KEY)))
    data = path.read_bytes()
    passed = []
    for i in range(len(data)):
        changed = bytearray(data)
        changed[i] ^= 1 << (i % 8)
        path.write_bytes(changed)
        try:
            list(gig.read_ledger(path, KEY))
            passed.append(i)
        except gig.LedgerError:
            pass
    assert not passed


def test_a_flipped_byte_of_a_compressed_ledger_is_noticed_unless_it_carries_nothing(
    lender: Any, tmp_path: Path
) -> None:
    """The header of gzip has a time, hints and the system, which no reader looks at: the records are the same then.

    So has the last byte before the eight of the checksum and the length: bits after the end of the stream fill it up.
    """
    _, _, found = lender
    path = tmp_path / "r.jsonl.gz"
    shared, records = ledger.compact(found)
    with ledger.lines_writer(path, compressed=True) as out:
        for line in ledger.lines([(shared, *records[:2])], KEY):
            out.write(line)
    data, expected = path.read_bytes(), list(gig.read_ledger(path, KEY))
    passed = []
    for i in range(len(data)):
        changed = bytearray(data)
        changed[i] ^= 1 << (i % 8)
        path.write_bytes(changed)
        try:
            assert list(gig.read_ledger(path, KEY)) == expected
            passed.append(i)
        except gig.LedgerError:
            pass
    assert set(passed) <= {*range(3, 10), len(data) - 9}, passed


def test_lines_that_are_removed_added_moved_or_cut_are_noticed(lender: Any, tmp_path: Path) -> None:
    _, _, found = lender
    path = tmp_path / "r.jsonl"
    found.write_audit(path)
    lines = path.read_bytes().splitlines(keepends=True)
    for other in (
        lines[:3] + lines[4:],  # removed
        [*lines[:3], lines[2], *lines[3:]],  # added
        [*lines[:3], lines[4], lines[3], *lines[5:]],  # moved
        lines[:-1],  # cut at a line
        [*lines[:-1], lines[-1][:-5]],  # cut within one
        [*lines, lines[-1]],  # more at the end
        [],
    ):
        path.write_bytes(b"".join(other))
        with pytest.raises(gig.LedgerError):
            list(gig.read_ledger(path))
    packed = gzip.compress(b"".join(lines))
    (tmp_path / "r.jsonl.gz").write_bytes(packed[:-20])
    with pytest.raises(gig.LedgerError, match="damaged"):
        list(gig.read_ledger(tmp_path / "r.jsonl.gz"))
    with pytest.raises(gig.InputError, match="cannot be read: no such file"):
        list(gig.read_ledger(tmp_path / "none.jsonl"))


def test_a_signature_stops_who_can_write_the_file(lender: Any, tmp_path: Path) -> None:
    """A chain can be made anew by anybody; a signature only by who has the key."""
    _, _, found = lender
    path = tmp_path / "r.jsonl"
    found.write_audit(path, KEY)
    shared, records = ledger.compact(found)
    forged = b"".join(ledger.lines([(shared, *records[1:])]))  # one applicant less, a chain without a fault
    path.write_bytes(forged)
    assert len(list(gig.read_ledger(path))) == 11
    with pytest.raises(gig.LedgerError, match="the ledger is not signed"):
        list(gig.read_ledger(path, KEY))
    path.write_bytes(b"".join(ledger.lines([(shared, *records[1:])], b"another key, long enough")))
    with pytest.raises(gig.LedgerError, match="is not by this key"):
        list(gig.read_ledger(path, KEY))
    lies = json.loads(records[0])
    lies["reasons"] = lies["reasons"][::-1]
    path.write_bytes(b"".join(ledger.lines([(shared, json.dumps(lies))])))
    with pytest.raises(gig.LedgerError, match="do not follow from it"):
        list(gig.read_ledger(path))


def test_a_ledger_is_verified_against_the_model_in_bulk(lender: Any, tmp_path: Path) -> None:
    model, approved, found = lender
    path = tmp_path / "r.jsonl"
    found.write_audit(path, KEY)
    done = gig.verify_ledger(path, model, approved, key=KEY, n_threads=1)
    assert (done.ok, done.records, done.signed) == (True, 12, True)
    for record in found.audit()[::4]:
        assert gig.verify_reasons(record, model, approved).ok
    wrong = gig.verify_ledger(path, model, np.zeros((3, 4)) + 5.0)
    assert not wrong.ok
    assert len(wrong.different) == 12
    assert any("the reference has the fingerprint" in d for d in wrong.different[0][1])
    with pytest.raises(gig.InputError, match="give both, or an Explainer"):
        gig.verify_ledger(path, model)
    values = np.array(list(found.audit()[0]["credits"].values()))
    assert done.largest_credit_difference <= 1e-9 * np.abs(values).max() + 1e-12


def test_the_command_line_verifies_folders(office: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_bytes(KEY)
    (tmp_path / "records").mkdir()
    how = "--reference past.parquet --cutoff 0.5 --lower-is-better"
    line = (
        f"gigrad reasons model.json new.parquet {how} --id number --permitted age --batch-rows 40 -q "
        f"-o {tmp_path}/r.parquet"
    )
    for name, key in (("a.jsonl.gz", f"--key-file {tmp_path}/key"), ("b.jsonl", "")):
        done = called(f"{line} --audit {tmp_path}/records/{name} {key} --restart", office, monkeypatch)
        assert done.exit_code == 0, done.stderr
    told = called(f"gigrad info {tmp_path}/records/a.jsonl.gz", office, monkeypatch)
    assert "audit records, unchanged, signed" in told.stdout
    assert "SHA-256 model" in told.stdout
    verify = f"gigrad verify {tmp_path}/records"
    done = called(f"{verify} --model model.json {how}", office, monkeypatch)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.count("records, unchanged, and reproduced by the model") == 2
    assert "its signature was not checked (--key-file)" in done.stdout
    done = called(f"{verify}/a.jsonl.gz --key-file {tmp_path}/key", office, monkeypatch)
    assert (done.exit_code, "unchanged, signed by this key" in done.stdout) == (0, True), done.stderr
    done = called(f"{verify} --key-file {tmp_path}/key", office, monkeypatch)
    assert (done.exit_code, "not signed" in done.stderr) == (9, True)
    called(f"gigrad save model.json {how} -q -o {tmp_path}/e.gig", office, monkeypatch)
    done = called(f"{verify} --model {tmp_path}/e.gig", office, monkeypatch)
    assert done.exit_code == 0, done.stderr
    done = called(f"{verify} --model model.json {how.replace('0.5', '0.4')}", office, monkeypatch)
    assert (done.exit_code, "are not reproduced by the model; first that of" in done.stderr) == (9, True), done.stderr
    data = (tmp_path / "records" / "b.jsonl").read_bytes()
    (tmp_path / "records" / "b.jsonl").write_bytes(data.replace(b'"A-', b'"B-', 1))
    done = called(verify, office, monkeypatch)
    assert (done.exit_code, "was changed" in done.stderr) == (9, True)
    (tmp_path / "key").write_bytes(b"short")
    assert "16 bytes or more" in called(f"{verify} --key-file {tmp_path}/key", office, monkeypatch).stderr
