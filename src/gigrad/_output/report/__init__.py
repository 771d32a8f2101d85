"""One HTML file that shows an explanation: no network, no server, nothing to install to read it."""

from .write import render, report_path, write

__all__ = ["render", "report_path", "write"]
