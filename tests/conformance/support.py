"""What is supported, in words, from the conformance table: a section of the README and the page docs/models.md.

`make models` writes both; a test fails when they no longer agree with the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gigrad import supported
from gigrad.importers.pipeline import TRANSFORMERS

from . import estimators
from .row import Row
from .table import ROWS

ROOT = Path(__file__).resolve().parents[2]
README, PAGE = ROOT / "README.md", ROOT / "docs" / "models.md"
BEGIN, END = "<!-- support table: written by make models -->", "<!-- end of the support table -->"

# What the importers of scikit-learn's models are about, in the order of the page. A new one needs a line here.
FAMILIES = {
    "sklearn.trees": "trees, forests, boosting",
    "sklearn.hist": "histogram boosting",
    "sklearn.linear": "linear models",
    "sklearn.net": "neural nets",
    "sklearn.kernel": "kernel machines",
    "sklearn.bayes": "Bayes classifiers",
    "sklearn.gaussian_classes": "Gaussian process classifiers",
    "sklearn.isotonic": "isotonic regression",
    "sklearn.bagging": "bagging and its kin",
    "sklearn.stacking": "stacking",
    "sklearn.calibration": "calibration",
    "sklearn.meta": "votes, searches, targets",
    "sklearn.chains": "chains",
    "sklearn.constant": "dummies",
    "pipeline.importer": "pipelines",
}
TASKS = (
    "binary", "multiclass", "regression", "several targets", "several labels", "mean and variance", "ranking",
    "survival", "outliers", "calibration", "any",
)  # fmt: skip
INTRO = """# What is supported

Written from the table that drives the conformance tests: every line below is a model that is fitted, imported, compared
with its own predictions at thresholds, beside them, at unknown categories and at missing values, and whose credits are
compared with the brute-force definition. A subclass of a supported class is read as that class. `gig.supported()` lists
the classes; [writing an importer](importer.md) adds one.
"""


def family(row: Row) -> str:
    """The heading a row belongs under."""
    if row.library != "scikit-learn":
        return row.library
    return f"scikit-learn: {FAMILIES[importer_of(row.model)]}"


def importer_of(model: str) -> str:
    """The module that imports a scikit-learn class."""
    return registered(model)[1].split(":")[0]


def registered(model: str) -> tuple[str, str]:
    """The entry of the registry that answers for a scikit-learn class: its name, and where the importer is."""
    if model == "ColumnTransformer":  # no model by itself, but the step that most pipelines begin with
        model = "Pipeline"
    entries = supported()
    for name in (cls.__name__ for cls in sklearn_class(model).__mro__):
        if f"sklearn.{name}" in entries:
            return f"sklearn.{name}", entries[f"sklearn.{name}"]
    raise KeyError(f"gigrad.supported() has no entry for {model}")


def sklearn_class(name: str) -> type:
    from importlib import import_module

    places = (
        "calibration", "compose", "cross_decomposition", "discriminant_analysis", "dummy", "ensemble", "frozen",
        "gaussian_process", "isotonic", "kernel_ridge", "linear_model", "model_selection", "multiclass", "multioutput",
        "naive_bayes", "neural_network", "pipeline", "semi_supervised", "svm", "tree",
    )  # fmt: skip
    for place in places:
        found = getattr(import_module(f"sklearn.{place}"), name, None)
        if isinstance(found, type):
            return found
    raise KeyError(f"scikit-learn has no {name} where this page looks for it")


def families() -> dict[str, list[Row]]:
    """The rows under their headings: libraries in the order of the table, scikit-learn's families in theirs."""
    order = [*dict.fromkeys(r.library for r in ROWS if r.library != "scikit-learn")]
    order += [f"scikit-learn: {title}" for title in FAMILIES.values()]
    found: dict[str, list[Row]] = {title: [] for title in order}
    for row in ROWS:
        found[family(row)].append(row)
    return {title: rows for title, rows in found.items() if rows}


def steps() -> list[str]:
    """The transformers that pipelines may hold."""
    return sorted(
        name.split(".")[1] for name in TRANSFORMERS if name.startswith("sklearn.") and not name.endswith("Mixin")
    )


def section() -> str:
    """The README's table."""
    lines = ["| | models | tasks |", "|---|---|---|"]
    for title, rows in families().items():
        models = ", ".join(f"`{m}`" for m in dict.fromkeys(r.model for r in rows))
        lines.append(f"| {title} | {models} | {', '.join(in_order(r.task for r in rows))} |")
    known = ", ".join(f"`{name}`" for name in steps())
    return (
        "\n".join(lines) + f"\n\nPipelines may hold {known} and scikit-learn's selectors, nested in any way. "
        f"[What is supported](docs/models.md) lists all {len(ROWS)} kinds of model that the tests fit and compare."
    )


def page() -> str:
    """The documentation's page."""
    parts = [INTRO]
    for title, rows in families().items():
        lines = [f"## {title[0].upper()}{title[1:]}", "", "| model | task | with |", "|---|---|---|"]
        for model, task in dict.fromkeys((r.model, r.task) for r in rows):
            options = [r.options or "defaults" for r in rows if (r.model, r.task) == (model, task)]
            lines.append(f"| `{model}` | {task} | {'; '.join(dict.fromkeys(options))} |")
        if title.endswith("pipelines"):
            lines += ["", f"Steps: {', '.join(f'`{s}`' for s in steps())} and scikit-learn's selectors."]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def in_order(tasks: Iterable[str]) -> list[str]:
    return sorted(set(tasks), key=TASKS.index)


def with_section(readme: str) -> str:
    """The README with its table written anew."""
    head, rest = readme.split(BEGIN)
    return head + BEGIN + "\n" + section() + "\n" + END + rest.split(END)[1]


if __name__ == "__main__":
    README.write_text(with_section(README.read_text()))
    PAGE.write_text(page())
    estimators.PAGE.write_text(estimators.page())
