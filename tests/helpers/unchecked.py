"""Arguments that are wrong on purpose."""

from __future__ import annotations

from typing import Any


def unchecked(value: object) -> Any:
    """The value itself, whose type no checker looks at."""
    return value
