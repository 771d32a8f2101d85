"""Try something that may crash the whole process in a child process first."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from .. import errors

# What reading may take, beyond what grows with the file: a damaged one may ask for anything.
_SECONDS = 20.0
_SECONDS_A_MEGABYTE = 1.0
_BYTES = 4 * 2**30
_BYTES_A_BYTE = 50


def rehearse(action: Callable[[], object], path: Path, name: str) -> None:
    """Do `action`, which reads `path` with the library `name`, in a child; its failure is raised here, a crash too.

    Where processes cannot be forked, or other threads run that a fork would cut off, nothing is tried.
    """
    if not hasattr(os, "fork") or threading.active_count() > 1:
        return
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    size = path.stat().st_size
    seconds = _SECONDS + _SECONDS_A_MEGABYTE * size / 2**20
    child = os.fork()
    if child == 0:
        os.close(reader)
        _act(action, writer, _BYTES + _BYTES_A_BYTE * size)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        status, said = _wait(child, pipe.fileno(), seconds)
    if status is None:
        raise errors.CorruptModelError(f"{path} is damaged: {name} was still reading it after {seconds:.0f} s.")
    if os.WIFSIGNALED(status):
        signal_name = signal.Signals(os.WTERMSIG(status)).name
        raise errors.CorruptModelError(f"{path} is damaged: {name} crashes on reading it ({signal_name}).")
    if os.WEXITSTATUS(status) != 0:
        _raise(said, path, name)


def _act(action: Callable[[], object], writer: int, memory: int) -> NoReturn:
    """In the child: do it silently, say what went wrong, and leave without any of the parent's clean-up."""
    status = 1
    try:
        _limit_memory(memory)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        action()
        status = 0
    except BaseException as error:
        said = json.dumps([type(error).__name__, str(error)[:4000]]).encode()
        with suppress(OSError):
            os.write(writer, said)
    finally:
        os._exit(status)


def _limit_memory(more: int) -> None:
    """Let this process take that many bytes more, so that a file which claims to be huge fails alone."""
    import resource

    with suppress(OSError, ValueError):  # no such file, or no such limit, on this system
        have = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (have + more, have + more))


def _wait(child: int, pipe: int, seconds: float) -> tuple[int | None, bytes]:
    """The child's exit status and last words; None where it had to be stopped."""
    import select

    said = b""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if select.select([pipe], [], [], left)[0]:
            block = os.read(pipe, 1 << 16)
            if not block:
                return os.waitpid(child, 0)[1], said
            said += block
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None, said


def _raise(said: bytes, path: Path, name: str) -> NoReturn:
    """The child's error: ours as it was, anybody else's as a damaged file."""
    try:
        kind, text = json.loads(said)
    except ValueError:
        kind, text = "", "it gave no reason"
    found = getattr(errors, kind, None)
    if isinstance(found, type) and issubclass(found, errors.GigradError):
        raise found(text if str(path) in text else f"{path}: {text}")
    first = text.strip().splitlines()[0] if text.strip() else kind
    raise errors.CorruptModelError(f"{path} cannot be read by {name}: {first[:300]}")
