"""The shape of the package: public names, who may import whom, and what `import gigrad` costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import gigrad
from gigrad.graph import Column, Input

SOURCE = Path(gigrad.__file__).parent

# who -> whom it may import, of ours: a folder, or one module of a private package
ALLOWED: dict[str, set[str]] = {
    "kernels": set(),
    "_common": {"errors", "kernels"},
    "graph": {"errors", "kernels", "_io.tables", "portable"},
    "importers": {"graph", "kernels", "errors", "_io.tables", "_common"},
    "engine": {"graph", "errors", "kernels"},
    "portable": {"errors", "graph", "engine", "_common", "_explain", "_io"},
    "_io": {"engine", "graph", "importers", "portable", "errors", "_common"},
    "_explain": {"engine", "graph", "importers", "references", "portable", "errors", "configuration"}
    | {"_common", "_io", "_output"},
    "_output": {
        "errors",
        "_common",
        "_io.durable",
        "_io.provenance",
        "_explain.reference_parts",
        "_explain.explanation",
        "_explain.paths",
    },
    "_questions": {
        "engine",
        "graph",
        "importers",
        "references",
        "errors",
        "configuration",
        "_common",
        "_explain",
        "_io",
    },
    "plots": {"errors", "_common", "_explain.explanation", "_explain.paths", "_output", "_questions"},
    "_reasons": {
        "engine",
        "graph",
        "references",
        "errors",
        "configuration",
        "_common",
        "_explain",
        "_io",
        "_output.spreadsheet",
    },
    "references": {"errors", "graph", "_common", "_io.tables"},
    "testing": {"errors", "graph", "importers", "_explain", "_io.tables"},
    "batch": {"errors", "graph", "references", "configuration", "_common", "_explain", "_io", "_output", "_questions"}
    | {"_reasons"},
    "spark": {"errors", "portable", "batch", "_common", "_explain", "_reasons"},
    "serve": {"errors", "references", "_common", "_explain", "_io.records", "_reasons"},
    "cli": {"errors", "graph", "importers", "kernels", "references", "portable", "batch", "demo", "serve", "spark"}
    | {"_common", "_explain", "_io", "_output", "_reasons", "plots"},
}
MODULES: dict[str, set[str]] = {
    "errors": set(),
    "configuration": {"errors", "kernels"},
    "datasets": {"_common"},
    "demo": {"_common", "datasets"},
    "mlflow": {"errors", "portable", "references", "_common", "_explain"},
    "__main__": {"cli"},
}
# what gives reasons for an explanation sees the explanation alone; what explains by itself needs more
REASONS_SEE = {"errors", "graph", "references", "_common", "_explain.explanation", "_io.durable", "_output.spreadsheet"}
EXPLAINS_AGAIN = {"classic.py", "stability.py", "trials.py", "verification.py"}


def imports_of(path: Path) -> set[str]:
    """The parts of gigrad that a file imports from outside its folder: "engine", "_io.tables"."""
    found: set[str] = set()
    own = path.relative_to(SOURCE).parts[0]
    package = path.relative_to(SOURCE).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[list[str]] = []
        if isinstance(node, ast.Import):
            names = [a.name.split(".")[1:] for a in node.names if a.name.startswith("gigrad.")]
        elif isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - (node.level - 1)]
            whole = [*base, *(node.module.split(".") if node.module else [])]
            names = [[*whole, a.name] for a in node.names]
        found |= {
            ".".join(n[: 2 if n[0].startswith("_") else 1]) for n in names if n and n[0] not in (own, "__version__")
        }
    return found


def within(part: str, allowed: set[str]) -> bool:
    return part in allowed or part.split(".")[0] in allowed


def test_every_folder_and_module_has_an_import_rule() -> None:
    assert {path.parent.name for path in SOURCE.glob("*/__init__.py")} == set(ALLOWED)
    assert {path.stem for path in SOURCE.glob("*.py")} - {"__init__"} == set(MODULES)


@pytest.mark.parametrize("part", ALLOWED)
def test_parts_import_only_what_the_flow_allows(part: str) -> None:
    for path in (SOURCE / part).rglob("*.py"):
        assert {found for found in imports_of(path) if not within(found, ALLOWED[part])} == set(), path


@pytest.mark.parametrize("module", MODULES)
def test_modules_import_only_what_the_flow_allows(module: str) -> None:
    found = imports_of(SOURCE / f"{module}.py")
    assert {part for part in found if not within(part, MODULES[module])} == set()


def test_reasons_see_only_the_explanation() -> None:
    for path in (SOURCE / "_reasons").glob("*.py"):
        if path.name not in EXPLAINS_AGAIN:
            assert {found for found in imports_of(path) if not within(found, REASONS_SEE)} == set(), path


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


HEAVY = {"xgboost", "lightgbm", "catboost", "sklearn", "torch", "pandas", "polars", "pyarrow", "scipy", "shap"}
HEAVY |= {"matplotlib", "jinja2"}


def test_a_loaded_explainer_explains_a_record_without_any_of_them(tmp_path: Path) -> None:
    graph = gigrad.Graph((Column("x"),), source := Input(1), source, source, ("y",), named=True)
    gigrad.Explainer(graph, [[0.0]]).save(tmp_path / "x.gig")
    code = (
        "import sys, gigrad; print(gigrad.Explainer.load(sys.argv[1]).one({'x': 2}).values, "
        "*{m.split('.')[0] for m in sys.modules}, *(m for m in sys.modules if m.startswith('gigrad.')))"
    )
    line = [sys.executable, "-c", code, str(tmp_path / "x.gig")]
    said = subprocess.run(line, capture_output=True, text=True, check=True).stdout.split()
    assert said[0] == "[[2.]]"
    assert not (HEAVY | {"gigrad.references", "gigrad.plots", "gigrad.batch", "gigrad.cli"}) & set(said)


def test_importing_gigrad_loads_no_model_library_and_no_table_library() -> None:
    code = (
        "import sys, gigrad; [getattr(gigrad, n) for n in gigrad.__all__]; "
        "print(' '.join(sorted({m.split('.')[0] for m in sys.modules})))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not HEAVY & set(loaded)
