"""The results as text: benchmarks/results/trees.md, which the page on speed shows, and the table in the README."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import growth
import scale

BEGIN, END = "<!-- speed: written by make bench -->", "<!-- end of the speed table -->"


def seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 1 else f"{value * 1e3:.2f} ms" if value >= 1e-3 else f"{value * 1e6:.1f} us"


def where(facts: dict[str, str]) -> str:
    versions = ", ".join(f"{k} {v}" for k, v in facts.items() if k not in ("date", "processor", "simd", "load"))
    machine = f"{facts['processor']}, two cores, {facts['simd']} walk, load {facts['load']} before the run"
    return f"Measured on {facts['date']}: {machine}; {versions}."


def times(ratio: float) -> str:
    return f"{ratio:.1f}x" if ratio >= 1 else f"1/{1 / ratio:.1f}"


def goal_of(line: dict[str, Any]) -> str:
    if line["goal"] is None:
        return ""
    return f"{times(line['goal'])} ({'reached' if line['reached'] == 'yes' else '**missed**'})"


def page(record: dict[str, Any]) -> str:
    start = record["start"]
    text = [
        where(record["machine"]),
        "One thread each unless said otherwise; best of five (of two with 1,000 rows), in turns.",
        "",
        "| work | gigrad | against | its time | faster | goal | check |",
        "|---|---|---|---|---|---|---|",
    ]
    for x in record["lines"]:
        cells = (
            x["work"],
            seconds(x["gigrad"]),
            x["peer"],
            seconds(x["time"]),
            times(x["ratio"]),
            goal_of(x),
            x["check"],
        )
        text.append(f"| {' | '.join(cells)} |")
    text += [
        "",
        f"`import gigrad`: {start['import']:.3f} s (goal 0.2); first explanation of a process: "
        f"{start['first explanation']:.3f} s (goal 0.3).",
        "",
        *growth.as_text(record["growth"]),
        "",
        "![Time against rows, references, trees and depth](growth.png)",
        "",
        *scale.as_text(record["scale"]),
    ]
    return "\n".join(text) + "\n"


def section(record: dict[str, Any]) -> str:
    """What the README shows."""
    text = [BEGIN, "| work | gigrad | against | faster |", "|---|---|---|---|"]
    for x in record["lines"]:
        text.append(
            f"| {x['work']} | {seconds(x['gigrad'])} | {x['peer']}: {seconds(x['time'])} | {times(x['ratio'])} |"
        )
    return "\n".join([*text, "", where(record["machine"]), END])


def with_section(readme: str, record: dict[str, Any]) -> str:
    before, rest = readme.split(BEGIN)
    return before + section(record) + rest.split(END)[1]


def write(folder: Path, record: dict[str, Any], readme: Path | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "trees.json").write_text(json.dumps(record, indent=1) + "\n")
    (folder / "trees.md").write_text(page(record))
    if readme is not None:
        readme.write_text(with_section(readme.read_text(), record))
