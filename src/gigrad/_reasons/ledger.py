"""Ledgers: the audit records of many applicants in one compact file with a hash chain that reveals any changed byte.

A ledger is JSON, one object a line, gzip-compressed where its name ends in .gz. A line `head` has what the records
after it share (rules, statements, groups, typical values, provenance, columns); a line `record` has one applicant's
data, as lists in the order of the head's names; the line `end` has the number of records. Every line ends in the
SHA-256 of the previous line's hash and its own bytes, so that each hash covers all lines before it. Whoever can write
the file can write another chain: the end may therefore have an HMAC-SHA256 of the last hash, with a key that only the
lender has.

A record is as `Reasons.audit` gives it: it is rebuilt from its line and its head, and its fingerprint is checked.
"""

from __future__ import annotations

import gzip
import hashlib
import hmac
import json
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._io.durable import replacing
from ..errors import InputError, LedgerError
from .audit import FORMAT as RECORD_FORMAT
from .audit import applicant_parts, case_of, mark, shared_parts, through_json
from .case import Context, reasons_of

if TYPE_CHECKING:
    from .build import Reasons

FORMAT = "gigrad.ledger/1"
START = hashlib.sha256(FORMAT.encode()).hexdigest()
_SEAM = b',"hash":"'
_SCORE = ("prediction", "base", "gap", "error")


def compact(found: Reasons) -> tuple[str, list[str]]:
    """The head that all applicants share and one record for each applicant, as JSON texts; for `lines`."""
    shared = shared_parts(found)
    marks = {key: mark(value) for key, value in shared.items()}
    columns, features, singles = (), (), ()
    lines = []
    for own in applicant_parts(found):
        columns, features, singles = ((*own[k],) for k in ("applicant", "credits", "feature_credits"))
        fingerprint = mark({**marks, **{key: mark(value) for key, value in own.items()}})
        line = {
            "id": own["row_id"],
            "applicant": [*own["applicant"].values()],
            "score": [own["score"][name] for name in _SCORE],
            "credits": [*own["credits"].values()],
            "reasons": [[r["feature"], r["code"]] for r in own["outcome"]["reasons"]],
            "fingerprint": fingerprint,
        }
        if own["feature_credits"] != own["credits"]:
            line["feature_credits"] = [*own["feature_credits"].values()]
        lines.append(_text(line))
    names = {"columns": columns, "features": features, "single_features": singles}
    return _text({"shared": shared, **names}), lines


def lines(blocks: Iterable[Sequence[str]], key: bytes | None = None) -> Iterator[bytes]:
    """The lines of a ledger with their hashes, from blocks made of a head and its records, as from `compact`."""
    last, shared, count = START, "", 0

    def chained(kind: str, content: str) -> bytes:
        nonlocal last
        body = f'{{"{kind}":{content}'.encode()
        last = _next(last, body)
        return body + _SEAM + last.encode() + b'"}\n'

    for head, *records in blocks:
        if head != shared:
            shared = head
            yield chained("head", f'{{"format":"{FORMAT}",{head[1:]}')
        for record in records:
            yield chained("record", record)
            count += 1
    end: dict[str, Any] = {"format": FORMAT, "records": count}
    if key is not None:
        end["signature"] = _signature(key, last, count)
    yield chained("end", _text(end))


def write(found: Reasons, path: str | Path, key: bytes | None = None) -> None:
    """See `Reasons.write_audit`."""
    path = Path(path)
    shared, records = compact(found)
    with replacing(path) as aside, lines_writer(aside, path.suffix == ".gz") as out:
        for line in lines([(shared, *records)] if records else [], key):
            out.write(line)


@contextmanager
def lines_writer(path: Path, compressed: bool) -> Iterator[Any]:
    """A file to write lines to; its gzip header has no name or time, so that the same lines give the same bytes."""
    with open(path, "wb") as plain:
        if compressed:
            with gzip.GzipFile("", "wb", compresslevel=6, fileobj=plain, mtime=0) as packed:
                yield packed
        else:
            yield plain


def read_ledger(path: str | Path, key: bytes | None = None) -> Iterator[dict[str, Any]]:
    """Iterate over the records of a ledger; a LedgerError if any byte was changed since it was written.

    Parameters
    ----------
    path : path
        A file that `gigrad reasons --audit` or `Reasons.write_audit` wrote.
    key : bytes, optional
        The key that it was signed with. A ledger that is not signed, or by another key, is then refused.

    Yields
    ------
    dict
        As `Reasons.audit` gives it, for `replay_reasons` and `verify_reasons`. Records removed from the end, or added
        there, are noticed only at the end: where that matters, read all records before using any.

    Examples
    --------
    >>> import gigrad as gig
    >>> found = gig.reasons(gig.explain(model, X[risk > 0.5], approved))
    >>> found.write_audit("records.jsonl")
    >>> [record["fingerprint"] for record in gig.read_ledger("records.jsonl")] == [
    ...     record["fingerprint"] for record in found.audit()
    ... ]
    True
    """
    path = Path(path)
    head, count, ended = None, 0, False
    for body, before, where in chained(_raw_lines(path), path):
        if ended:
            raise LedgerError(f"{where} comes after the end of the ledger; it was added later.")
        kind, content = _content(body, where)
        if kind == "head":
            head = _Head(content, where)
        elif kind == "end":
            _check_end(content, count, key, before, where)
            ended = True
        elif head is None:
            raise LedgerError(f"{where} is a record before any head; the ledger was not written by gigrad.")
        else:
            yield head.record(content, where)
            count += 1
    if not ended:
        raise LedgerError(f"{path} has no end: it was cut off after {count:,} records.")


