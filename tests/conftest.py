"""What holds for every test: repeatable examples in CI, quiet threads, the fixture of real tables."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import hypothesis
import pytest

# Where CI runs, the same examples every time: a new counterexample is for a person to find, not for a landing to meet.
hypothesis.settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    hypothesis.settings.load_profile("ci")

# Threads of LightGBM and others wait for one another by spinning; where two workers share two cores that takes several
# times as long as the work itself. Read when those libraries are loaded, here and in the processes that tests start.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("KERAS_BACKEND", "torch")  # else Keras asks for TensorFlow


@pytest.fixture(scope="session")
def table() -> Callable[[str], Any]:
    """`table("german_credit")` reads one of the real tables."""
    from real_tables import real_table  # here, because it needs pandas and the core's own tests must not

    return real_table
