"""The first process of the emulated machine: runs the tests, says how they ended, and waits to be switched off."""

from __future__ import annotations

import os
import signal
import stat
import sys
from pathlib import Path


def run_tests() -> int:
    """Pytest's status; 1 where the machine would not take the walk that is to be tested."""
    import pytest

    from gigrad import kernels

    print("walks:", *kernels.simd_choices(), flush=True)
    if kernels.get_simd() != "avx512":
        return 1
    here = Path(__file__).parent
    options = (here / "arguments").read_text().splitlines()
    return int(pytest.main([*options, str(here / "modules" / "test_simd.py")]))


for number, name in ((3, "null"), (9, "urandom")):
    os.mknod(f"/dev/{name}", stat.S_IFCHR | 0o666, os.makedev(1, number))
child = os.fork()  # whatever becomes of the tests, somebody is left to say it
if child == 0:
    sys.exit(run_tests())
print("status:", os.waitpid(child, 0)[1], flush=True)
signal.pause()
