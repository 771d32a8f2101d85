"""Run the Python snippets of a page, in order, and hold what they print against the page.

    python docs/outputs.py docs/start.md             # write what each snippet printed below it
    python docs/outputs.py --check docs/start.md     # exit 1 if a snippet fails or prints something else

A ```text block right below a ```python block shows what that snippet prints. Checking leaves digits out, since they
change with the versions of the model libraries. A comment right above a snippet leaves it out: `<!-- needs ray -->`
where that package is not installed, `<!-- not run: the reason -->` everywhere.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import sys
import traceback
from pathlib import Path

SNIPPET = re.compile(
    r"^(?:<!-- (?P<mark>not run: .+|needs (?P<package>\w+)) -->\n)?"
    r"```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<shown>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)
NUMBER = re.compile(r"[-+]?\d[\d.,]*(e[-+]?\d+)?")


def words(text: str) -> list[str]:
    """What does not depend on a model's digits or on the width they take."""
    return NUMBER.sub("#", text).split()


def rewritten(page: Path) -> tuple[str, list[str]]:
    """The page with the outputs of this run, and the complaints about those it has."""
    complaints: list[str] = []
    scope: dict[str, object] = {
        "__name__": "__main__"
    }  # as a reader's own session calls itself

    def run(found: re.Match[str]) -> str:
        code, shown, package = found["code"], found["shown"], found["package"]
        if package and not importlib.util.find_spec(package):
            print(f"{page.name}: a snippet was left out, since it needs {package}.")
            return found[0]
        if found["mark"] and not package:
            return found[0]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page.name, "exec"), scope)
        out = printed.getvalue().rstrip()
        if shown is None:
            return found[0]
        if words(out) != words(shown):
            complaints.append(
                f"{page.name} shows\n{shown}\nbut this is printed:\n{out}\n"
            )
        return found[0].replace(f"```text\n{shown}```\n", f"```text\n{out}\n```\n")

    return SNIPPET.sub(run, page.read_text()), complaints


def main(arguments: list[str]) -> int:
    """The exit code: 1 if a page does not hold."""
    check = "--check" in arguments
    failed = 0
    for name in arguments:
        if name.startswith("--"):
            continue
        page = Path(name)
        try:
            text, complaints = rewritten(page)
        except Exception:
            traceback.print_exc()
            failed = 1
            continue
        if not check:
            page.write_text(text)
        elif complaints:
            print("\n".join(complaints))
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
