"""One Spark session for all tests of this folder: starting it takes longer than most of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from gigrad.spark import local_session

    session = local_session(2)
    session.sparkContext.setLogLevel("OFF")
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 20_000)
    yield session
    session.stop()
