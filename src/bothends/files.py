"""Files that nobody sees half of, and locks that hold as long as their process lives."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from bothends.errors import BothendsError


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file that a reader sees whole or not at all, even if the machine stops."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with open(partial, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise BothendsError(f"{path}: cannot be written ({error.strerror})") from None


@contextmanager
def locked(path: Path, otherwise: str) -> Iterator[BinaryIO]:
    """Hold the lock of a file, made if need be; an error that says `otherwise` if another does.

    A process that inherits the file holds the lock, too.
    """
    with open(path, "ab") as file:
        if not _lock(file):
            raise BothendsError(otherwise)
        yield file


def _lock(file: BinaryIO) -> bool:
    """Lock a file as long as it is open; False if another process has it."""
    if sys.platform == "win32":  # which has no such locks
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
