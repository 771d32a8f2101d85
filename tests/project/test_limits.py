"""Constants lie in one place a layer: `engine/limits.py` and `kernels/limits.hpp`."""

from __future__ import annotations

import re
from pathlib import Path

from gigrad.engine import limits

KERNELS = Path(__file__).parents[2] / "src/gigrad/kernels"
NUMBER = re.compile(r"constexpr \w+ (\w+) = ([^;]+);|GIGRAD_LIMIT\(\w+, (\w+), (.+)\);")
ENCODED = (
    "core/decimals",
    "core/elementary",
    "core/node",
    "core/processor",
    "lanes/corner_lanes",
    "lanes/isa",
    "lanes/lanes",
    "sweep/",
)
FIXED = {"BLOCK_BITS", "COUNT", "END_DATA", "SIDE", "SIGNED_BITS", "SIZES"}  # what tables beside them are made for


def native() -> dict[str, str]:
    """Name -> value of the native core's constants, as they are written."""
    found = NUMBER.findall((KERNELS / "limits.hpp").read_text())
    return {a or c: (b or d).replace("size_t{1}", "1") for a, b, c, d in found}


def test_both_layers_have_the_same_value_of_what_they_share() -> None:
    shared = {name: text for name, text in native().items() if hasattr(limits, name)}
    assert len(shared) >= 8
    for name, text in shared.items():
        assert eval(text, {}) == getattr(limits, name), name


def test_no_kernel_has_constants_of_its_own() -> None:
    """But for the codes of formats and the lanes of processors, which nobody could choose otherwise."""
    named = re.compile(r"constexpr \w+ ([A-Z][A-Z_0-9]+) = [-0-9.(s]")
    for path in sorted(KERNELS.rglob("*.?pp")):
        name = path.relative_to(KERNELS).as_posix()
        if name != "limits.hpp" and not name.startswith(ENCODED):
            own = set(named.findall(path.read_text())) - FIXED
            assert not own, f"{name}: {own} belong in kernels/limits.hpp, with their measurement"
