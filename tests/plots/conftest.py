"""Every picture is drawn with matplotlib's defaults, without a screen, and closed afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib as mpl
import pytest

mpl.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    with mpl.rc_context():
        mpl.rcdefaults()
        yield
        plt.close("all")
