"""The bridge to shap: its own plots draw what `to_shap` gives, and read the same numbers from it."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pytest
from made import made

mpl.use("Agg")
import matplotlib.pyplot as plt
import shap
from matplotlib.text import Text

PLOTS = {
    "waterfall": lambda s: shap.plots.waterfall(s[0], show=False),
    "beeswarm": lambda s: shap.plots.beeswarm(s, show=False),
    "bar": lambda s: shap.plots.bar(s, show=False),
    "scatter": lambda s: shap.plots.scatter(s[:, 1], show=False),
    "force": lambda s: shap.plots.force(s[0], matplotlib=True, show=False),
    "heatmap": lambda s: shap.plots.heatmap(s, show=False),
}


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["numpy", "pandas", "polars", "arrow"])
@pytest.mark.parametrize("name", PLOTS)
def test_shaps_plots_draw_it(name: str, kind: str) -> None:
    PLOTS[name](made(n=20, kind=kind).to_shap())
    figure = plt.gcf()
    figure.canvas.draw()
    words = " ".join(t.get_text() for t in figure.findobj(Text))
    assert "f1" in words


@pytest.mark.filterwarnings("ignore")
def test_shaps_waterfall_shows_categories_by_their_labels() -> None:
    e = made(n=20)
    row = next(i for i, v in enumerate(np.asarray(e.raw("f0"))) if v == "rent")
    shap.plots.waterfall(e.to_shap()[row], show=False)
    assert "rent = f0" in " ".join(t.get_text() for t in plt.gcf().findobj(Text))


@pytest.mark.parametrize("k", [None, 3])
def test_the_numbers_are_the_same(k: int | None) -> None:
    e = made(k=k)
    s = e.to_shap()
    np.testing.assert_array_equal(s.values, e.values)
    np.testing.assert_array_equal(s.base_values, e.base_values)
    assert list(s.feature_names) == list(e.feature_names)
    np.testing.assert_allclose(s.base_values + s.values.sum(axis=1), e.predictions, atol=1e-10)
    numbers = np.asarray(e.raw("f1"))
    known = ~np.isnan(numbers)
    np.testing.assert_array_equal(s.data[known, 1], numbers[known])


def test_what_was_sliced_away_becomes_a_feature_so_that_the_sum_holds() -> None:
    e = made()[:, ["f0", "f2"]]
    s = e.to_shap()
    assert list(s.feature_names) == ["f0", "f2", "features left out"]
    np.testing.assert_allclose(s.base_values + s.values.sum(axis=1), e.predictions, atol=1e-10)
