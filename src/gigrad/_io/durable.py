"""Files that are either whole or absent: written aside, flushed to the disk, then renamed into place.

What is written aside is called `.<name>.gigrad-<16 hexadecimal digits>.tmp` and locked while it is written. A process
that is killed leaves it behind, unlocked; whoever writes to the same place next removes it.
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
}
PRIVATE = 0o600
_mode: ContextVar[int | None] = ContextVar("mode of new files", default=None)


@contextmanager
def permissions(mode: int | None) -> Iterator[None]:
    """Give files that are new within the block this mode; None is 0600, or less where the umask says so."""
    token = _mode.set(mode)
    try:
        yield
    finally:
        _mode.reset(token)


@contextmanager
def replacing(path: Path, *, sweep: bool = True) -> Iterator[Path]:
    """A path beside `path` to write to; it takes the place of `path`, durably, when the block ends well.

    Killed or failing at any moment, `path` is what it was before. The file keeps the mode of the one that it replaces;
    a new one is for its owner alone. `sweep` removes what killed processes have left of this file before.
    """
    with writing(path):
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


@contextmanager
def scratch_folder(path: Path) -> Iterator[Path]:
    """A folder of this user's alone beside `path`, which is gone after the block."""
    with writing(path):
        sweep_leftovers(path)
        folder, handle = _claimed(path, folder=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _closed(handle)


def mode_for(path: Path) -> int | None:
    """The mode that a file at `path` is to have: that of the file which is there, else what was asked for.

    None leaves it as it was made aside: for its owner alone, or less where the umask says so.
    """
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except OSError:
        return _mode.get()


def folder_mode(mode: int) -> int:
    """The mode of a folder whose files have a mode: whoever may read them may open it."""
    return mode | (mode & 0o444) >> 2


def sweep_leftovers(path: Path) -> None:
    """Remove what processes that were killed while writing `path` have left beside it; never what is being written."""
    ours = re.compile(rf"\.{re.escape(path.name)}\.gigrad-[0-9a-f]{{16}}\.tmp")
    with suppress(OSError):
        for name in [entry.name for entry in os.scandir(path.parent) if ours.fullmatch(entry.name)]:
            with suppress(OSError):
                _remove_unlocked(path.with_name(name))


def _remove_unlocked(left: Path) -> None:
    handle = os.open(left, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
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
    except ImportError:  # not on this system: two runs at once are then the user's affair
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _claimed(path: Path, *, folder: bool) -> tuple[Path, int]:
    """A new file or folder beside `path`, open and locked."""
    while True:
        aside = path.with_name(f".{path.name}.gigrad-{secrets.token_hex(8)}.tmp")
        if folder:
            os.mkdir(aside, 0o700)
            if os.name == "nt":  # where a folder cannot be opened
                return aside, -1
            handle = os.open(aside, os.O_RDONLY)
        else:
            handle = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE)
        # Between its birth and its lock somebody may have taken it for a leftover.
        if try_lock(handle) and os.path.exists(aside):
            return aside, handle
        os.close(handle)


def _closed(handle: int) -> int:
    if handle >= 0:
        os.close(handle)
    return -1


def keep_apart(read: Mapping[str, str | Path | None], written: Mapping[str, str | Path | None]) -> None:
    """Refuse to write a file that is read, or one file twice, or into a folder that is read; None stands for no file.

    Keys are what a message calls them.
    """
    inputs = {what: os.path.realpath(path) for what, path in read.items() if path is not None}
    known = dict(inputs)
    for what, path in written.items():
        if path is None:
            continue
        place = os.path.realpath(path)
        for other, taken in known.items():
            same = place == taken or _is_same(place, taken)
            if same or (other in inputs and os.path.isdir(taken) and place.startswith(taken + os.sep)):
                where = "is also" if same else "lies in"
                raise OutputError(f"{what} {path} {where} {other}, which would be changed; choose another name.")
        known[what] = place


def _is_same(one: str, other: str) -> bool:
    """Whether two paths are one file under two names, as on a disk that does not tell A from a."""
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
    """Whether the libraries that read and write tables can be told this path."""
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
