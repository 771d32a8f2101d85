"""How pictures look, beside pictures that were looked at.

    PYTHONPATH=tests/helpers python tests/plots/test_baseline.py [names]

draws the pictures to compare with again; look at them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.axes
import matplotlib.legend
import matplotlib.pyplot as plt
import matplotlib.text
import pytest
from made import made, made_pairs
from matplotlib.testing.compare import compare_images
from pictured import made_change, made_comparison, made_interactions, made_what_if, plane, plane_explanation, two_valued

from gigrad import plots

BASELINE = Path(__file__).parent / "baseline"


def pictures() -> dict[str, Callable[[], Any]]:
    few, many = made(p=6, paths=True), made(n=120, p=20)
    e, start = plane_explanation()
    return {
        "waterfall": lambda: plots.waterfall(few[2]),
        "bar": lambda: plots.bar(many, top=5),
        "bar_cohorts": lambda: plots.bar({"first": many[:60], "second": many[60:]}, top=5),
        "bar_classes": lambda: plots.bar(made(n=120, p=8, k=3), top=5),
        "bar_classes_row": lambda: plots.bar(made(n=3, p=4, k=3)[0]),
        "beeswarm": lambda: plots.beeswarm(many, top=6),
        "scatter": lambda: plots.scatter(many, "f1", color="f0"),
        "scatter_two": lambda: plots.scatter(two_valued(many, "f2"), "f1", color="f2"),
        "waterfall_pair": lambda: plots.waterfall(made_pairs()[0]),
        "heatmap": lambda: plots.heatmap(many, top=6),
        "path": lambda: plots.path(few[2]),
        "surface": lambda: plots.surface(e, plane, start)[0],
        "change": lambda: plots.change(made_change()[3]),
        "change of many": lambda: plots.change(made_change()),
        "comparison": lambda: plots.comparison(made_comparison()[1]),
        "interactions": lambda: plots.interactions(made_interactions()[2], top=5),
        "interactions of many": lambda: plots.interactions(made_interactions()),
        "what if": lambda: plots.what_if(made_what_if()).axes[0],
    }


def draw(name: str, folder: Path) -> Path:
    mpl.rcdefaults()
    mpl.use("Agg")
    out = folder / f"{name}.png"
    figure = pictures()[name]().figure
    for ax in figure.findobj(mpl.axes.Axes):
        ax.tick_params(labelleft=False, labelbottom=False, labelright=False, labeltop=False)
    # letters differ with the font renderer, and move everything else with them; what they say is tested above
    for lettering in [*figure.findobj(mpl.text.Text), *figure.findobj(mpl.legend.Legend)]:
        lettering.set_visible(False)
    figure.savefig(out, dpi=50, metadata={"Software": None})
    plt.close("all")
    return out


@pytest.mark.parametrize("name", pictures())
def test_pictures_look_as_they_did_when_looked_at(name: str, tmp_path: Path) -> None:
    difference = compare_images(str(BASELINE / f"{name}.png"), str(draw(name, tmp_path)), tol=5)
    assert difference is None, difference


if __name__ == "__main__":
    BASELINE.mkdir(exist_ok=True)
    for picture in sys.argv[1:] or pictures():
        print(draw(picture, BASELINE))
