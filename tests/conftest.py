"""What several test files share: the real tables, where they are."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pandas as pd
import pytest

# Where CI runs, the same examples every time: a new counterexample is for a person to find, not for a landing to meet.
hypothesis.settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    hypothesis.settings.load_profile("ci")

# Threads of LightGBM and others wait for one another by spinning; where two workers share two cores that takes several
# times as long as the work itself. Read when those libraries are loaded, here and in the processes that tests start.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def real_file(name: str) -> Path:
    """Where a real table lies. The tables are not part of the project, so whoever lacks one skips its tests."""
    path = DATA / f"{name}.parquet"
    if not path.exists():
        pytest.skip(f"the real table {name}.parquet is not beside the project, in ../shared/data")
    return path


def real_table(name: str) -> Any:
    """A real table as pandas."""
    return pd.read_parquet(real_file(name))


@pytest.fixture(scope="session")
def table() -> Callable[[str], Any]:
    """`table("german_credit")` reads one of the real tables."""
    return real_table
