"""Texts that a spreadsheet would run as a formula: the one rule for every CSV file that gigrad writes.

The patterns are plain enough to mean the same to Python and to Arrow.
"""

from __future__ import annotations

import re

FORMULA = r"^[=+\-@\t\r]"
"""How a text begins that a spreadsheet takes for a formula."""
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
"""A number written as text, which is harmless whatever its sign."""


def harmless(text: str) -> str:
    """The text, with an apostrophe before it where a spreadsheet would run it."""
    return f"'{text}" if re.match(FORMULA, text) and not re.fullmatch(NUMBER, text) else text
