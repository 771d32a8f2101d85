"""Files that are either whole or absent: written aside, flushed to the disk, then renamed into place."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
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
}


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to; it takes the place of `path`, durably, when the block ends well.

    Killed or failing at any moment, `path` is what it was before.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with writing(path):
        try:
            yield aside
            flush(aside)
            os.replace(aside, path)
            flush(path.parent)
        except BaseException:
            with suppress(OSError):
                aside.unlink(missing_ok=True)
            raise


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
            if place == taken or (other in inputs and os.path.isdir(taken) and place.startswith(taken + os.sep)):
                where = "is also" if place == taken else "lies in"
                raise OutputError(f"{what} {path} {where} {other}, which would be changed; choose another name.")
        known[what] = place


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
