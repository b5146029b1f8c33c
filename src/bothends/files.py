"""Files and directories that appear complete or not at all, and locks of a process.

A file is written under a hidden name beside its own and renamed when it is safe on the disk; a
directory likewise. So whenever the process, or the machine, was stopped, what has its name is
complete, and the same command can be run again.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import BinaryIO

from bothends.errors import BothendsError

#: Seconds after which a hidden file that nobody has locked was left by a process that was killed.
_ABANDONED = 60


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file completely or not at all, even if the machine stops."""
    try:
        with atomic_file(path) as file:
            file.write(content)
    except OSError as error:
        raise BothendsError(f"{path}: cannot be written ({error.strerror})") from None


def write_output(path: Path, content: bytes) -> None:
    """Write a file that the user has named; see `output_file`."""
    try:
        with output_file(path) as file:
            file.write(content)
    except OSError as error:
        raise BothendsError(f"{path}: cannot be written ({error.strerror})") from None


@contextmanager
def output_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write that the user has named: a device is written to, and a link stays one.

    Any other file appears when it is complete, as with `atomic_file`.
    """
    if not path.exists() or path.is_file():
        with atomic_file(real_path(path) if path.is_symlink() else path) as file:
            yield file
        return
    with errors_of(path):
        device = path.open("wb")
    try:
        yield device
    except BaseException:
        device.raw.close()
        raise
    with errors_of(path):
        device.close()


def append_line(path: Path, line: str, mode: int = 0o666) -> None:
    """Append a line to a file, made with `mode` if need be: the whole line, or nothing.

    The file stays the same one, with its owner and permissions. Its last line is ended first, if it
    was not.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, mode)
        with open(descriptor, "r+b", buffering=0) as file:
            with suppress(OSError):  # some network file systems have no locks
                _lock(file, wait=True)
            size = file.seek(0, os.SEEK_END)
            if size:
                file.seek(-1, os.SEEK_END)
                line = line if file.read() == b"\n" else f"\n{line}"
            content = f"{line}\n".encode()
            try:
                if file.write(content) != len(content):  # the disk is full in the middle of it
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(file.fileno())
            except BaseException:
                file.truncate(size)
                if not size:  # nobody wants an empty one, whoever made it
                    path.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise BothendsError(f"{path}: cannot be written ({error.strerror})") from None


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which gets the name `path` when the context is left without an error.

    Its permissions are those of any new file. Errors of the disk come as OSError, of `path` and not
    of the hidden name.
    """
    _remove_abandoned(path)
    # Never a name that somebody else could have foreseen, nor a file or link that is there already.
    partial = path.with_name(f"{_hidden(path)}.{secrets.token_hex(8)}.partial")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with errors_of(path):
        descriptor = os.open(partial, flags, 0o666)
    try:
        with open(descriptor, "wb") as file:
            with suppress(OSError):  # some network file systems have no locks
                _lock(file)
            try:
                yield file
            except BaseException:
                file.raw.close()  # or its buffer would be written, and fail in place of the error
                raise
            with errors_of(path):
                file.flush()
                os.fsync(file.fileno())
        with errors_of(path):
            os.replace(partial, path)
            sync_directory(path.parent)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


@contextmanager
def errors_of(path: Path) -> Iterator[None]:
    """Have errors name the file that the user knows."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


@contextmanager
def new_directory(path: Path, replace: bool = False) -> Iterator[Path]:
    """A directory to fill, which gets the name `path` when the context is left without an error.

    Until then it has a hidden name, and what a killed process left under it is removed. An empty
    directory may be there already; any other is an error, or, with `replace`, goes once the new one
    is complete. Missing parents are made.
    """
    final = real_path(path)
    partial = final.with_name(f"{_hidden(final)}.partial")
    replaced = final.with_name(f"{_hidden(final)}.replaced")
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with _locked_directory(partial, f"{path}: another process is writing it"):
            try:
                _finish_replacing(final, replaced)
                if not replace and not is_new(final):
                    raise BothendsError(f"{path}: exists and is not empty; name a new directory")
                _clear(partial)
                yield partial
                _sync_tree(partial)
                if is_new(final):
                    with suppress(FileNotFoundError):
                        os.rmdir(final)
                else:
                    os.rename(final, replaced)
                os.rename(partial, final)
                sync_directory(final.parent)
                shutil.rmtree(replaced, ignore_errors=True)
            except BaseException:
                shutil.rmtree(partial, ignore_errors=True)
                raise
    except OSError as error:
        if isinstance(error.filename, str) and not _is_one_of(
            Path(error.filename), partial, final, replaced, final.parent
        ):
            raise  # of a file elsewhere, such as an input: reported as it is
        raise BothendsError(f"{path}: cannot be written ({error.strerror or error})") from None


