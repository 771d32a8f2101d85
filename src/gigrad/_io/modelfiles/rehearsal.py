"""A child process in which model files are read first, so that a crash of a library's reader ends only the child.

The child is a fresh interpreter, because a forked one would inherit the libraries' threads in an undefined state. It is
kept for the next file; requests and answers are lines of JSON.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from ... import errors

# Limits on time and memory for reading, beyond those that grow with the file: a damaged one may demand anything.
_SECONDS = 60.0
_SECONDS_A_MEGABYTE = 1.0
_BYTES = 4 * 2**30
_BYTES_A_BYTE = 50


def prepare(package: str) -> None:
    """Start the child process early, so that it imports `package` while the caller does: the import takes seconds."""
    global _child
    if _child is None:
        _child = _Child(package)


def rehearse(path: Path, name: str, trusted: Sequence[str]) -> None:
    """Let the child read `path`, a file of the library `name`; whatever goes wrong there is raised here."""
    global _child
    said = None
    # A child that has read damaged files may be in a bad state: only the failure of a fresh one counts.
    for fresh in (False, True):
        if _child is None or fresh:
            _child = _Child()
        was_fresh = _child.read == 0
        said = _child.ask(path, trusted)
        if said is not None:
            break
        gone, _child = _child, None
        if was_fresh:
            gone.raise_end(path, name)
    if said is not None and said.get("error"):
        _raise(said["error"], said["text"], path, name)


class _Child:
    """One child process, and how many files it has read."""

    def __init__(self, package: str | None = None) -> None:
        self.read = 0
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"from gigrad._io.modelfiles.rehearsal import serve; serve({package!r})"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        atexit.register(self.end)

    def ask(self, path: Path, trusted: Sequence[str]) -> dict[str, str] | None:
        """The child's answer about a file; None if it crashed, or took too long and was ended."""
        self.read += 1
        self.seconds = _SECONDS + _SECONDS_A_MEGABYTE * size_of(path) / 2**20
        request = json.dumps({"path": str(path.absolute()), "trusted": list(trusted)}) + "\n"
        stdin, stdout = self.process.stdin, self.process.stdout
        with suppress(BrokenPipeError):
            if stdin is not None and stdout is not None:
                stdin.write(request.encode())
                stdin.flush()
                line = _read_line(stdout.fileno(), self.seconds)
                if line:
                    return dict(json.loads(line))
        self.timed_out = self.process.poll() is None and not _ended(self.process)
        self.end()
        return None

    def raise_end(self, path: Path, name: str) -> NoReturn:
        """Raise an error that says how the child ended."""
        if self.timed_out:
            raise errors.CorruptModelError(
                f"{path} is damaged: {name} was still reading it after {self.seconds:.0f} s."
            )
        code = self.process.returncode or 0
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        raise errors.CorruptModelError(f"{path} is damaged: {name} crashes on reading it ({how}).")

    def end(self) -> None:
        """Stop the child, if it still runs."""
        atexit.unregister(self.end)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


_child: _Child | None = None


def _ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether a process that has closed its pipe ends by itself, as a crashing one does."""
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        return False
    return True


def _read_line(pipe: int, seconds: float) -> bytes:
    """A whole line from a pipe; empty if the pipe closes first or the time is up."""
    said = b""
    until = time.monotonic() + seconds
    while not said.endswith(b"\n"):
        left = until - time.monotonic()
        if left <= 0 or not select.select([pipe], [], [], left)[0]:
            return b""
        block = os.read(pipe, 1 << 16)
        if not block:
            return b""
        said += block
    return said


def _raise(kind: str, text: str, path: Path, name: str) -> NoReturn:
    """Raise the child's error: one of gigrad's as it was, any other as a CorruptModelError."""
    found = getattr(errors, kind, None)
    if isinstance(found, type) and issubclass(found, errors.GigradError):
        raise found(text if path.name in text else f"{path}: {text}")
    first = text.strip().splitlines()[0] if text.strip() else kind
    raise errors.CorruptModelError(f"{path} cannot be read by {name}: {first[:300]}")


def serve(package: str | None) -> None:
    """In the child: import `package`, then read the requested files until the pipe closes."""
    from . import try_file

    answers = os.dup(1)  # libraries print to stdout, so the answers need a descriptor of their own
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if package is not None:
        with suppress(ImportError):  # raised again when it is needed
            importlib.import_module(package)
    for line in sys.stdin:
        request = json.loads(line)
        path = Path(request["path"])
        said = {}
        try:
            _limit_memory(_BYTES + _BYTES_A_BYTE * size_of(path))
            try_file(path, request["trusted"])
        except BaseException as error:
            said = {"error": type(error).__name__, "text": str(error)[:4000]}
        os.write(answers, (json.dumps(said) + "\n").encode())


def size_of(path: Path) -> int:
    """The bytes of a file, or of all files in a folder."""
    files = [f for f in path.rglob("*") if f.is_file() and not f.is_symlink()] if path.is_dir() else [path]
    return sum(f.stat().st_size for f in files)


def _limit_memory(more: int) -> None:
    """Limit this process to that many more bytes, so that a file which claims to be huge fails only here."""
    with suppress(ImportError, OSError, ValueError):  # no such module, file or limit on this system
        import resource

        have = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (have + more, resource.getrlimit(resource.RLIMIT_AS)[1]))
