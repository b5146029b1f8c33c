"""One driver for a directory: a lock that leaves no file behind and ends with its process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bothends.errors import BothendsError


@contextmanager
def lock_directory(path: Path, otherwise: str, shared: bool = False) -> Iterator[None]:
    """Hold the lock of a directory; an error that says `otherwise` if another process does.

    Several may hold it if all of them share it. Where a file system has no such locks, nobody is
    kept out.
    """
    if sys.platform == "win32":  # which cannot open directories
        yield
        return
    import fcntl

    descriptor = os.open(path, os.O_RDONLY)
    try:
        try:
            kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BothendsError(otherwise) from None
        except OSError:
            pass  # some network file systems do not lock directories
        yield
    finally:
        os.close(descriptor)
