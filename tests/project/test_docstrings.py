"""Every public name says what it gives and shows it: its docstring has an example, and the example runs."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import matplotlib.pyplot as plt
import pytest

import gigrad as gig

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE_NAMES = {"tree", "model", "X", "bad", "risk", "approved"}
WIDEST = 93  # characters of an example that fit its page, at the width of a laptop
MODULES: tuple[str, ...] = ("references", "plots", "batch", "portable", "serve", "mlflow", "spark", "testing")
MODULES += ("datasets", "configuration")
WITHOUT_EXAMPLE = {
    "batch.Summary",  # seen in the example of batch.run
    "serve.run",  # serves until it is stopped: see tests/serve
    "mlflow.load_explainer",  # seen in the example of mlflow.log_explainer: a store takes seconds to set up
    "testing.ImporterReport",  # and of testing.check_importer
    "testing.Corner", "testing.find_corners", "testing.thresholds", "testing.jumping_columns", "testing.edge_tables",
    "testing.has_gradient", "testing.gradient", "testing.reads_scores",  # parts of the definition, for tests of engines
    "spark.explain", "spark.reasons", "spark.rejects", "spark.local_session",  # need Java: see tests/spark
}  # fmt: skip


def public_names() -> Iterator[tuple[str, Any]]:
    """Every public function and class, each once, under the shortest name a user would call it by."""
    modules = {"": gig} | {f"{name}.": importlib.import_module(f"gigrad.{name}") for name in MODULES}
    seen: set[int] = set()
    for prefix, module in modules.items():
        own = [n for n, v in vars(module).items() if n[0] != "_" and getattr(v, "__module__", "") == module.__name__]
        for name in getattr(module, "__all__", own):
            value = getattr(module, name)
            if id(value) not in seen and (inspect.isfunction(value) or inspect.isclass(value)):
                seen.add(id(value))
                yield prefix + name, value


def methods_with_examples() -> Iterator[tuple[str, Any]]:
    """Every method of a public class whose docstring has an example."""
    for name, value in NAMES.items():
        for own, method in vars(value).items() if inspect.isclass(value) else ():
            if isinstance(method, (FunctionType, classmethod)) and ">>>" in (method.__doc__ or ""):
                yield f"{name}.{own}", method


NAMES = dict(public_names())
EXCEPTIONS = {name for name, value in NAMES.items() if inspect.isclass(value) and issubclass(value, Exception)}
METHODS = dict(methods_with_examples())
EXAMPLES = sorted({*NAMES, *METHODS} - EXCEPTIONS - WITHOUT_EXAMPLE)


@pytest.fixture(scope="module")
def known() -> dict[str, Any]:
    """What examples may name without making it: as the page of the reference introduces it."""
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "api.md").read_text(), re.DOTALL)[:1]
    made: dict[str, Any] = {}
    exec(code, made)
    return {name: value for name, value in made.items() if name in EXAMPLE_NAMES}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_says_what_it_gives(name: str) -> None:
    text = inspect.getdoc(NAMES[name])
    assert text, name
    assert text.splitlines()[0].endswith((".", ":")), name


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_runs(name: str, known: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plt.switch_backend("Agg")
    monkeypatch.chdir(tmp_path)
    value = METHODS[name] if name in METHODS else NAMES[name]
    found = doctest.DocTestParser().get_doctest(inspect.getdoc(value) or "", dict(known), name, None, 0)
    assert found.examples, f"{name} has no example"
    assert all(len(line) + 4 <= WIDEST for each in found.examples for line in each.source.splitlines()), name
    said: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(found, out=said.append)
    plt.close("all")
    assert not said, "".join(said)


def test_the_list_of_exceptions_is_not_longer_than_needed() -> None:
    assert set(NAMES) >= WITHOUT_EXAMPLE
