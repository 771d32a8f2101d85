"""XGBoost's binary JSON (UBJSON), read here: its own reader crashes on many damaged files, its JSON reader does not."""

from __future__ import annotations

import struct
from typing import Any

from ...errors import CorruptModelError

_NUMBERS = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8"}
_CODES = {"i1": "b", "u1": "B", "i2": "h", "i4": "i", "i8": "q", "f4": "f", "f8": "d"}
_CONSTANTS = {b"T": True, b"F": False, b"Z": None}
_DEEPEST = 64


def read_ubj(data: bytes) -> Any:
    """The content of a UBJSON file; CorruptModelError if it is invalid."""
    reader = _Reader(data)
    content = reader.value(reader.take(1), 0)
    if reader.at != len(data):
        raise CorruptModelError("The file goes on after its content has ended.")
    return content


class _Reader:
    """The bytes of a UBJSON file, read from front to back."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        if not 0 <= count <= len(self.data) - self.at:
            raise CorruptModelError(f"The file ends before its content does, at byte {self.at}.")
        self.at += count
        return self.data[self.at - count : self.at]

    def value(self, marker: bytes, depth: int) -> Any:
        """The value after a marker: a number, constant, text, array or object."""
        if depth > _DEEPEST:
            raise CorruptModelError(f"The file must not be nested deeper than {_DEEPEST} levels.")
        if marker in _NUMBERS:
            return self.numbers(marker, 1)[0]
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        if marker == b"S":
            return self.text()
        if marker == b"[":
            return self.array(depth)
        if marker == b"{":
            return self.object(depth)
        raise CorruptModelError(f"The file has an unknown kind of value, {marker!r}, at byte {self.at}.")

    def numbers(self, marker: bytes, count: int) -> list[Any]:
        code = _CODES[_NUMBERS[marker][1:]]
        data = self.take(count * struct.calcsize(f">{code}") if 0 <= count <= len(self.data) else -1)
        return list(struct.unpack(f">{count}{code}", data))

    def length(self) -> int:
        """The next whole number, which counts bytes or values."""
        marker = self.take(1)
        if marker not in (b"i", b"U", b"I", b"l", b"L"):
            raise CorruptModelError(f"The file has a length that is not a whole number at byte {self.at}.")
        return int(self.numbers(marker, 1)[0])

    def text(self) -> str:
        """The next text: its length, and so many bytes of UTF-8."""
        try:
            return self.take(self.length()).decode()
        except UnicodeDecodeError:
            raise CorruptModelError(f"The file has a text that is not UTF-8 before byte {self.at}.") from None

    def array(self, depth: int) -> list[Any]:
        """The next array: with a type and count, with a count alone, or up to its closing bracket."""
        marker = self.take(1)
        if marker == b"$":
            kind = self.take(1)
            if kind not in _NUMBERS or self.take(1) != b"#":
                raise CorruptModelError(f"The file has an array of an unknown kind at byte {self.at}.")
            return self.numbers(kind, self.length())
        if marker == b"#":
            return [self.value(self.take(1), depth + 1) for _ in range(self.count())]
        found = []
        while marker != b"]":
            found.append(self.value(marker, depth + 1))
            marker = self.take(1)
        return found

    def count(self) -> int:
        """The next length, which no honest file has larger than itself."""
        count = self.length()
        if not 0 <= count <= len(self.data):
            raise CorruptModelError(f"The file claims {count} values at byte {self.at}.")
        return count

    def object(self, depth: int) -> dict[str, Any]:
        """The next object, up to its closing brace."""
        found: dict[str, Any] = {}
        while self.data[self.at : self.at + 1] != b"}":
            key = self.text()
            found[key] = self.value(self.take(1), depth + 1)
        self.take(1)
        return found
