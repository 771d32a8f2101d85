"""Sphinx settings: MyST pages, numpydoc, the gallery of examples; nothing on a page needs a network."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path

import gigrad

project = "gigrad"
author = "The gigrad contributors"
copyright = "2026, the gigrad contributors"
version = release = gigrad.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "_results.md", "decisions"]

autosummary_generate = True
templates_path = ["_templates"]
default_role = "literal"  # docstrings write `names` with single backticks
numpydoc_show_class_members = False
autodoc_typehints = "none"  # numpydoc says them in words
toc_object_entries_show_parents = (
    "hide"  # beside a page there is room for a name alone
)

# The examples run while the pages are built, on small data, so that each page shows what its code prints and draws.
os.environ.setdefault("GIGRAD_QUICK", "1")
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_|writing_",  # the Spark job needs Java, so it is shown and not run
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "show_memory": False,
    "capture_repr": (),  # what is printed, not what a call happens to return
    "write_computation_times": False,  # that page would load scripts from a network
}
warnings.filterwarnings("ignore", message=".*non-interactive.*")

html_theme = "pydata_sphinx_theme"
html_title = f"gigrad {release}"  # every version has pages of its own
html_static_path = ["_static"]
html_css_files = ["gigrad.css"]
html_show_sourcelink = False
html_sidebars = {"index": [], "start": []}  # alone in their sections
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 6,
}


def measured() -> None:
    """What benchmarks/ last measured, as one page part that speed.md includes."""
    here = Path(__file__).parent
    found = sorted(
        (here.parent / "benchmarks" / "results").glob("*.md"), reverse=True
    )  # trees first
    parts = [
        f"## {path.stem.replace('_', ' ').capitalize()}\n\n{path.read_text()}"
        for path in found
    ]
    for breaks, whole in (  # a number and its unit, or its power, stay on one line
        (r"(?<=\d) (?=(?:s|ms|us|ns|MB) )", "\N{NO-BREAK SPACE}"),
        (r"(?<=\de)-(?=\d)", "\N{NON-BREAKING HYPHEN}"),
    ):
        parts = [re.sub(breaks, whole, part) for part in parts]
    parts = [
        part.replace("](growth.png)", "](../benchmarks/results/growth.png)")
        for part in parts
    ]
    (here / "_results.md").write_text(
        "\n\n".join(parts) or "`make bench` measures it on your machine.\n"
    )


measured()
