"""Reasons as tables, JSON and text."""

from __future__ import annotations

import csv
import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._common import checks
from .._common.optional import frame_library, require
from .._io.durable import replacing
from .._output.spreadsheet import harmless
from ..errors import MissingDependencyError

if TYPE_CHECKING:
    from .build import Reasons
    from .case import ApplicantReasons

COLUMNS = ("row_id", "rank", "code", "statement", "feature", "credit", "share", "value", "typical", "reference")


def columns(found: Reasons) -> dict[str, list[Any]]:
    """The table of reasons by column; values and typical values as text, since one column holds many features'."""
    out: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for applicant in found.applicants:
        for r in applicant.reasons:
            line = (applicant.row_id, r.rank, r.code, r.statement, r.feature, r.credit, r.share, as_value(r.value),
                    as_value(r.typical), found.reference)  # fmt: skip
            for name, cell in zip(COLUMNS, line, strict=True):
                out[name].append(cell)
    if len({type(v) for v in out["row_id"]}) > 1:
        out["row_id"] = [str(v) for v in out["row_id"]]
    return out


def to_frame(found: Reasons, library: str | None) -> Any:
    """See `Reasons.to_frame`."""
    if library is not None:
        checks.library(library)
    own = type(found.explanation.data).__module__.split(".")[0]
    if library is None and own in ("pandas", "polars"):
        library = own
    try:
        module = frame_library(library or "pandas")
    except MissingDependencyError:
        if library is not None:
            raise
        module = require("polars", "polars")
    return module.DataFrame(columns(found))


def to_arrow(found: Reasons) -> Any:
    """The table as pyarrow, with the provenance and the rules in its metadata."""
    pa = require("pyarrow", "frames")
    made = columns(found)
    types = {"rank": pa.int32(), "credit": pa.float64(), "share": pa.float64()}
    ids = pa.array(made.pop("row_id"))
    arrays = {"row_id": ids} | {name: pa.array(cells, types.get(name, pa.string())) for name, cells in made.items()}
    metadata = {
        "gigrad.provenance": json.dumps(found.explanation.provenance, default=str),
        "gigrad.reasons": json.dumps(found.context.as_record(), default=str),
    }
    return pa.table(arrays, metadata=metadata)


def to_parquet(found: Reasons, path: str | Path) -> None:
    """See `Reasons.to_parquet`."""
    table = to_arrow(found)
    with replacing(Path(path)) as aside:
        require("pyarrow.parquet", "frames").write_table(
            table, str(aside), compression="zstd", write_page_checksum=True
        )


def to_csv(found: Reasons, path: str | Path) -> None:
    """See `Reasons.to_csv`."""
    made = columns(found)
    with replacing(Path(path)) as aside, aside.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for line in zip(*made.values(), strict=True):
            writer.writerow([harmless(cell) if isinstance(cell, str) else cell for cell in line])


def to_json(found: Reasons, path: str | Path | None) -> str:
    """See `Reasons.to_json`."""
    content = {
        "method": found.method,
        "reference": found.reference,
        "higher_is_better": found.context.rules.higher_is_better,
        "reasons_without_statement": found.reasons_without_statement,
        "features_without_statement": list(found.features_without_statement) if found.statements else [],
        "applicants": [applicant.as_record() for applicant in found.applicants],
    }
    text = json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False, default=str)
    if path is not None:
        with replacing(Path(path)) as aside:
            aside.write_text(text + "\n", encoding="utf-8")
    return text


def as_value(value: Any) -> str | None:
    """A value as text: whole numbers without a point, a group as its members' values; None stays None."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "; ".join(f"{name} = {as_value(v) if v is not None else 'missing'}" for name, v in value.items())
    if isinstance(value, float):
        return f"{value:.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:.6g}"
    return str(value)


def as_text(found: Reasons, most: int = 5) -> str:
    """The reasons of the first few applicants as text for printing."""
    parts = [f"Compared with {found.reference}", *(applicant_text(a) for a in found.applicants[:most])]
    if len(found) > most:
        parts.append(f"... and {len(found) - most} more applicants")
    return "\n\n".join(parts)


def applicant_text(a: ApplicantReasons, width: int = 84) -> str:
    """One applicant's reasons as text for printing."""
    head = f"Applicant {a.row_id}: score {a.prediction:.4g}, reference {a.base:.4g}"
    lines = [head if a.shortfall > 0 else head + " (no shortfall)"]
    for r in a.reasons:
        code = f"[{r.code}] " if r.code else ""
        said = r.statement if r.statement is not None else f"{r.feature} (no statement)"
        share = "" if r.share is None else f"{100 * r.share:.0f}% of the shortfall; "
        lines += textwrap.wrap(f"{r.rank}. {code}{said}", width, initial_indent="  ", subsequent_indent="     ")
        value = "missing" if r.value is None else as_value(r.value)
        usual = "" if r.typical is None else f", typically {as_value(r.typical)}"
        lines += textwrap.wrap(f"{share}{r.feature}: {value}{usual}", width, initial_indent="     ",
                               subsequent_indent="     ")  # fmt: skip
    if not a.reasons:
        lines.append("  nothing counts against this applicant")
    for x in a.excluded:
        ranked = f"would rank {x.would_rank}" if x.would_rank else "does not count against the applicant"
        lines.append(f"  excluded: {x.feature} ({ranked})")
    return "\n".join(lines)
