"""Every snippet of the README and the pages runs, page by page, as a reader would type it, and prints what is shown."""

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


def run(*command: Path | str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "MPLBACKEND": "Agg", "GIGRAD_QUICK": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=folder, env=environment, check=False
    )


@pytest.mark.parametrize("page", [p for p in PAGES if snippets(p)], ids=lambda p: p.stem)
def test_snippets_run_and_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    done = run(ROOT / "docs" / "outputs.py", "--check", page, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    if commands := snippets(page, "bash"):
        check = subprocess.run(
            ["bash", "-ec", SHELL + commands], capture_output=True, text=True, cwd=tmp_path, check=False
        )
        assert check.returncode == 0, check.stdout + check.stderr


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_examples_run(example: Path) -> None:
    done = run(example, folder=example.parent)  # from where they find ../shared
    if "skipped:" in done.stdout:
        pytest.skip(done.stdout.split("skipped:")[1].strip())
    assert done.returncode == 0, done.stdout + done.stderr


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([\w/.-]+\.md)\)", page.read_text()):
            assert (page.parent / target).exists(), (page.name, target)


def test_a_page_that_shows_something_else_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for shown, code in (("12 rows", 0), ("13 rows", 0), ("12 lines", 1)):  # digits may change with a library's version
        page.write_text(f"```python\nprint(12, 'rows')\n```\n\n```text\n{shown}\n```\n")
        assert run(ROOT / "docs" / "outputs.py", "--check", page, folder=tmp_path).returncode == code
    page.write_text("```python\nraise ValueError('no')\n```\n")
    assert "ValueError: no" in run(ROOT / "docs" / "outputs.py", "--check", page, folder=tmp_path).stderr


def test_code_fits_the_page() -> None:
    """Beyond 86 characters a reader has to scroll sideways, at the width of a desktop."""
    for page in PAGES:
        blocks = [snippets(page, language) for language in ("python", "text", "bash")]
        assert all(len(line) <= 86 for block in blocks for line in block.splitlines()), page.name
