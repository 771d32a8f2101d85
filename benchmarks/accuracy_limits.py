"""What other values of the constants of accuracy cost, and whether `error` still holds with them.

    python accuracy_limits.py [--quick] [--only made | random]

Made cases: each constant has models on which it matters (`accuracy_cases/`), with credits in closed form or by the
definition, or with warnings that are known to be right. They run with values from a millionth to a million times the
one in use, and the first value on either side is noted with which one of them does not hold. Ten minutes.

Random cases: every number of the section "Accuracy" of `engine/limits.py` and of `kernels/limits.hpp` is set to a
smaller and to a larger value: half and twice where it is a factor or a share, a tenth and ten times where it is a
rounding error. With each of them random compositions (`tests/properties/compositions.py`) are explained at three
tolerances and compared with the brute-force definition, which is computed once. Some hours.

The native core is built once more, so that it reads its constants from the environment (GIGRAD_TUNED); each value has a
process of its own.

Results go to results/accuracy_limits.md, whose other part stays where only one is run.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import accuracy_ladder
from run import HERE, machine, options_on_one_thread

from gigrad.engine import limits

ROOT = HERE.parent
TESTS = (ROOT / "tests/properties", ROOT / "tests/helpers")
CASES, QUICK_CASES = 300, 6
FACTOR, EDGE = 2.0, 10.0
ROUNDING_BELOW = 1e-5  # constants below this are rounding errors: half of one shows nothing


def constants() -> dict[str, float]:
    """The numbers that accuracy depends on, of the engine and of the native core."""
    text = Path(limits.__file__).read_text().split("# Accuracy:")[1].split("# Speed:")[0]
    names = re.findall(r"^([A-Z_]+) = ", text, re.MULTILINE)
    used = {name: float(getattr(limits, name)) for name in names if isinstance(getattr(limits, name), float)}
    native = (ROOT / "src/gigrad/kernels/limits.hpp").read_text().split("---- Numbers")[1].split("----")[0]
    for name, value in re.findall(r"GIGRAD_LIMIT\(double, (\w+), (.+)\);", native):
        used.setdefault(name, float(eval(value, {})))
    return used


def others(value: float) -> tuple[float, float]:
    """A smaller and a larger value."""
    by = EDGE if value < ROUNDING_BELOW else FACTOR
    return value / by, value * by


def tuned(folder: Path, quick: bool) -> Path:
    """A Python whose gigrad reads native constants from the environment; in a quick run this one, which does not."""
    if quick:
        return Path(sys.executable)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin/python"
    here = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.run([python, "-c", here], check=True, capture_output=True, text=True).stdout.strip()
    paths = [p for p in sys.path if p.endswith("site-packages")]
    (Path(site) / "shared.pth").write_text("\n".join(paths) + "\n")
    flags = ["--no-build-isolation", "--no-deps", "-C", "cmake.define.CMAKE_CXX_FLAGS=-DGIGRAD_TUNED"]
    install = [sys.executable, "-m", "pip", "--python", python, "install", "-q", *flags, f"-Cbuild-dir={folder}/native"]
    subprocess.run([*install, ROOT], check=True)
    return python


def measured(python: Path, file: Path, cases: int, **constant: float) -> SimpleNamespace:
    """What is found with a constant of another value, or with all as they are."""
    call = f"import composition_outcomes as c; c.in_this_process(c.Path({str(file)!r}), {cases})"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, TESTS))}
    env |= {name: repr(value) for name, value in constant.items()}
    done = subprocess.run([python, "-c", call], env=env, check=True, stdout=subprocess.PIPE, text=True, cwd=HERE)
    return SimpleNamespace(**json.loads(done.stdout.splitlines()[-1]))


def rows(python: Path, file: Path, cases: int, quick: bool) -> Iterator[list[str]]:
    """A line of the table for each constant and value."""
    measured(python, file, cases)  # writes the file
    usual = measured(python, file, cases)
    yield ["as they are", "", "", "", f"{usual.worst:.2g}", str(usual.above), str(usual.warned)]
    used = constants()
    for name in list(used)[: 1 if quick else None]:
        for value in others(used[name]):
            found = measured(python, file, cases, **{name: value})
            changed = sum(a != b for a, b in zip(found.values, usual.values, strict=True))
            yield [
                f"`{name}`", f"{used[name]:.3g}", f"{value:.3g}", str(changed), f"{found.worst:.2g}", str(found.above),
                str(found.warned),
            ]  # fmt: skip


RANDOM, MADE = "## Random cases", "## Made cases"


def made_text(lines: list[list[str]]) -> list[str]:
    facts = machine()
    return [
        "Models made so that one constant matters, with values from a millionth to a million times the one in use. "
        "With the values in use all of them hold.",
        "",
        "- half, twice: credits, errors and messages that are not the same bits as with the value in use, of how many; "
        "`other` where there are more or fewer messages",
        "- breaks below, above: the nearest smaller and larger value that was tried with which a case does not hold, "
        "and what is wrong: the error of a credit is larger than `error` by that factor, or a warning is false or "
        "missing. `none at` is the farthest value that was tried, where all still hold, with how many numbers change: "
        "but for cost, this side of the constant decides nothing that a case could show",
        "",
        f"Measured on {facts['date']}, {facts['processor']}, one thread, load {facts['load']}.",
        "",
        "| constant | used | half | twice | breaks below | breaks above |",
        "|---|---|---|---|---|---|",
        *(f"| {' | '.join(line)} |" for line in lines),
    ]


def random_text(lines: list[list[str]], cases: int) -> list[str]:
    facts = machine()
    return [
        f"What other values of the constants of accuracy do to the credits of {cases} random compositions of every "
        f"kind of node, and of {cases // 16} nets with kinks that are functions to the engine: two pairs each, at tol "
        "1e-3, 1e-6 and 1e-9. Constants that are whole numbers are not among them.",
        "",
        "- changed: credits and errors that are not the same bits as with the value in use; none where no composition "
        "depends on the constant: see its made cases",
        "- worst: the largest true error, as a multiple of `error` and of what the definition may be off by",
        "- above 1: rows for which it is larger than 1, so that `error` did not hold",
        "- warned: calls that warn of their accuracy",
        "",
        f"Measured on {facts['date']}, {facts['processor']}, one thread, load {facts['load']}.",
        "",
        "| constant | used | other value | changed | worst | above 1 | warned |",
        "|---|---|---|---|---|---|---|",
        *(f"| {' | '.join(line)} |" for line in lines),
    ]


def write(folder: Path, parts: dict[str, list[str]]) -> None:
    """The page: the new parts, and what it had of the others."""
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "accuracy_limits.md"
    before = page.read_text() if page.exists() else ""
    texts = []
    for title in (MADE, RANDOM):
        if title in parts:
            texts.append("\n".join([title, "", *parts[title]]))
        elif title in before:
            texts.append(title + before.partition(title)[2].partition("\n## ")[0].rstrip())
    page.write_text("\n\n".join(texts) + "\n")


def main() -> None:
    options = options_on_one_thread(
        __doc__, {"--cases": {"type": int, "default": CASES}, "--only": {"choices": ("made", "random")}}
    )
    cases, parts = (QUICK_CASES if options.quick else options.cases), dict[str, list[str]]()
    with tempfile.TemporaryDirectory() as folder:
        python = tuned(Path(folder) / "tuned", options.quick)
        if options.only != "random":
            for name, said in accuracy_ladder.as_they_are(python):
                raise AssertionError(f"{name}: {said}")
            parts[MADE] = made_text(told(accuracy_ladder.rows(python, options.quick)))
        if options.only != "made":
            found = told(rows(python, Path(folder) / "wanted.pickle", cases, options.quick))
            parts[RANDOM] = random_text(found, cases)
    write(options.folder, parts)


def told(lines: Iterator[list[str]]) -> list[list[str]]:
    """The lines, each printed as soon as it is known."""
    out = []
    for line in lines:
        out.append(line)
        print(*line, flush=True)
    return out


if __name__ == "__main__":
    main()
