"""`gigrad info`: describes a file written by gigrad, from the file alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .. import portable
from .._common import display
from .._reasons.ledger import is_signed, read_ledger
from ..batch.accuracy import Accuracy
from ..batch.sources import FORMATS, Source
from ..batch.targets import head_of_source
from ..batch.workspace import MANIFEST, RECORD
from ..errors import GigradError, InputError
from .console import say


def info(path: Path) -> None:
    """Describe a portable file, a result, a saved explanation or an unfinished run."""
    if not path.exists():
        raise InputError(f"{path} does not exist.")
    try:
        _tell(path)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        if isinstance(error, GigradError):
            raise
        raise InputError(f"The gigrad metadata of {path} is damaged ({type(error).__name__}: {error}).") from None


def _tell(path: Path) -> None:
    """Say what a file is: an explainer or model, a ledger, an unfinished run or a result."""
    if path.suffix == portable.SUFFIX:
        _portable(path)
    elif path.name.endswith((".jsonl", ".jsonl.gz")):
        _ledger(path)
    elif path.is_dir() and (path / MANIFEST).exists() and not (path / RECORD).exists():
        _unfinished(path)
    elif path.is_dir() or path.suffix.lower() in FORMATS:
        _result(path)
    else:
        raise InputError(f"{path} must be a .gig file or a result that ends in one of {', '.join(FORMATS)}.")


def _portable(path: Path) -> None:
    """Say what is in a portable file."""
    kind = portable.kind_of(path)
    graph = portable.load_graph(path)
    say(f"{path}: a portable {'explainer' if kind == 'explainer' else 'model without a reference'}")
    _line("Model", f"{graph.label}, {len(graph.columns)} columns")
    _line("Columns", ", ".join(graph.feature_names) if graph.named else "known by position only")
    _line("Outputs", ", ".join(graph.output_names))
    if kind == "explainer":
        explainer = portable.load(path)
        _line("Explained", ", ".join(explainer.scorer.output_names))
        _provenance(explainer.provenance)


def _ledger(path: Path) -> None:
    """Say how many records a ledger has, after checking that they are unchanged."""
    count, origin = 0, dict[str, Any]()
    for record in read_ledger(path):
        count, origin = count + 1, record["provenance"]
    signed = "signed" if is_signed(path) else "not signed"
    say(f"{path}: a ledger of {count:,} audit records, unchanged, {signed}")
    _provenance(origin)


def _unfinished(path: Path) -> None:
    """Say how much of an interrupted run is done."""
    whole = (path / MANIFEST).read_bytes().splitlines(keepends=True)
    lines = [json.loads(line) for line in whole if line.endswith(b"\n")]  # incomplete lines are ignored
    parts = [line["part"] for line in lines if "part" in line]
    say(f"{path}: an interrupted run, {sum(p['rows'] for p in parts):,} rows done; the same command resumes it")


def _result(path: Path) -> None:
    """Say what a result of a job contains and how it was made."""
    source = Source.open(path, "FILE")
    head = head_of_source(source)
    if not head:
        raise InputError(
            f"{path} must be a result with gigrad's metadata; it has none: it is not a result, or the file with its "
            "provenance is missing."
        )
    say(f"{path}: {head.get('kind', 'an explanation')}, {source.rows():,} lines")
    if head.get("ids"):
        _line("Ids", ", ".join(head["ids"]))
    _line("Columns", ", ".join(head.get("feature_names", [])))
    _line("Outputs", ", ".join(head.get("output_names", [])))
    _accuracy(head.get("totals"))
    _provenance(head.get("provenance", {}))


def _accuracy(totals: dict[str, Any] | None) -> None:
    """Print the rows and the accuracy that a run recorded in its result."""
    if not totals:
        return
    found = Accuracy.total([totals["accuracy"]])
    worst = "" if found.worst_row is None else f", in row {found.worst_row}"
    _line("Rows", f"{totals['rows']:,} read, {totals['rejected']:,} rejected")
    _line(
        "Accuracy",
        f"{found.out_of_tolerance:,} rows out of tolerance; the largest error of a credit is "
        f"{found.largest_error:.3g}{worst}",
    )


def _provenance(record: dict[str, Any]) -> None:
    """Print the provenance, a line for each fact that an examiner needs."""
    model, reference = record.get("model", {}), record.get("reference", {})
    if model.get("library"):
        _line("Library", model["library"])
    _line("Output", record.get("output", {}).get("asked", "?"))
    note = reference.get("note") or f"{reference.get('rows', '?')} rows, {reference.get('weights', '?')} weights"
    _line("Reference", note)
    if model:
        _line("Definition", record.get("definition", 1))
    _line("Columns that jump", display.chosen_columns(record.get("choice", {}), most=100) or "none")
    _line("Settings", ", ".join(f"{k} {v}" for k, v in record.get("settings", {}).items()))
    _line("Versions", ", ".join(f"{k} {v}" for k, v in record.get("versions", {}).items()))
    for name, part in (("model", model), ("reference", reference)):
        if part.get("fingerprint"):
            _line(f"SHA-256 {name}", part["fingerprint"])
    for file in record.get("data", {}).get("files", []):
        _line("Data", f"{file['name']}, {file['bytes']:,} bytes, SHA-256 {file['sha256']}")


def _line(name: str, text: Any) -> None:
    say(f"  {name:<18} {text}")
