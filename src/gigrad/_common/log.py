"""One tree of loggers, silent unless configured: `logging.getLogger("gigrad")` is its root.

gigrad.batch      runs over tables: begun, resumed, each part, out of tolerance, done
gigrad.audit      ledgers written and verified
gigrad.models     model files that are read
gigrad.monitor    comparisons of two runs
gigrad.serve      a service: stopped, requests that failed
gigrad.spark      jobs that are handed to Spark
gigrad.cli        commands: arguments and exit codes

INFO has the steps of a run, DEBUG its parts, WARNING what needs attention. No cell of a table is ever logged.
"""

from __future__ import annotations

import logging

NAMES = ("audit", "batch", "cli", "models", "monitor", "serve", "spark")
logging.getLogger("gigrad").addHandler(logging.NullHandler())


def logger(name: str) -> logging.Logger:
    """The logger of a part of gigrad."""
    return logging.getLogger(f"gigrad.{name}")
