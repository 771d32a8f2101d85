"""What every text file of the project must be: `python tests/project/hygiene.py` names the lines that are not."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LARGEST = 1_500_000  # bytes; pictures of the documentation are the largest files
BINARY = {".png", ".parquet", ".gig", ".keras", ".onnx", ".pdf", ".ico", ".gz", ".ubj", ".cbm", ".skops", ".zip"}
# files of old releases, and what fuzzing found: kept to the byte
AS_FOUND = {ROOT / "tests" / "golden" / "models", ROOT / "tests" / "fuzz" / "corpus"}
CONFLICT = re.compile(r"^(<<<<<<< |=======$|>>>>>>> )")


def tracked() -> list[Path]:
    """The files that git knows; none outside of a checkout."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    return [path for name in done.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def faults(path: Path) -> Iterator[str]:
    """One sentence for everything that is wrong with a file."""
    name = path.relative_to(ROOT)
    data = path.read_bytes()
    if len(data) > LARGEST:
        yield f"{name} has {len(data)} bytes; at most {LARGEST} may be committed."
    if path.suffix in BINARY or not data or AS_FOUND & set(path.parents):
        return
    text = data.decode("utf-8")
    if "\r" in text:
        yield f"{name} must end its lines in a line feed alone."
    if not text.endswith("\n") or text.endswith("\n\n"):
        yield f"{name} must end in exactly one line feed."
    for number, line in enumerate(text.split("\n"), 1):
        if line != line.rstrip():
            yield f"{name}:{number} ends in white space."
        if CONFLICT.match(line):
            yield f"{name}:{number} is a conflict marker."


if __name__ == "__main__":
    found = [fault for path in tracked() for fault in faults(path)]
    print("\n".join(found))
    sys.exit(bool(found))
