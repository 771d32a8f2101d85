"""The real tables, where they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def real_file(name: str) -> Path:
    """Where a real table lies. The tables are not part of the project, so whoever lacks one skips its tests."""
    path = DATA / f"{name}.parquet"
    if not path.exists():
        pytest.skip(f"the real table {name}.parquet is not beside the project, in ../shared/data")
    return path


def real_table(name: str) -> Any:
    """A real table as pandas."""
    return pd.read_parquet(real_file(name))
