"""Atomic writes: a temporary file is written, flushed to the disk, then renamed.

The temporary file is called `.<name>.gigrad-<16 hexadecimal digits>.tmp` and locked while it is written. A process that
is killed leaves it behind, unlocked; the next one that writes to the same path removes it.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from ..errors import OutputError

_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than this system allows",
    errno.EACCES: "this user may not write there",
    errno.EPERM: "this user may not write there",
    errno.EROFS: "the disk is read-only",
    errno.ENOENT: "the folder does not exist",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.EISDIR: "it is a folder",
    errno.ELOOP: "it is a symbolic link",
    errno.ENAMETOOLONG: "its name is too long",
}
PRIVATE = 0o600
_mode: ContextVar[int | None] = ContextVar("mode of new files", default=None)


@contextmanager
def permissions(mode: int | None) -> Iterator[None]:
    """Create files within the block with this mode; None is 0600, or less by the umask."""
    token = _mode.set(mode)
    try:
        yield
    finally:
        _mode.reset(token)


@contextmanager
def replacing(path: Path, *, sweep: bool = True) -> Iterator[Path]:
    """A temporary path beside `path` to write to; it replaces `path`, durably, if the block ends without an error.

    If the process fails or is killed, `path` is unchanged. The file keeps the mode of the one that it replaces; a new
    one is private to its owner. `sweep` removes temporary files that killed processes have left.
    """
    with writing(path):
        _see_replaceable(path)
        if sweep:
            sweep_leftovers(path)
        aside, handle = _claimed(path, folder=False)
        try:
            yield aside
            flush(aside)
            mode = mode_for(path)
            if mode is not None:
                os.chmod(aside, mode)
            if os.name == "nt":  # where an open file cannot be renamed
                handle = _closed(handle)
            os.replace(aside, path)
            flush(path.parent)
        except BaseException:
            with suppress(OSError):
                aside.unlink(missing_ok=True)
            raise
        finally:
            _closed(handle)


def _see_replaceable(path: Path) -> None:
    """Raise for devices, pipes and sockets: replacing /dev/null by a file would harm every program of the machine."""
    try:
        kind = os.stat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):  # a folder is refused by the system itself
        raise OutputError(f"{path} cannot be written: it must be a file or new; it is a device or a pipe.")


@contextmanager
def scratch_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside `path`, private to this user, which is removed after the block."""
    with writing(path):
        sweep_leftovers(path)
        folder, handle = _claimed(path, folder=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _closed(handle)


def mode_for(path: Path) -> int | None:
    """The mode for a file at `path`: that of the existing file, else the one set by `permissions`.

    None means that of the temporary file: private to its owner, or less by the umask.
    """
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except OSError:
        return _mode.get()


def folder_mode(mode: int) -> int:
    """The mode of a folder for files of a mode: whoever may read them may also open the folder."""
    return mode | (mode & 0o444) >> 2


def sweep_leftovers(path: Path) -> None:
    """Remove temporary files that killed processes have left beside `path`; never those still being written."""
    ours = re.compile(rf"\.{re.escape(path.name)}\.gigrad-[0-9a-f]{{16}}\.tmp")
    with suppress(OSError):
        for name in [entry.name for entry in os.scandir(path.parent) if ours.fullmatch(entry.name)]:
            with suppress(OSError):
                _remove_unlocked(path.with_name(name))


def _remove_unlocked(left: Path) -> None:
    """Remove what an interrupted run left, unless a running process holds a lock on it."""
    # non-blocking, since the file may be a pipe
    handle = os.open(left, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        if not try_lock(handle):
            return
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            shutil.rmtree(left)
        else:
            os.unlink(left)
    finally:
        os.close(handle)


def try_lock(handle: int) -> bool:
    """Lock an open file or folder for this process alone, until it is closed or the process ends, however it ends."""
    try:
        import fcntl
    except ImportError:  # not on this system: concurrent runs are then not detected
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _claimed(path: Path, *, folder: bool) -> tuple[Path, int]:
    """A new temporary file or folder beside `path`, and its open, locked handle (-1 for a folder on Windows)."""
    while True:
        aside = path.with_name(f".{path.name}.gigrad-{secrets.token_hex(8)}.tmp")
        if folder:
            os.mkdir(aside, 0o700)
            if os.name == "nt":  # where a folder cannot be opened
                return aside, -1
            handle = os.open(aside, os.O_RDONLY)
        else:
            handle = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE)
        # Between its creation and its lock, another process may have removed it as a leftover.
        if try_lock(handle) and os.path.exists(aside):
            return aside, handle
        os.close(handle)


def _closed(handle: int) -> int:
    if handle >= 0:
        os.close(handle)
    return -1


def keep_apart(read: Mapping[str, str | Path | None], written: Mapping[str, str | Path | None]) -> None:
    """Raise if an output is also an input or another output, lies in an input folder, or is a folder, replaced as a
    whole, that holds an input; None means no file.

    Keys are the names in messages.
    """
    inputs = {what: os.path.realpath(path) for what, path in read.items() if path is not None}
    known = dict(inputs)
    for what, path in written.items():
        if path is None:
            continue
        place = os.path.realpath(path)
        for other, taken in known.items():
            same = place == taken or _is_same(place, taken)
            within, around = (other in inputs and _holds(a, b) for a, b in ((taken, place), (place, taken)))
            if same or within or around:
                where = "is also" if same else "lies in" if within else "is a folder that holds"
                raise OutputError(f"{what} {path} {where} {other}, which would be changed; choose another name.")
        known[what] = place


def _holds(folder: str, path: str) -> bool:
    return os.path.isdir(folder) and path.startswith(folder.rstrip(os.sep) + os.sep)


def _is_same(one: str, other: str) -> bool:
    """Whether two paths are the same file, as on a case-insensitive disk."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn the system's refusal to write `path` into an OutputError that says why."""
    try:
        yield
    except (OSError, UnicodeEncodeError) as error:
        if isinstance(error, OutputError):
            raise
        if isinstance(error, UnicodeEncodeError):
            why = "it would hold text that UTF-8 cannot" if has_utf8_name(path) else "its name is not UTF-8"
        else:
            why = _REASONS.get(error.errno or 0, error.strerror or str(error))
        raise OutputError(f"{path} cannot be written: {why}. Nothing that was there before has been changed.") from None


def has_utf8_name(path: Path) -> bool:
    """Whether a path is valid UTF-8, as the libraries that read and write tables require."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def flush(path: Path) -> None:
    """Make a finished file, or the names in a folder, survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
