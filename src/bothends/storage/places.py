"""Places that a job reads and writes: paths, and URLs of stores such as S3, through fsspec.

A `Remote` has the few operations of a `Path` that jobs need, so that most code asks either without
knowing which it has. In both, a file is seen whole or not at all: a path is renamed when it is
complete, an object of a store appears when its upload ends, and where a remote file system has
neither, the file is written under a hidden name and moved.
"""

from __future__ import annotations

import hashlib
import io
import os
import posixpath
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from bothends.errors import BothendsError, UsageError
from bothends.files import errors_of, sync_directory, write_atomically
from bothends.storage.digests import FileRecord
from bothends.storage.records import LARGEST_JSON, read_bounded

#: Stores in which an upload is an object only when it has ended, and may be given up before.
_COMMIT_UPLOADS = ("s3", "s3a", "gs", "gcs")
#: In the memory of one process, so that no other process sees it.
_PRIVATE = "memory"
_CHUNK = 1 << 20
#: What cannot be done, in messages. That a bucket is missing is no missing file then.
_WRITTEN = "be written"


@dataclass(frozen=True)
class Remote:
    """A file or directory of a store, by its URL. It is pickled and sent to workers."""

    url: str

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, name: str) -> Remote:
        return self._at(posixpath.normpath(f"{self._path}/{name}"))

    @property
    def name(self) -> str:
        return posixpath.basename(self._path)

    @property
    def suffix(self) -> str:
        return posixpath.splitext(self._path)[1]

    @property
    def parent(self) -> Remote:
        return self._at(posixpath.dirname(self._path))

    @property
    def is_private(self) -> bool:
        """Whether no other process can see it."""
        return self.url.startswith(f"{_PRIVATE}://")

    @property
    def _path(self) -> str:
        return self.url.partition("://")[2]

    def _at(self, path: str) -> Remote:
        return Remote(f"{self.url.partition('://')[0]}://{path}")

    def with_name(self, name: str) -> Remote:
        return self._at(posixpath.join(posixpath.dirname(self._path), name))

    def relative_to(self, directory: Remote) -> str:
        """The way from a directory of the same store to here."""
        # Without a leading slash both would count from the working directory, which is as good.
        return posixpath.relpath(self._path, directory._path)

    def exists(self) -> bool:
        with self._file_system("be found") as (system, path):
            return bool(system.exists(path))

    def is_file(self) -> bool:
        with self._file_system("be found") as (system, path):
            return bool(system.isfile(path))

    def is_dir(self) -> bool:
        with self._file_system("be found") as (system, path):
            return bool(system.isdir(path))

    def size(self) -> int:
        with self._file_system("be found") as (system, path):
            return int(system.info(path)["size"])

    def names(self) -> list[str]:
        """Names of what is in this directory, which need not exist."""
        with self._file_system("be listed") as (system, path):
            try:
                found = system.ls(path, detail=False)
            except (FileNotFoundError, NotADirectoryError):
                return []
            return sorted(
                {posixpath.basename(each.rstrip("/")) for each in found} - {"", self.name}
            )

    def read_bytes(self) -> bytes:
        with self._file_system("be read") as (system, path):
            return cast(bytes, system.cat_file(path))

    def write_bytes(self, content: bytes) -> None:
        """Write the whole file, which others see complete or not at all."""
        with self._file_system(_WRITTEN) as (system, path):
            if self._commits or self.is_private:
                system.pipe_file(path, content)
                return
            system.makedirs(posixpath.dirname(path), exist_ok=True)
            hidden = _hidden(path)
            system.pipe_file(hidden, content)
            _move(system, hidden, path)

    def unlink(self, missing_ok: bool = False) -> None:
        with self._file_system("be removed") as (system, path):
            try:
                system.rm_file(path)
            except FileNotFoundError:
                if not missing_ok:
                    raise

    @property
    def _commits(self) -> bool:
        return self.url.partition("://")[0] in _COMMIT_UPLOADS

    @contextmanager
    def _file_system(self, what: str) -> Iterator[tuple[Any, str]]:
        """The file system and the path in it; its errors are one line, but for a missing file."""
        system, path = _open_file_system(self.url)
        try:
            system.invalidate_cache()  # others write there as well
            yield system, path
        except BothendsError:
            raise
        except Exception as error:  # every store has errors of its own, not all of them OSErrors
            if isinstance(error, (FileNotFoundError, NotADirectoryError)) and what != _WRITTEN:
                raise
            raise BothendsError(f"{self.url}: cannot {what} ({_reason(error)})") from None


Place = Path | Remote


def parse_place(text: str) -> Place:
    """A path, or a URL; `file://` is a path, too."""
    match = re.match(r"([A-Za-z][A-Za-z0-9+.-]+)://(.*)", text)
    if match is None:
        return Path(text)
    scheme, rest = match[1].lower(), match[2]
    if scheme == "file":
        if not rest.startswith("/"):
            raise UsageError(f"{text}: expected file:///PATH, with three slashes")
        return Path(rest)
    path = rest.rstrip("/")
    if not path.strip("/"):
        raise UsageError(f"{text}: expected {scheme}://PLACE/NAME")
    return Remote(f"{scheme}://{path}")


def size_of(place: Place) -> int | None:
    """The bytes of a file; None if there is none."""
    if not place.is_file():
        return None
    return place.size() if isinstance(place, Remote) else place.stat().st_size


def names_in(directory: Place) -> list[str]:
    """Names of what is in a directory, in order; none if it does not exist."""
    if isinstance(directory, Remote):
        return directory.names()
    return sorted(os.listdir(directory)) if directory.is_dir() else []


