"""The shape of the package: public names, who may import whom, and what `import gigrad` costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import gigrad

SOURCE = Path(gigrad.__file__).parent

# who -> whom it may import, of ours
ALLOWED = {
    "kernels": {"kernels"},
    "graph": {"graph", "errors", "kernels", "tables", "portable"},
    "importers": {"importers", "checks", "graph", "errors", "tables", "kernels", "compose", "optional"},
    "engine": {"engine", "graph", "errors", "kernels"},
    "plots": {"plots", "checks", "explanation", "paths", "frames", "views", "display", "optional", "errors"},
    "reporting": {
        "reporting",
        "checks",
        "explanation",
        "paths",
        "frames",
        "views",
        "display",
        "notebook",
        "optional",
        "durable",
    },
    "adverse": {
        "adverse",
        "checks",
        "durable",
        "spreadsheet",
        "references",
        "explanation",
        "display",
        "optional",
        "errors",
        "graph",
    },
    "references": {"references", "checks", "display", "errors", "graph", "tables"},
}


def imports_of(path: Path) -> set[str]:
    """The parts of gigrad that a file imports, by the first name below the package."""
    found: set[str] = set()
    package = path.relative_to(SOURCE).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("gigrad.")}
        elif isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - (node.level - 1)]
            whole = [*base, *(node.module.split(".") if node.module else [])]
            found |= {whole[0]} if whole else {a.name for a in node.names}
    return found


@pytest.mark.parametrize("part", ALLOWED)
def test_parts_import_only_what_the_flow_allows(part: str) -> None:
    for path in (SOURCE / part).rglob("*.py"):
        assert imports_of(path) <= ALLOWED[part], path


def test_every_public_name_exists_and_the_list_is_sorted() -> None:
    assert list(gigrad.__all__) == sorted(gigrad.__all__)
    for name in gigrad.__all__:
        assert getattr(gigrad, name) is not None


def test_editors_and_the_interpreter_see_the_same_names() -> None:
    seen: dict[str, str] = {}
    for block in ast.parse((SOURCE / "__init__.py").read_text()).body:
        if isinstance(block, ast.If):
            for line in ast.walk(block):
                if isinstance(line, ast.ImportFrom):
                    seen |= {a.name: line.module or a.name for a in line.names}
    assert seen == gigrad._HOMES


def test_no_module_bears_the_name_of_a_public_function() -> None:
    modules = {path.stem for path in SOURCE.iterdir()}
    assert {name for name, home in gigrad._HOMES.items() if name in modules and name != home} == set()


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'explian'"):
        _ = gigrad.explian


def test_importing_gigrad_loads_no_model_library_and_no_table_library() -> None:
    code = (
        "import sys, gigrad; [getattr(gigrad, n) for n in gigrad.__all__]; "
        "print(' '.join(sorted({m.split('.')[0] for m in sys.modules})))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {
        "xgboost",
        "lightgbm",
        "catboost",
        "sklearn",
        "torch",
        "pandas",
        "polars",
        "pyarrow",
        "scipy",
        "shap",
        "matplotlib",
        "jinja2",
    }
    assert not heavy & set(loaded)
