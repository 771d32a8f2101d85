"""CityHash64 (version 1.0), by which CatBoost identifies categories: it stores the hash of a label, not the label.

Written from the algorithm's published definition (Google, MIT licence; see NOTICE). Numbers are unsigned, modulo 2^64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError

_K0, _K1, _K2, _K3 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F, 0xC949D7C7509E6557
_PAIR = 0x9DDFEA08EB382D69
_MASK = (1 << 64) - 1


def category_hash(value: Any) -> int:
    """The 32-bit hash by which CatBoost identifies a label: that of its text. Integers are converted to text, booleans
    to 0 or 1."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, (int, np.integer, np.bool_)):
        text = str(int(value))
    else:
        raise InputError(
            f"A category for a CatBoost model must be a string or an integer; got {value!r}. Convert it to a string, "
            "as CatBoost itself requires."
        )
    return city_hash(text.encode()) & 0xFFFFFFFF


def city_hash(data: bytes) -> int:
    """The 64-bit hash of some bytes."""
    size = len(data)
    if size <= 16:
        return _up_to_16(data)
    if size <= 32:
        return _up_to_32(data)
    if size <= 64:
        return _up_to_64(data)
    return _longer(data)


def _word(data: bytes, at: int, size: int = 8) -> int:
    """A little-endian number; counted from the end where `at` is negative."""
    at = at if at >= 0 else len(data) + at
    return int.from_bytes(data[at : at + size], "little")


def _turn(value: int, by: int) -> int:
    value &= _MASK
    return (value >> by | value << (64 - by)) & _MASK


def _fold(value: int) -> int:
    value &= _MASK
    return value ^ value >> 47


def _joined(low: int, high: int) -> int:
    """128 bits mixed into 64."""
    low, high = low & _MASK, high & _MASK
    first = _fold((low ^ high) * _PAIR)
    return _fold((high ^ first) * _PAIR) * _PAIR & _MASK


def _up_to_16(data: bytes) -> int:
    """The hash of up to 16 bytes."""
    size = len(data)
    if size > 8:
        end = _word(data, -8)
        return _joined(_word(data, 0), _turn(end + size, size)) ^ end
    if size >= 4:
        return _joined(size + (_word(data, 0, 4) << 3), _word(data, -4, 4))
    if size > 0:
        y = data[0] + (data[size >> 1] << 8)
        z = size + (data[-1] << 2)
        return _fold(y * _K2 ^ z * _K3) * _K2 & _MASK
    return _K2


def _up_to_32(data: bytes) -> int:
    a, b = _word(data, 0) * _K1, _word(data, 8)
    c, d = _word(data, -8) * _K2, _word(data, -16) * _K0
    return _joined(_turn(a - b, 43) + _turn(c, 30) + d, a + _turn(b ^ _K3, 20) - c + len(data))


def _up_to_64(data: bytes) -> int:
    """The hash of 33 to 64 bytes."""
    size = len(data)
    front = _quarter(_word(data, 0) + (size + _word(data, -16)) * _K0, _word(data, 24), _word(data, 8), _word(data, 16))
    back = _quarter(_word(data, 16) + _word(data, -32), _word(data, -8), _word(data, -24), _word(data, -16))
    mixed = _fold((front[0] + back[1]) * _K2 + (back[0] + front[1]) * _K0)
    return _fold(mixed * _K0 + front[1]) * _K2 & _MASK


def _quarter(a: int, z: int, first: int, second: int) -> tuple[int, int]:
    """One of the two mixing steps of `_up_to_64`, over 32 bytes."""
    b, c = _turn(a + z, 52), _turn(a, 37)
    a += first
    c += _turn(a, 7)
    a += second
    return a + z, b + _turn(a, 31) + c


def _weak(data: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    """32 bytes and two seeds mixed into 128 bits."""
    w, x, y, z = (_word(data, at + 8 * i) for i in range(4))
    a += w
    b = _turn(b + a + z, 21)
    c = a
    a += x + y
    b += _turn(a, 44)
    return (a + z) & _MASK, (b + c) & _MASK


def _longer(data: bytes) -> int:
    """The hash of more than 64 bytes."""
    size = len(data)
    x, y, z = _word(data, 0), _word(data, -16) ^ _K1, _word(data, -56) ^ _K0
    v, w = _weak(data, size - 64, size, y), _weak(data, size - 32, size * _K1, _K0)
    z += _fold(v[1]) * _K1
    x = _turn(z + x, 39) * _K1
    y = _turn(y, 33) * _K1
    for at in range(0, (size - 1) & ~63, 64):
        x = _turn(x + y + v[0] + _word(data, at + 16), 37) * _K1 ^ w[1]
        y = _turn(y + v[1] + _word(data, at + 48), 42) * _K1 ^ v[0]
        z = _turn(z ^ w[0], 33)
        v = _weak(data, at, v[1] * _K1, x + w[0])
        w = _weak(data, at + 32, z + w[1], y)
        z, x = x, z
    return _joined(_joined(v[0], w[0]) + _fold(y) * _K1 + z, _joined(v[1], w[1]) + x)
