"""Every snippet of the README and the pages runs, page by page, as a reader would type it."""

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
SHELL = f'gigrad() {{ "{sys.executable}" -m gigrad "$@"; }}\n'  # the command of this very environment


def snippets(page: Path, language: str = "python") -> str:
    """The fenced blocks of a page in one language, joined."""
    return "\n".join(re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE))


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
    if commands := snippets(page, "bash"):
        check = subprocess.run(
            ["bash", "-ec", SHELL + commands], capture_output=True, text=True, cwd=tmp_path, check=False
        )
        assert check.returncode == 0, check.stdout + check.stderr


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
