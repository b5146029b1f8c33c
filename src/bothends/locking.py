"""A lock that holds as long as its process lives: one job at a time in a directory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from bothends.errors import BothendsError


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
