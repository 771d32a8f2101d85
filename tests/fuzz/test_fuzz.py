"""What fuzzing begins with and what it once found, tried without a fuzzer: answers or GigradErrors, nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
import targets

from gigrad import CorruptModelError
from gigrad._io.modelfiles.keras_archive import load_keras

CORPUS = Path(__file__).parent / "corpus"
KNOWN = [(name, path) for name in targets.TARGETS for path in sorted((CORPUS / name).glob("*"))]


@pytest.mark.parametrize("name", targets.TARGETS)
@pytest.mark.filterwarnings("ignore")
def test_good_inputs_and_cut_ones(name: str) -> None:
    if name in targets.NEEDED:
        pytest.importorskip(targets.NEEDED[name], reason="the files of this target need it")
    seeds = targets.seeds(name)
    assert seeds or name == "scorecard"
    for seed in seeds[:3]:
        for length in (len(seed), len(seed) // 2, 1, 0):
            targets.attempt(name, seed[:length])


@pytest.mark.parametrize(("name", "path"), KNOWN, ids=[f"{n}/{p.name}" for n, p in KNOWN])
@pytest.mark.filterwarnings("ignore")
def test_what_was_found_stays_repaired(name: str, path: Path) -> None:
    if name in targets.NEEDED:
        pytest.importorskip(targets.NEEDED[name], reason="the files of this target need it")
    targets.attempt(name, path.read_bytes())


@pytest.mark.parametrize("name", targets.NEEDED)
def test_good_model_files_are_read_and_explained(name: str) -> None:
    """Else fuzzing would only ever see the first refusal."""
    pytest.importorskip(targets.NEEDED[name], reason="the files of this target need it")
    seeds = targets.seeds(name)
    assert seeds
    for seed in seeds:
        targets.TARGETS[name](seed)  # raises nothing, not even a GigradError


def test_weights_beyond_all_sizes_are_refused() -> None:
    """An address that h5py cannot turn into a size, once an OverflowError."""
    pytest.importorskip(targets.NEEDED["keras"])
    damaged = targets.zipped(targets.edited(targets.KERAS, b"\xfb\x02\x000s"))
    with pytest.raises(CorruptModelError, match="cannot be read"):
        targets.in_file(damaged, ".keras", load_keras)
