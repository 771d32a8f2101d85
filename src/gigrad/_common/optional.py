"""The one way to import a package that gigrad does not require."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..errors import MissingDependencyError


def require(module: str, extra: str) -> Any:
    """The imported `module`; a MissingDependencyError that names the extra if it is not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.split(".")[0]
        if error.name is None or error.name.split(".")[0] != package:
            raise
        raise MissingDependencyError(
            f'This needs the package {package}, which is not installed: pip install "gigrad[{extra}]".'
        ) from None


def frame_library(name: str) -> Any:
    """The package "pandas" or "polars", in which a table is to be returned."""
    return require(name, "polars" if name == "polars" else "frames")
