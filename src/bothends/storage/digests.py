"""Digests of a model's files: they show whether a file is as it was written.

`digests.json` in a model directory has the size and the SHA-256 of every file that the model is
made of. A foreign vocabulary of the same size, a bit that the disk lost, one file of another
export: each would load, and write nonsense. Whoever loads a file asks `check_file` or
`check_content` first.

Small files are hashed whenever they are loaded (a gigabyte takes a second). A large one is hashed
once, which is remembered in the user's cache by its size and time; without a place to remember it,
its size is all that is looked at. `bothends verify` hashes everything. A directory without
`digests.json` is taken as it is.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, BinaryIO

from bothends.errors import BothendsError
from bothends.files import write_atomically
from bothends.storage.checked import Bounds, Checked, CheckError, Pattern
from bothends.storage.records import parse_json, parse_versioned, read_bounded

FORMAT_VERSION = 1
DIGESTS = "digests.json"

#: Bytes up to which a file is hashed at every load.
SMALL = 16 << 20
#: Large files whose check is remembered, the last ones.
_REMEMBERED = 200
#: Bytes that are hashed at a time, which stay in the processor's cache.
_CHUNK = 1 << 17


#: The name of a file in the very directory: none that leads elsewhere.
FileName = Annotated[str, Pattern(r"^[^/\\]*[^/\\.][^/\\]*$")]


@dataclass(frozen=True, kw_only=True)
class FileRecord(Checked):
    """A file as it was written."""

    bytes: Annotated[int, Bounds(least=0)]
    sha256: Annotated[str, Pattern("^[0-9a-f]{64}$")]

    @classmethod
    def of(cls, path: Path) -> FileRecord:
        digest, size = hashlib.sha256(), 0
        buffer = memoryview(bytearray(_CHUNK))
        with open(path, "rb", buffering=0) as file:
            while count := file.readinto(buffer):
                digest.update(buffer[:count])
                size += count
        return cls(bytes=size, sha256=digest.hexdigest())


def record_of(content: bytes) -> FileRecord:
    """The record of a file with this content."""
    return FileRecord(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())


class RecordingWriter:
    """Writes to a file, and takes size and digest of it on the way."""

    def __init__(self, file: BinaryIO) -> None:
        self.size = 0
        self._file = file
        self._hash = hashlib.sha256()

    def write(self, content: bytes) -> None:
        self._file.write(content)
        self._hash.update(content)
        self.size += len(content)

    def record(self) -> FileRecord:
        """The record of what was written until now."""
        return FileRecord(bytes=self.size, sha256=self._hash.hexdigest())


@dataclass(frozen=True, kw_only=True)
class Digests(Checked):
    """The content of `digests.json`."""

    format_version: int = FORMAT_VERSION
    files: dict[FileName, FileRecord]


def read_digests(directory: Path) -> Digests | None:
    """The digests of a directory, or None if it has none."""
    path = Path(directory) / DIGESTS
    try:
        content = read_bounded(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BothendsError(f"{path}: cannot be read ({error.strerror})") from None
    try:
        return Digests.read(parse_versioned(content, path, FORMAT_VERSION))
    except CheckError as error:
        raise BothendsError(f"{path}: damaged, {error}") from None
    except ValueError as error:
        raise BothendsError(f"{path}: damaged, no list of digests ({error})") from None


def record_digests(directory: Path, names: Iterable[str], written: Iterable[str] = ()) -> Digests:
    """Write down those files of `names` that are there; those `written` now are hashed anew.

    Other digests stay as they are: a file that has changed since is not made right by this.
    """
    directory, written = Path(directory), set(written)
    before = read_digests(directory)
    files = dict(before.files) if before else {}
    for name in names:
        if name in written or name not in files:
            files[name] = FileRecord.of(directory / name)
    there = {name: files[name] for name in sorted(files) if (directory / name).is_file()}
    digests = Digests(files=there)
    text = json.dumps(digests.dump(), indent=2, ensure_ascii=False) + "\n"
    write_atomically(directory / DIGESTS, text.encode())
    return digests


def check_content(path: Path, content: bytes) -> None:
    """Refuse content read from `path` that is not what was written there."""
    record = _record_of(path)
    if record is not None and record != record_of(content):
        raise _changed(path)


def check_file(path: Path) -> None:
    """Refuse a file that is not what was written there; a large one is hashed only once."""
    if not path.is_file():  # whoever reads the file reports that it is missing
        return
    record = _record_of(path)
    if record is None:
        return
    try:
        if path.stat().st_size != record.bytes:
            raise _changed(path)
        small = record.bytes <= SMALL
        found = FileRecord.of(path) if small else _remembered(path, record)
    except OSError as error:
        raise BothendsError(f"{path}: cannot be read ({error.strerror})") from None
    if found != record:
        raise _changed(path)


def _record_of(path: Path) -> FileRecord | None:
    """The record of a file; None if its directory has no digests at all."""
    digests = read_digests(path.parent)
    if digests is None:
        return None
    if path.name not in digests.files:
        raise BothendsError(
            f"{path}: {DIGESTS}, which lists the files of this model, does not know it; "
            f"{_again(path.parent)}"
        )
    return digests.files[path.name]


def _changed(path: Path) -> BothendsError:
    return BothendsError(
        f"{path}: damaged or exchanged, it is not the file that {DIGESTS} describes; get it again, "
        f"or {_again(path.parent)}"
    )


def _again(directory: Path) -> str:
    return f"if it is meant to be there, `bothends verify --record {directory}`"


def _remembered(path: Path, record: FileRecord) -> FileRecord:
    """The record of a large file, out of memory if it has not changed since it was hashed."""
    memory = _memory()
    if memory is None:
        return record
    status = path.stat()
    key = str(path.resolve())
    # Not the name alone: another file under it has another time, or another record.
    seen = [status.st_size, status.st_mtime_ns, record.sha256]
    known = _recall(memory)
    if known.get(key) == seen:
        return record
    found = FileRecord.of(path)
    if found == record:
        known.pop(key, None)  # the newest are at the end
        known[key] = seen
        latest = dict(list(known.items())[-_REMEMBERED:])
        try:
            memory.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(memory, json.dumps(latest).encode())
        except (OSError, BothendsError):  # a full disk, for one: then it is hashed again
            pass
    return found


def _recall(memory: Path) -> dict[str, object]:
    try:
        known = parse_json(read_bounded(memory))
    except (OSError, ValueError, BothendsError):
        return {}
    return known if isinstance(known, dict) else {}


def _memory() -> Path | None:
    """The file in which checks are remembered; None if this user has no place for it."""
    given = os.environ.get("XDG_CACHE_HOME")
    try:
        if given:
            cache = Path(given)
        elif sys.platform == "win32":
            cache = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        elif sys.platform == "darwin":
            cache = Path.home() / "Library" / "Caches"
        else:
            cache = Path.home() / ".cache"
    except RuntimeError:  # no home
        return None
    if not cache.is_absolute():  # as the standard says: not to be used
        return None
    nearest = next(path for path in (cache, *cache.parents) if path.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        return None
    return cache / "bothends" / "checked.json"
