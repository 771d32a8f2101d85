"""Every Python snippet of the README and the pages runs, page by page, as a reader would type it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def snippets(page: Path) -> str:
    """The fenced Python blocks of a page, joined."""
    return "\n".join(re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE))


def run(path: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "MPLBACKEND": "Agg", "GIGRAD_QUICK": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, path], capture_output=True, text=True, cwd=folder, env=environment, check=False
    )


@pytest.mark.parametrize("page", [p for p in PAGES if snippets(p)], ids=lambda p: p.stem)
def test_snippets_run(page: Path, tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text(snippets(page))
    done = run(script, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_examples_run(example: Path, tmp_path: Path) -> None:
    done = run(example, tmp_path)
    if "skipped:" in done.stdout:
        pytest.skip(done.stdout.split("skipped:")[1].strip())
    assert done.returncode == 0, done.stdout + done.stderr


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([\w/.-]+\.md)\)", page.read_text()):
            assert (page.parent / target).exists(), (page.name, target)
