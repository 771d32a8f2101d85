"""The cases made for single constants of accuracy, each at values from a millionth to a million times the one in use.

For accuracy_limits.py. Constants of the engine are changed inside of one process; those of the native core are read
from the environment when it is loaded, so that each value has a process of its own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from accuracy_cases import CASES, Found

from gigrad.engine import limits
from gigrad.engine.mixed import sampled

HERE = Path(__file__).resolve().parent
NATIVE = (HERE.parent / "src/gigrad/kernels/limits.hpp").read_text()
FACTORS = (1e-6, 1e-4, 1e-3, 1e-2, 0.1, 0.5, 2.0, 10.0, 100.0, 1e3, 1e4, 1e6)
WHOLE_FACTORS = (0.125, 0.25, 0.5, 2.0, 4.0, 8.0)


def used(name: str) -> float | int:
    """The value in use; that of a table is 1, a factor of all its values."""
    if name in vars(limits):
        value = getattr(limits, name)
        return 1.0 if isinstance(value, dict) else value
    found = re.search(rf"GIGRAD_LIMIT\(double, {name}, (.+)\);", NATIVE)
    if found is None:
        raise ValueError(f"{name} must be a constant of the engine or of the native core.")
    return float(eval(found[1], {}))


def ladder(name: str, quick: bool) -> list[float | int]:
    """Other values to try, half and twice among them; for whole numbers also one less and one more."""
    value = used(name)
    if isinstance(value, int):
        tried = {max(int(value * f), 1) for f in WHOLE_FACTORS[2:4] if quick} or {
            *(max(int(value * f), 1) for f in WHOLE_FACTORS), max(value - 1, 1), value + 1,
        }  # fmt: skip
        return sorted(tried - {value})
    factors = (0.5, 2.0) if quick else WHOLE_FACTORS if name.startswith("KERNEL_") else FACTORS
    return [value * f for f in factors]


def changed(name: str, value: float) -> None:
    """Set a constant of the engine for the rest of this process."""
    old = vars(limits).get(name)
    if isinstance(old, dict):
        setattr(limits, name, {key: number * value for key, number in old.items()})
    elif old is not None:
        setattr(limits, name, type(old)(value))
    if name == "SAMPLED_EACH":
        sampled.EACH, sampled.PARTS = int(value), 2 * int(value)


def in_this_process(names: Sequence[str], values: Sequence[float | None]) -> None:
    """Print what the cases of each constant give with each of its values; None leaves it as it is."""
    for name in names:
        for value in values:
            kept = getattr(limits, name, None)
            if value is not None:
                changed(name, value)
            print(json.dumps([asdict(case()) for case in CASES[name]]), flush=True)
            if kept is not None:
                setattr(limits, name, kept)


def found(python: Path, names: Sequence[str], values: Sequence[float | None]) -> list[list[Found]]:
    """What the cases of constants give with each of some values: in a process of their own."""
    call = f"import accuracy_ladder as a; a.in_this_process({list(names)!r}, {list(values)!r})"
    env = {**os.environ, "PYTHONPATH": str(HERE)}
    if values[0] is not None and is_native(names[0]):
        env[names[0]] = repr(values[0])
    done = subprocess.run([python, "-c", call], env=env, check=True, stdout=subprocess.PIPE, text=True, cwd=HERE)
    lines = [line for line in done.stdout.splitlines() if line.startswith("[")]
    return [[Found(**case) for case in json.loads(line)] for line in lines]


def is_native(name: str) -> bool:
    """Whether the native core has a constant of that name."""
    return bool(re.search(rf"GIGRAD_LIMIT\(\w+, {name},", NATIVE))


def with_values(python: Path, name: str, values: Sequence[float]) -> list[list[Found]]:
    """What the cases of a constant give as it is, and then with each of its values."""
    if is_native(name):
        return [found(python, [name], [value])[0] for value in (None, *values)]
    return found(python, [name], [None, *values])


def difference(some: list[Found], usual: list[Found]) -> str:
    """How many numbers are not the same bits, of how many; "other" where their number changes."""
    a, b = ([v for f in case for v in f.values] for case in (some, usual))
    return "other" if len(a) != len(b) else f"{sum(x != y for x, y in zip(a, b, strict=True))} of {len(a)}"


def failure(name: str, cases: list[Found]) -> str:
    """What does not hold with some value, in a few words; empty if all does."""
    for case, one in zip(CASES[name], cases, strict=True):
        if not one.holds:
            title = str(case.__doc__).strip().partition(":")[0]
            what = one.wrong.partition(":")[0] if one.wrong else f"`error` too small by {one.ratio:.2g}"
            return f"{what}: {title}"
    return ""


def as_they_are(python: Path) -> Iterator[tuple[str, str]]:
    """The cases that do not hold with the constants in use: there must be none."""
    for name, usual in zip(CASES, found(python, list(CASES), [None]), strict=True):
        if said := failure(name, usual):
            yield name, said


def rows(python: Path, quick: bool) -> Iterator[list[str]]:
    """A line of the table for each constant that has cases."""
    for name in sorted(CASES)[: 1 if quick else None]:
        value, values = used(name), ladder(name, quick)
        usual, *others = with_values(python, name, values)
        by_value: dict[Any, list[Found]] = dict(zip(values, others, strict=True))
        steps = [[v for v in values if v < value][::-1], [v for v in values if v > value]]
        near = [
            min(side, key=lambda v: abs(v / value - f), default=None) for side, f in zip(steps, (0.5, 2.0), strict=True)
        ]
        line = [f"`{name}`", f"{value:.3g}"]
        line += ["" if v is None else difference(by_value[v], usual) for v in near]
        for side in steps:
            broken = next(((v, said) for v in side if (said := failure(name, by_value[v]))), None)
            last = f"none at {side[-1]:.3g} ({difference(by_value[side[-1]], usual)})" if side else ""
            line.append(last if broken is None else f"{broken[0]:.3g}: {broken[1]}")
        yield line