def real_path(path: Path) -> Path:
    """Where a path leads; `Path.resolve` has an error of its own for a link to itself."""
    return Path(os.path.realpath(path))


def is_new(path: Path) -> bool:
    """Whether a directory of this name can be made without losing anything."""
    return not os.path.lexists(path) or (path.is_dir() and not any(path.iterdir()))


@contextmanager
def locked(path: Path, otherwise: str) -> Iterator[BinaryIO]:
    """Hold the lock of a file, made if need be; an error that says `otherwise` if another does.

    A process that inherits the file holds the lock, too.
    """
    with open(path, "ab") as file:
        if not _lock(file):
            raise BothendsError(otherwise)
        yield file


def sync_directory(directory: Path) -> None:
    """Make the names in a directory as durable as the contents of its files."""
    if sys.platform == "win32":  # which cannot open a directory, and writes names at once
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems refuse
            os.fsync(handle)
    finally:
        os.close(handle)


def _hidden(path: Path) -> str:
    """The beginning of a hidden name beside `path`, with room for an ending."""
    return f".{path.name[:40]}"


def _remove_abandoned(path: Path) -> None:
    """Remove leftovers of killed processes that were writing `path`."""
    with suppress(OSError):
        for leftover in path.parent.glob(f"{_escaped(_hidden(path))}.{'[0-9a-f]' * 16}.partial"):
            if leftover.is_symlink() or time.time() - leftover.stat().st_mtime < _ABANDONED:
                continue
            with open(leftover, "rb") as file:
                if _lock(file):
                    leftover.unlink()


def _escaped(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


@contextmanager
def _locked_directory(directory: Path, otherwise: str) -> Iterator[None]:
    """Make a directory and hold its lock; no file that could be left behind is needed for that."""
    if sys.platform == "win32":
        directory.mkdir(exist_ok=True)
        yield
        return
    while True:
        directory.mkdir(exist_ok=True)
        try:
            handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:  # another process has just renamed or removed it
            continue
        try:
            if not _lock(handle):
                raise BothendsError(otherwise)
            if not _is_still(directory, handle):
                continue
            if os.fstat(handle).st_uid != os.geteuid():
                # Whoever made it could still put links into it.
                raise BothendsError(f"{directory}: belongs to another user; remove it")
            yield
            return
        finally:
            os.close(handle)


def _is_still(directory: Path, handle: int) -> bool:
    """Whether a handle is what has this name now."""
    try:
        now = os.stat(directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(now, os.fstat(handle))


def _finish_replacing(final: Path, replaced: Path) -> None:
    """Between the two renames of a replacement, a kill leaves the old directory aside: undo it."""
    if not replaced.exists():
        return
    if os.path.lexists(final):
        shutil.rmtree(replaced)
    else:
        os.rename(replaced, final)


def _clear(directory: Path) -> None:
    for entry in directory.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _is_one_of(path: Path, partial: Path, *others: Path) -> bool:
    return path in others or path == partial or partial in path.parents


def _sync_tree(directory: Path) -> None:
    """Make everything in a directory durable."""
    if sys.platform == "win32":  # which flushes only what is open for writing
        return
    for parent, _, names in os.walk(directory):
        for name in names:
            if not os.path.islink(os.path.join(parent, name)):
                with open(os.path.join(parent, name), "rb") as file:
                    os.fsync(file.fileno())
        sync_directory(Path(parent))


def _lock(file: BinaryIO | FileIO | int, wait: bool = False) -> bool:
    """Lock a file as long as it is open; False if another process has it, unless we wait."""
    if sys.platform == "win32":  # which has no such locks
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True
