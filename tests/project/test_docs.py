"""Every snippet of the README and the pages runs, page by page, as a reader would type it, and prints what is shown."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SHELL = f'gigrad() {{ "{sys.executable}" -m gigrad "$@"; }}\n'  # the command of this very environment
REASON = re.compile(r"<!-- not run: .+ -->\n")
NO_CODE = {"{figure}", "{toctree}", "{include}"}  # what a page may hold besides: nothing that a reader would type
RST_CODE = re.compile(r"^(?!\.\. ).*::$|>>>|^\.\. (code|code-block|sourcecode|doctest|literalinclude)::", re.MULTILINE)


class Block(NamedTuple):
    """A block of code as a Markdown reader sees it, not as a pattern that somebody could write around."""

    kind: str  # the word beside the fence; "" where there is none
    code: str
    above: str  # the comment right above it
    follows: str  # the kind of the block right above it


def blocks(text: str) -> Iterator[Block]:
    above = follows = ""
    for token in MarkdownIt("commonmark").parse(text):
        if token.type in ("fence", "code_block"):
            kind = "indented" if token.type == "code_block" else token.info.strip()
            yield Block(kind, token.content, above, follows)
            above, follows = "", kind
        else:
            above, follows = token.content if token.type == "html_block" else "", ""


def snippets(page: Path, language: str = "python") -> str:
    """The blocks of a page in one language that are run, joined."""
    return "\n".join(b.code for b in blocks(page.read_text()) if b.kind == language and not REASON.fullmatch(b.above))


def left_out(text: str) -> list[str]:
    """What stands on a page as code, and is neither run, nor shown by what is run, nor left out for a stated reason."""
    run_by_outputs = re.findall(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    complaints = re.findall(r"<(?:pre|code)\b.*", text)
    for kind, code, above, follows in blocks(text):
        name, _, what = kind.partition(" ")
        if name == "{literalinclude}":  # a part of an example, which a test runs as a whole
            fine = (ROOT / "docs" / what).resolve() in EXAMPLES
        elif name == "{eval-rst}":
            fine = not RST_CODE.search(code)
        else:
            fine = (
                name in NO_CODE
                or kind == "bash"
                or (kind == "python" and code in run_by_outputs)
                or (kind == "text" and follows == "python")
                or (kind in ("python", "text", "toml") and bool(REASON.fullmatch(above)))
            )
        if not fine:
            complaints.append(f"{kind}: {code}")
    return complaints


def run(*command: Path | str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "MPLBACKEND": "Agg", "GIGRAD_QUICK": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=folder, env=environment, check=False
    )


@pytest.mark.parametrize("page", [p for p in PAGES if snippets(p) + snippets(p, "bash")], ids=lambda p: p.stem)
def test_snippets_run_and_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    done = run(ROOT / "docs" / "outputs.py", "--check", page, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    if commands := snippets(page, "bash"):
        check = subprocess.run(
            ["bash", "-ec", SHELL + commands], capture_output=True, text=True, cwd=tmp_path, check=False
        )
        assert check.returncode == 0, check.stdout + check.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_every_block_of_code_is_run_or_says_why_not(page: Path) -> None:
    assert left_out(page.read_text()) == []


@pytest.mark.parametrize(
    "text",
    [
        "Look:\n\n    e.values\n",
        "```py\nprint(1)\n```\n",
        "```Python\nprint(1)\n```\n",
        "```\nprint(1)\n```\n",
        "~~~python\nprint(1)\n~~~\n",
        "- an item\n\n  ```python\n  print(1)\n  ```\n",
        "```{code-block} python\nprint(1)\n```\n",
        "````{tab-set}\n```python\nprint(1)\n```\n````\n",
        "```{literalinclude} ../src/gigrad/demo.py\n```\n",
        "```{eval-rst}\n.. code-block:: python\n\n   print(1)\n```\n",
        "<pre>print(1)</pre>\n",
        "```text\nno snippet printed this\n```\n",
        "<!-- not run: -->\n```text\nno reason\n```\n",
        "<!-- not run: too far away -->\n\nWords.\n\n```text\n1\n```\n",
    ],
)
def test_code_that_nothing_runs_is_noticed(text: str) -> None:
    assert left_out(text)


def test_what_is_run_and_what_has_a_reason_may_stay() -> None:
    run = "```python\nprint(1)\n```\n\n```text\n1\n```\n\n```bash\ngigrad --version\n```\n"
    assert left_out(run + "\n<!-- not run: a drawing -->\n```text\na -> b\n```\n") == []


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
    failing = "```python\nraise ValueError('no')\n```\n"
    page.write_text(failing)
    assert "ValueError: no" in run(ROOT / "docs" / "outputs.py", "--check", page, folder=tmp_path).stderr
    for mark in ("not run: it fails", "needs a_package_that_nobody_has"):
        page.write_text(f"<!-- {mark} -->\n{failing}")
        assert run(ROOT / "docs" / "outputs.py", "--check", page, folder=tmp_path).returncode == 0


def test_code_fits_the_page() -> None:
    """Beyond 86 characters a reader has to scroll sideways, at the width of a desktop."""
    for page in PAGES:
        lines = [
            line for block in blocks(page.read_text()) for line in block.code.splitlines() if block.kind[:1] != "{"
        ]
        assert all(len(line) <= 86 for line in lines), page.name
