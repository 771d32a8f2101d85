"""What other values of the native core's constants of speed cost: the time at half and at twice of each.

    python kernel_limits.py [--quick]

kernels.cpp is built with GIGRAD_TUNED, where constants that are not sizes of arrays are read from the environment. All
values of one constant run in turns, and the least processor time of each counts, on one thread. Ratios above 1 mean
that the other value is slower. Results go to results/kernel_limits.md.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from run import HERE, machine, options_on_one_thread

KERNELS = HERE.parent / "src/gigrad/kernels"
WORKLOADS = {
    "BLOCK": ["portable population"],
    "TRACE_PAIRS": ["portable linked"],
    "START_BLOCK": ["population", "classes"],
    "START_CHUNK": ["population"],
    "TRACE_VECTORS": ["classes"],
    "SWEEP_BLOCK": ["few", "pairs"],
    "FEW_STARTS": ["few"],
    "MOST_TESTS": ["few", "pairs", "linked"],
    "PREDICTED_ROWS": ["predict"],
    "TABLE_NUMBERS": ["corners"],
    "ZETA_NUMBERS": ["corners"],
    "COMPARED_COEFFICIENTS": ["corners"],
}
SAID = {
    "population": "2,500 starts x 4 rows",
    "classes": "2,500 starts x 4 rows, softmax of three outputs",
    "linked": "2,500 starts x 4 rows, sigmoid",
    "few": "8 starts x 4 rows",
    "pairs": "2,500 pairs",
    "predict": "2,500 predictions",
    "corners": "one corner of 20 flags, sigmoid, enumerated",
    "portable population": "2,500 starts x 4 rows, without vectors",
    "portable linked": "2,500 starts x 4 rows, sigmoid, without vectors",
}


def values() -> dict[str, int]:
    """The constants that can be changed without compiling, as they are."""
    found = re.findall(r"GIGRAD_LIMIT\(\w+, (\w+), (.+)\);", (KERNELS / "limits.hpp").read_text())
    return {name: int(eval(text.replace("size_t{1}", "1"), {})) for name, text in found}


def built(folder: Path, quick: bool) -> Path:
    """The program, with the vectors of the processor where that is an x86."""
    compiler, program = os.environ.get("CXX", "c++"), folder / "kernels"
    flags = ["-std=c++17", "-O0" if quick else "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]
    flags += ["-DGIGRAD_TUNED", f"-I{KERNELS}"]
    sources: dict[Path, list[str]] = {HERE / "kernels.cpp": [], KERNELS / "lanes/simd_plain.cpp": []}
    if platform.machine().lower() in ("x86_64", "amd64") and not quick:
        flags.append("-DGIGRAD_X86")
        sources[KERNELS / "lanes/simd_avx2.cpp"] = ["-mavx2", "-mbmi", "-mpopcnt"]
        wide = (f"-mavx512{part}" for part in ("f", "bw", "vl", "dq"))
        sources[KERNELS / "lanes/simd_avx512.cpp"] = [*wide, "-mbmi", "-mpopcnt"]
    objects = [folder / f"{source.stem}.o" for source in sources]
    for (source, more), made in zip(sources.items(), objects, strict=True):
        subprocess.run([compiler, *flags, *more, "-c", source, "-o", made], check=True)
    subprocess.run([compiler, *objects, "-o", program, "-pthread"], check=True)
    return program


def spent(program: Path, workload: str, name: str, value: int) -> float:
    """The time of a workload with one constant set."""
    done = subprocess.run(
        [program, workload], env={**os.environ, name: str(value)}, check=True, capture_output=True, text=True
    )
    return float(done.stdout)


def ratios(program: Path, workload: str, name: str, used: int, repeats: int) -> tuple[float, float]:
    """The times at half and at twice of a constant over the time at the one that is used."""
    wanted = (used, max(used // 2, 1), 2 * used)
    best = [
        min(times)
        for times in zip(*([spent(program, workload, name, v) for v in wanted] for _ in range(repeats)), strict=True)
    ]
    return best[1] / best[0], best[2] / best[0]


def write(folder: Path, lines: Sequence[tuple[str, int, str, float, float]]) -> None:
    facts = machine()
    text = [
        "What other values of the native core's constants of speed cost: the time at half and at twice of each, over "
        "the time at the value in use. Every value gives the same credits to 1e-12.",
        "",
        f"Measured on {facts['date']}, {facts['processor']}, sixteen lanes, one thread, processor time, "
        f"load {facts['load']}.",
        "",
        "| constant | used | workload | half | twice |",
        "|---|---|---|---|---|",
        *(
            f"| `{name}` | {used} | {SAID[work]} | {half:.2f} | {twice:.2f} |"
            for name, used, work, half, twice in lines
        ),
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel_limits.md").write_text("\n".join(text) + "\n")


def main() -> None:
    options = options_on_one_thread(__doc__)
    used, lines = values(), list[tuple[str, int, str, float, float]]()
    with tempfile.TemporaryDirectory() as folder:
        program = built(Path(folder), options.quick)
        wanted = [(name, work) for name, workloads in WORKLOADS.items() for work in workloads]
        for name, work in wanted[: 1 if options.quick else None]:
            times = ratios(program, work, name, used[name], 1 if options.quick else 7)
            lines.append((name, used[name], work, *times))
            print(*lines[-1], flush=True)
    write(options.folder, lines)


if __name__ == "__main__":
    main()
