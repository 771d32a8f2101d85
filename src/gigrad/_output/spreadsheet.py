"""Escaping of texts that a spreadsheet would run as a formula, for every CSV file that gigrad writes.

The patterns mean the same in Python's and in Arrow's regular expressions.
"""

from __future__ import annotations

import re

_SPACE = (
    " \t\r\n\v\f\u00a0\u1680\u2000-\u200d\u2028\u2029\u202f\u205f\u2060\u3000\ufeff"  # whitespace that may be trimmed
)
_SIGNS = "=+@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212\\-"  # full-width and small ones are read as these
FORMULA = f"^[{_SPACE}]*[{_SIGNS}]|^[\t\r\n]"
"""The beginning of a text that a spreadsheet, after trimming, runs as a formula."""
NUMBER = r"^ *[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
"""A number written as text, which is harmless whatever its sign."""


def harmless(text: str) -> str:
    """The text, with a leading apostrophe if a spreadsheet would run it as a formula."""
    return f"'{text}" if re.match(FORMULA, text) and not re.fullmatch(NUMBER, text) else text
