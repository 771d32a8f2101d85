"""A self-contained HTML report of an explanation: no network, no server, nothing to install."""

from .write import render, report_path, write

__all__ = ["render", "report_path", "write"]