def relative_name(place: Place, directory: Place) -> str:
    """The way from a directory to a place of the same kind."""
    if isinstance(place, Remote) and isinstance(directory, Remote):
        return place.relative_to(directory)
    return os.path.relpath(str(place), str(directory))


def open_reading(place: Place) -> io.BufferedReader:
    """The bytes of a file. A missing one is a FileNotFoundError."""
    if isinstance(place, Path):
        return open(place, "rb")
    with place._file_system("be read") as (system, path):
        # Wrapped, because files of stores split lines in Python instead of C.
        return io.BufferedReader(_Readable(system.open(path, "rb"), place), _CHUNK)


def read_record(place: Place) -> bytes:
    """The bytes of a file such as a manifest; an error if it is far too large for one."""
    if isinstance(place, Path):
        return read_bounded(place)
    if place.size() > LARGEST_JSON:
        raise BothendsError(f"{place}: more than {LARGEST_JSON:,} bytes; expected a small file")
    return place.read_bytes()


def write_whole(place: Place, content: bytes) -> None:
    """Write a file that others see complete or not at all."""
    if isinstance(place, Remote):
        place.write_bytes(content)
    else:
        write_atomically(place, content)


def remove_tree(directory: Place) -> None:
    """Remove a directory with all that is in it, as far as that can be done."""
    if isinstance(directory, Path):
        shutil.rmtree(directory, ignore_errors=True)
        return
    with suppress(FileNotFoundError, BothendsError), directory._file_system("be removed") as found:
        system, path = found
        system.rm(path, recursive=True)


class Output:
    """A file that is written bit by bit, hashed meanwhile, and seen by others once committed."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._hash, self._bytes = hashlib.sha256(), 0
        # Not a random name: whoever goes on after a kill removes what was left.
        self._partial = place.with_name(f".{place.name}.partial")
        self._file: Any
        if isinstance(place, Path):
            with self._telling():
                # Never a file or link that somebody else has put there.
                self._partial.unlink(missing_ok=True)
                self._file = open(str(self._partial), "xb")  # noqa: SIM115
            return
        with place._file_system(_WRITTEN) as (system, path):
            if place._commits:
                self._file = system.open(path, "wb", autocommit=False)
            else:
                system.makedirs(posixpath.dirname(path), exist_ok=True)
                self._file = system.open(_hidden(path), "wb")

    def write(self, content: bytes) -> None:
        with self._telling():
            self._file.write(content)
        self._hash.update(content)
        self._bytes += len(content)

    def close(self) -> FileRecord:
        """Write what is left, safe from now on; the record of the file."""
        with self._telling():
            if isinstance(self._place, Path):
                self._file.flush()
                os.fsync(self._file.fileno())
            self._file.close()
        return FileRecord(bytes=self._bytes, sha256=self._hash.hexdigest())

    def commit(self) -> None:
        """Give the file its name, after `close`."""
        if isinstance(self._place, Path):
            with self._telling():
                os.replace(str(self._partial), self._place)
                sync_directory(self._place.parent)
            return
        with self._place._file_system(_WRITTEN) as (system, path):
            if self._place._commits:
                self._file.commit()
            else:
                _move(system, _hidden(path), path)

    def discard(self) -> None:
        """Give up: nothing is left of it."""
        if isinstance(self._place, Remote) and self._place._commits:
            with suppress(Exception):
                self._file.discard()
                self._file.closed = True
            return
        with suppress(Exception):  # a disk that is full takes nothing of its buffer
            self._file.close()
        with suppress(Exception):
            self._partial.unlink(missing_ok=True)

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Errors of a store as one line. Those of a disk stay OSErrors, of the file's own name."""
        if isinstance(self._place, Path):
            with errors_of(self._place):
                yield
            return
        try:
            yield
        except Exception as error:
            raise BothendsError(f"{self._place}: cannot be written ({_reason(error)})") from None


@contextmanager
def several_outputs() -> Iterator[list[Output]]:
    """A list for outputs, which are committed together at the end, or given up after an error."""
    outputs: list[Output] = []
    try:
        yield outputs
        for output in outputs:
            output.commit()
    except BaseException:
        for output in outputs:
            output.discard()
        raise


class _Readable(io.RawIOBase):
    """A file of a store for `BufferedReader`, which wants `readinto`; errors are one line."""

    def __init__(self, file: BinaryIO, place: Remote) -> None:
        self._file, self._place = file, place

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        try:
            content = self._file.read(len(view))
        except Exception as error:
            raise BothendsError(f"{self._place}: cannot be read ({_reason(error)})") from None
        view[: len(content)] = content
        return len(content)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def _open_file_system(url: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise BothendsError(f"{url}: needs fsspec: pip install 'bothends[cluster]'") from None
    try:
        return cast("tuple[Any, str]", url_to_fs(url))
    except ImportError as error:  # such as "Install s3fs to access S3"
        raise BothendsError(f"{url}: {_reason(error)}, with pip install") from None
    except Exception as error:
        raise BothendsError(f"{url}: cannot be reached ({_reason(error)})") from None


def _hidden(path: str) -> str:
    """A name beside `path` that jobs take for no file of theirs."""
    return posixpath.join(posixpath.dirname(path), f".{posixpath.basename(path)}.partial")


def _move(system: Any, source: str, target: str) -> None:
    """Rename a file over one that may be there: some file systems would refuse."""
    if system.exists(target):
        system.rm_file(target)
    system.mv(source, target)


def _reason(error: Exception) -> str:
    """The first line of an error, or its kind if it has no words."""
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