class _Head:
    """A head: the data that the records after it share."""

    def __init__(self, content: Mapping[str, Any], where: str) -> None:
        try:
            self.shared = dict(content["shared"])
            self.columns, self.features, self.singles = (
                content[name] for name in ("columns", "features", "single_features")
            )
            if content["format"] != FORMAT or self.shared["format"] != RECORD_FORMAT:
                raise ValueError(f"the format is {content['format']!r}")
            self.context = Context.from_record(self.shared)
            self.marks = {key: mark(value) for key, value in self.shared.items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise LedgerError(f"{where} must be the head of a ledger that this gigrad reads; {error!r}.") from None

    def record(self, line: Mapping[str, Any], where: str) -> dict[str, Any]:
        """The whole record of a line, after checking its fingerprint."""
        try:
            credits = dict(zip(self.features, line["credits"], strict=True))
            singles = line.get("feature_credits")
            own: dict[str, Any] = {
                "row_id": line["id"],
                "applicant": dict(zip(self.columns, line["applicant"], strict=True)),
                "score": dict(zip(_SCORE, line["score"], strict=True)),
                "credits": credits,
                "feature_credits": credits if singles is None else dict(zip(self.singles, singles, strict=True)),
            }
            outcome = through_json(reasons_of(case_of(own), self.context).as_record())
            told = [[r["feature"], r["code"]] for r in outcome["reasons"]]
            own["outcome"] = outcome
            stated = line["fingerprint"]
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise LedgerError(f"{where} must be a record of a ledger; {error!r}.") from None
        marks = {k: mark(v) for k, v in own.items() if k != "feature_credits"}
        marks["feature_credits"] = marks["credits"] if singles is None else mark(own["feature_credits"])
        if told != line["reasons"] or stated != mark({**self.marks, **marks}):
            raise LedgerError(
                f"The record in {where} was changed: its reasons or its fingerprint do not follow from it."
            )
        return {**self.shared, **own, "fingerprint": stated}


def chained(raw_lines: Iterable[bytes], path: Path, last: str = START) -> Iterator[tuple[bytes, str, str]]:
    """Each line of a ledger without its hash, the previous line's hash, and the line's name in messages.

    Raises a LedgerError at the first line whose hash does not follow from the one before (`last` for the first line).
    """
    for number, raw in enumerate(raw_lines, start=1):
        where = f"line {number} of {path}"
        body, seam, rest = raw.rpartition(_SEAM)
        before, last = last, _next(last, body)
        if not seam or rest != last.encode() + b'"}\n':
            raise LedgerError(
                f"{where} was changed, or a line before it was added or removed: its hash does not follow."
            )
        yield body, before, where


def _content(body: bytes, where: str) -> tuple[str, Any]:
    """The kind and content of a line."""
    try:
        ((kind, content),) = json.loads(body + b"}").items()
    except (ValueError, AttributeError, RecursionError) as error:
        raise LedgerError(f"{where} must be a line of a ledger; {error}.") from None
    if kind not in ("head", "record", "end") or not isinstance(content, dict):
        raise LedgerError(f"{where} must be a line of a ledger that this gigrad reads; its kind is unknown.")
    return kind, content


def _check_end(content: Mapping[str, Any], count: int, key: bytes | None, last: str, where: str) -> None:
    """Check the end of a ledger: its count of records and, with a key, its signature."""
    if content.get("format") != FORMAT or content.get("records") != count:
        raise LedgerError(f"{where} says that there are {content.get('records')} records; there are {count:,}.")
    if key is None:
        return
    signature = content.get("signature")
    if signature is None:
        raise LedgerError(f"{where} must have a signature to be checked with the key; the ledger is not signed.")
    if not hmac.compare_digest(str(signature), _signature(key, last, count)):
        raise LedgerError(f"The signature in {where} is not by this key: the ledger was written by somebody else.")


def is_whole(path: Path) -> bool:
    """Whether a ledger can be read, its hash chain is right and it has its end; records are not checked."""
    count, ended = 0, False
    try:
        for body, before, where in chained(_raw_lines(path), path):
            if ended:
                return False
            count += body.startswith(b'{"record":')
            if body.startswith(b'{"end":'):
                _check_end(_content(body, where)[1], count, None, before, where)
                ended = True
    except (LedgerError, InputError):
        return False
    return ended


def is_signed(path: Path) -> bool:
    """Whether the last line of a ledger has a signature, valid or not."""
    tail = deque(_raw_lines(path), maxlen=1)
    return bool(tail) and b'"signature":' in tail[0]


def _raw_lines(path: Path) -> Iterator[bytes]:
    """The lines of a ledger, gzipped or not."""
    opened: Any
    try:
        with open(path, "rb") as plain:
            opened = gzip.GzipFile(fileobj=plain) if path.suffix == ".gz" else plain
            yield from opened
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise LedgerError(f"{path} is damaged: {error}.") from None
    except OSError as error:
        raise InputError(f"The ledger {path} cannot be read: {(error.strerror or str(error)).lower()}.") from None


def _next(last: str, body: bytes) -> str:
    return hashlib.sha256(last.encode() + body).hexdigest()


def _signature(key: bytes, last: str, count: int) -> str:
    return hmac.new(key, f"{last} {count}".encode(), hashlib.sha256).hexdigest()


def _text(content: Any) -> str:
    return _COMPACT.encode(content)


_COMPACT = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"))
