"""One driver for a directory: a lock that ends with its process.

A directory of this machine is locked by the system. NFS locks only files that are open for writing,
so one is made there, and stays. A store of objects has no locks: there, every holder writes an
object of its own beside the shards and renews it while it lives. Whoever comes looks, after writing
its own, for others that are still renewed. Two that come at once may so both refuse, but never both
begin. What a killed holder left counts for nothing after a minute. Clocks of machines are taken to
agree within some seconds.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from bothends.errors import BothendsError, warn
from bothends.storage.places import Place, Remote
from bothends.storage.records import parse_json

#: The file that is locked where a directory cannot be.
LOCK = ".lock"
#: Where holders of a remote lock write, beside what they lock.
LOCKS = ".locks"
#: Seconds between two signs of life, and without one until a holder is taken for dead.
RENEWED, EXPIRED = 15.0, 60.0


@contextmanager
def lock_directory(path: Place, otherwise: str, shared: bool = False) -> Iterator[None]:
    """Hold the lock of a directory; an error that says `otherwise` if another process does.

    Several may hold it if all of them share it. Where a file system has no locks, nobody is kept
    out, which is said.
    """
    if isinstance(path, Remote):
        with _lock_remote(path / LOCKS, otherwise, shared):
            yield
        return
    if sys.platform == "win32":  # which cannot open directories
        yield
        return
    with _lock_here(path, otherwise, shared):
        yield


@contextmanager
def _lock_here(path: Path, otherwise: str, shared: bool) -> Iterator[None]:
    import fcntl

    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    with ExitStack() as opened:

        def lock(path: Path, mode: int) -> bool:
            descriptor = os.open(path, mode, 0o666)
            opened.callback(os.close, descriptor)
            try:
                fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BothendsError(otherwise) from None
            except OSError:
                return False
            return True

        if not lock(path, os.O_RDONLY) and not lock(path / LOCK, os.O_RDWR | os.O_CREAT):
            warn(f"{path}: there are no locks here; let no other process work there")
        yield


@contextmanager
def _lock_remote(locks: Remote, otherwise: str, shared: bool) -> Iterator[None]:
    own = locks / f"{secrets.token_hex(8)}.json"
    _renew(own, shared)
    try:
        for name in locks.names():
            if name != own.name:
                _check(locks / name, otherwise, shared)
        with _kept_alive(own, shared):
            yield
    finally:
        with suppress(BothendsError):
            own.unlink(missing_ok=True)


def _renew(own: Remote, shared: bool) -> None:
    holder = {
        "host": socket.gethostname(),
        "process": os.getpid(),
        "shared": shared,
        "renewed": time.time(),
    }
    own.write_bytes(json.dumps(holder).encode())


def _check(other: Remote, otherwise: str, shared: bool) -> None:
    """Refuse if another holder is alive and does not share; remove it if it is dead."""
    try:
        holder: Any = parse_json(other.read_bytes())
        age = time.time() - float(holder["renewed"])
        its_share, host, process = bool(holder["shared"]), holder["host"], holder["process"]
    except FileNotFoundError:  # it has just left
        return
    except (ValueError, KeyError, TypeError):
        raise BothendsError(f"{other}: not a lock; remove it") from None
    if age > EXPIRED:
        other.unlink(missing_ok=True)
    elif not (shared and its_share):
        raise BothendsError(
            f"{otherwise} (process {process} on {host}, last seen {max(0, age):.0f} s ago); if it "
            f"was killed, try again in {EXPIRED - age:.0f} s"
        )


@contextmanager
def _kept_alive(own: Remote, shared: bool) -> Iterator[None]:
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(RENEWED):
            with suppress(BothendsError):  # the next one may succeed
                _renew(own, shared)

    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
