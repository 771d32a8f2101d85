"""The types that the native core is checked by are those of the compiled module."""

from __future__ import annotations

import pytest

pytest.importorskip("nanobind", reason="nanobind is needed to build, not to run")

from project.stub import FILE, generated


def test_the_stub_is_that_of_the_compiled_module() -> None:
    assert FILE.read_text() == generated(), "write it anew: python tests/project/stub.py"
