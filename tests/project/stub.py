"""The types of the native core, as nanobind's stub generator reads them from the compiled module.

`python tests/project/stub.py` writes `kernels/_native.pyi` anew after a change of the bindings; `test_stub.py` fails
where that was forgotten. Shapes are left out: with them a line would not fit on a screen.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from nanobind.stubgen import StubGen

from gigrad.kernels import _native

FILE = Path(__file__).parents[2] / "src/gigrad/kernels/_native.pyi"
HEAD = "# Written by tests/project/stub.py from the compiled module: change the bindings, not this file.\n"


def generated() -> str:
    """The stub of the module that is installed, formatted."""
    made = StubGen(_native)
    made.put(_native)
    text = made.get()
    text = re.sub(r"Annotated\[(NDArray\[numpy\.\w+\]), dict\([^()]*(?:\([^()]*\))?[^()]*\)\]", r"\1", text)
    text = text.replace("-> tuple:", "-> tuple[Any, ...]:").replace("import Annotated", "import Any")
    lines = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(FILE), "-"]
    return subprocess.run(lines, input=HEAD + text, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    FILE.write_text(generated())
