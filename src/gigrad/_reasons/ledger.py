"""Ledgers: the records of many applicants in one file, compact, and such that no byte can be changed unnoticed.

A ledger is JSON, one object a line, gzip-compressed where its name ends in .gz. A line `head` has what the records
after it share (rules, statements, groups, typical values, provenance, columns); a line `record` has what is an
applicant's own, as lists in the order of the head's names; the line `end` says how many there are. Every line ends in
the SHA-256 of the one before and of its own bytes, so that each record's hash stands for all that came before it. Who
can write the file can write another chain: the end may therefore bear an HMAC-SHA256 of the last hash, with a key that
only the lender has.

A record is what `Reasons.audit` gives: it is put together again from its line and its head, and held to its
fingerprint.
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
from .audit import case_of, mark, own_parts, shared_parts, through_json
from .case import Context, reasons_of

if TYPE_CHECKING:
    from .build import Reasons

FORMAT = "gigrad.ledger/1"
START = hashlib.sha256(FORMAT.encode()).hexdigest()
_SEAM = b',"hash":"'
_SCORE = ("prediction", "base", "gap", "error")


def compact(found: Reasons) -> tuple[str, list[str]]:
    """What the applicants share, and what is each one's own, as JSON; for `lines`."""
    shared = shared_parts(found)
    marks = {key: mark(value) for key, value in shared.items()}
    columns, features, singles = (), (), ()
    lines = []
    for own in own_parts(found):
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
    """The lines of a ledger, chained, from blocks of what `compact` gives: what is shared first, then the records."""
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
    """A file to write lines to; with no name and no time in it, so that the same lines give the same bytes."""
    with open(path, "wb") as plain:
        if compressed:
            with gzip.GzipFile("", "wb", compresslevel=6, fileobj=plain, mtime=0) as packed:
                yield packed
        else:
            yield plain


def read_ledger(path: str | Path, key: bytes | None = None) -> Iterator[dict[str, Any]]:
    """The records of a ledger, whole, one after the other; any byte that was changed since is a LedgerError.

    Parameters
    ----------
    path : path
        A file that `gigrad reasons --audit` or `Reasons.write_audit` wrote.
    key : bytes, optional
        The key that it was signed with. A ledger that is not signed, or by another key, is then refused.

    Yields
    ------
    dict
        As `Reasons.audit` gives it, for `replay_reasons` and `verify_reasons`. What was added, removed or put elsewhere
        at the end is noticed at the end: use no record before all were read where that matters.

    Examples
    --------
    >>> import gigrad as gig
    >>> found = gig.reasons(gig.explain(model, X[risk > 0.5], approved), permitted=["age"])
    >>> found.write_audit("records.jsonl")
    >>> [record["fingerprint"] for record in gig.read_ledger("records.jsonl")] == [
    ...     record["fingerprint"] for record in found.audit()
    ... ]
    True
    """
    path = Path(path)
    last, head, count, ended = START, None, 0, False
    for number, raw in enumerate(_raw_lines(path), start=1):
        where = f"line {number} of {path}"
        if ended:
            raise LedgerError(f"{where} stands after the end of the ledger; something was added.")
        kind, content, last, before = *_checked(raw, last, where), last
        if kind == "head":
            head = _Head(content, where)
        elif kind == "end":
            _check_end(content, count, key, before, where)
            ended = True
        elif head is None:
            raise LedgerError(f"{where} is a record before any head; the ledger was put together by something else.")
        else:
            yield head.record(content, where)
            count += 1
    if not ended:
        raise LedgerError(f"{path} has no end: it was cut off after {count:,} records.")


class _Head:
    """What the records after it share."""

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
            raise LedgerError(f"{where} is no head of a ledger that this gigrad reads: {error!r}.") from None

    def record(self, line: Mapping[str, Any], where: str) -> dict[str, Any]:
        """The whole record of a line, held to its fingerprint."""
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
            raise LedgerError(f"{where} is no record of a ledger: {error!r}.") from None
        if told != line["reasons"] or stated != mark({**self.marks, **{k: mark(v) for k, v in own.items()}}):
            raise LedgerError(
                f"The record in {where} was changed: its reasons or its fingerprint do not follow from it."
            )
        return {**self.shared, **own, "fingerprint": stated}


def _checked(raw: bytes, last: str, where: str) -> tuple[str, Any, str]:
    """The kind and content of a line and its hash, once that is seen to follow from the line before."""
    body, seam, rest = raw.rpartition(_SEAM)
    expected = _next(last, body)
    if not seam or rest != expected.encode() + b'"}\n':
        raise LedgerError(f"{where} was changed, or a line before it was added or removed: its hash does not follow.")
    try:
        ((kind, content),) = json.loads(body + b"}").items()
    except (ValueError, AttributeError, RecursionError) as error:
        raise LedgerError(f"{where} is no line of a ledger: {error}.") from None
    if kind not in ("head", "record", "end") or not isinstance(content, dict):
        raise LedgerError(f"{where} is no line of a ledger that this gigrad reads.")
    return kind, content, expected


def _check_end(content: Mapping[str, Any], count: int, key: bytes | None, last: str, where: str) -> None:
    if content.get("format") != FORMAT or content.get("records") != count:
        raise LedgerError(f"{where} says that there are {content.get('records')} records; there are {count:,}.")
    if key is None:
        return
    signature = content.get("signature")
    if signature is None:
        raise LedgerError(f"{where} must bear a signature for the key to be of use; the ledger is not signed.")
    if not hmac.compare_digest(str(signature), _signature(key, last, count)):
        raise LedgerError(f"The signature in {where} is not by this key: the ledger was written by somebody else.")


def is_signed(path: Path) -> bool:
    """Whether the last line of a ledger bears a signature, be it a right one."""
    tail = deque(_raw_lines(path), maxlen=1)
    return bool(tail) and b'"signature":' in tail[0]


def _raw_lines(path: Path) -> Iterator[bytes]:
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
    return json.dumps(content, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
