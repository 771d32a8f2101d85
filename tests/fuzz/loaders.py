"""Coverage-guided fuzzing of the loaders by atheris: python loaders.py TARGET OPTION...; make fuzz calls it for all.

New inputs that reach new code are kept in build/fuzz/TARGET; what raises is written to tests/fuzz/corpus/TARGET, where
test_fuzz.py tries it from then on.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import FunctionType

import atheris
import targets

ROOT = Path(__file__).resolve().parents[2]


def follow_gigrad() -> None:
    """Let atheris see which code of gigrad is reached. Its own hook for imports does not see editable installs."""
    for module in [m for name, m in sys.modules.items() if name.split(".")[0] == "gigrad"]:
        for thing in vars(module).values():
            for member in vars(thing).values() if isinstance(thing, type) else [thing]:
                if isinstance(member, FunctionType) and member.__module__.startswith("gigrad"):
                    atheris.instrument_func(member)


def main(name: str, *options: str) -> None:
    kept, faults = ROOT / "build" / "fuzz" / name, Path(__file__).parent / "corpus" / name
    for folder in (kept, faults):
        folder.mkdir(parents=True, exist_ok=True)
    for i, seed in enumerate(targets.seeds(name)):
        (kept / f"seed-{i}").write_bytes(seed)
    warnings.simplefilter("ignore")
    for seed in targets.seeds(name):
        targets.attempt(name, seed)  # loads what is loaded when it is needed
    follow_gigrad()
    limits = [*options, "-timeout=20", "-rss_limit_mb=3000", "-max_len=40000", "-verbosity=0"]
    atheris.Setup(
        [sys.argv[0], *limits, f"-artifact_prefix={faults}/", str(kept), str(faults)],
        lambda data: targets.attempt(name, data),
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
