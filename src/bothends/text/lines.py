"""Lines of text from files and pipes, as they arrive.

A line ends at a line feed and nowhere else: U+2028, form feeds and the like are characters of the
text, so that line 7 here is line 7 for `sed` and `paste`. A carriage return before the line feed
belongs to the line's end, and a byte order mark is no text. Files may be compressed with gzip.

A line has at most `MAX_LINE` bytes: a longer one is no line of text, and may have no end.
"""

from __future__ import annotations

import gzip
import io
import os
import select
import stat
import sys
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Literal, cast

from bothends.errors import BothendsError
from bothends.storage.places import Place, Remote, open_reading

Invalid = Literal["error", "replace"]

#: What one read asks for: as much as a pipe holds on Linux.
_CHUNK = 1 << 16

#: Bytes of a line. A novel in one line would pass.
MAX_LINE = 1 << 20
#: Bytes of a document, which is held in memory.
MAX_TEXT = 64 << 20

STANDARD_INPUT = Path("-")
_BYTE_ORDER_MARK = "\ufeff"


class LineReader:
    """Iterates over the lines of files, one after the other; of standard input if there is none.

    Yields `None` where the next line has not arrived yet, so that a pipeline can deliver what it
    has instead of waiting. Invalid UTF-8 is an error that names file and line, or, with
    `invalid="replace"`, becomes U+FFFD.
    """

    def __init__(self, paths: Sequence[Path] = (), invalid: Invalid = "error") -> None:
        self._paths = list(paths) or [STANDARD_INPUT]
        self._invalid = invalid
        #: for each file opened so far, the number of lines before it
        self._starts: list[int] = []
        for path in self._paths:
            # Said now, and not after hours of translating the files before it.
            if path != STANDARD_INPUT and not path.exists():
                raise BothendsError(f"{path}: no such file")

    def __iter__(self) -> Iterator[str | None]:
        count = 0
        for path in self._paths:
            self._starts.append(count)
            try:
                with _open(path) as file:
                    for line in _lines(file):
                        yield None if line is None else self._decode(line, count)
                        count += line is not None
            except _EndlessLineError:
                raise too_long(self.where(count)) from None
            except UNREADABLE as error:
                raise unreadable(_name(path), error) from None

    def where(self, index: int) -> str:
        """File and number of the line with this index, counted from 0 over all files."""
        file = self.file_of(index)
        return f"{_name(self._paths[file])}, line {index - self._starts[file] + 1}"

    def file_of(self, index: int) -> int:
        """The number of the file that holds the line with this index, which has been read."""
        return bisect_right(self._starts, index) - 1

    def total(self) -> int | None:
        """Lines of all files, counted beforehand; None if one of them is compressed or a pipe."""
        counts = [_count_lines(path) for path in self._paths]
        return None if None in counts else sum(count or 0 for count in counts)

    def _decode(self, line: bytes, index: int) -> str:
        line = line.removesuffix(b"\r")
        try:
            text = line.decode("utf-8", "replace" if self._invalid == "replace" else "strict")
            return text.removeprefix(_BYTE_ORDER_MARK) if index == self._starts[-1] else text
        except UnicodeDecodeError as error:
            raise BothendsError(
                f"{self.where(index)}: not valid UTF-8 (byte 0x{line[error.start]:02x} after "
                f"{error.start} others); convert the text, or use --invalid replace"
            ) from None


def read_text(path: Path, invalid: Invalid = "error") -> str:
    """A whole text, line breaks as they are; for documents, of at most `MAX_TEXT` bytes."""
    try:
        with _open(path) as file:
            content = file.read(MAX_TEXT + 1)
    except UNREADABLE as error:
        raise unreadable(_name(path), error) from None
    if len(content) > MAX_TEXT:
        raise BothendsError(f"{_name(path)}: larger than {MAX_TEXT:,} bytes; translate it in parts")
    try:
        return content.decode("utf-8", "replace" if invalid == "replace" else "strict")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BothendsError(
            f"{_name(path)}, line {line}: not valid UTF-8 (byte 0x{content[error.start]:02x}); "
            "convert the text, or use --invalid replace"
        ) from None


class _EndlessLineError(Exception):
    """A line is longer than `MAX_LINE`."""


#: What reading a file may raise.
UNREADABLE = (OSError, EOFError, zlib.error)


def open_file(path: Place) -> io.BufferedReader:
    """The bytes of a file, plain or compressed; a pipe is never looked into, and so plain."""
    if isinstance(path, Remote):
        file = open_reading(path)
        compressed = path.suffix == ".gz" or file.peek(2)[:2] == b"\x1f\x8b"
        return io.BufferedReader(gzip.GzipFile(fileobj=file)) if compressed else file
    if path.is_file():
        with open(path, "rb") as file:
            # By content too: gzip's first two bytes begin no UTF-8 text.
            compressed = path.suffix == ".gz" or file.read(2) == b"\x1f\x8b"
        if compressed:
            # Unwrapped, a gzip file splits lines in Python instead of C.
            return io.BufferedReader(gzip.open(path))
    return open(path, "rb")


def too_long(where: str) -> BothendsError:
    """The error about a line that has more than `MAX_LINE` bytes."""
    return BothendsError(
        f"{where}: longer than {MAX_LINE:,} bytes, hardly a line of text; break it into lines"
    )


def unreadable(name: str, error: Exception) -> BothendsError:
    """An error of reading a file, as one line for the user."""
    if isinstance(error, FileNotFoundError):
        return BothendsError(f"{name}: no such file")
    if isinstance(error, (EOFError, zlib.error, gzip.BadGzipFile)):
        return BothendsError(f"{name}: damaged or cut off gzip file ({error})")
    return BothendsError(f"{name}: cannot be read: {getattr(error, 'strerror', None) or error}")


def _count_lines(path: Path) -> int | None:
    """Lines of a plain file that can be read twice; None if it is another, or unreadable."""
    try:
        if path == STANDARD_INPUT:
            descriptor = os.dup(sys.stdin.fileno())
            position = os.lseek(descriptor, 0, os.SEEK_CUR)
        else:
            descriptor, position = os.open(path, os.O_RDONLY), 0
    except (OSError, ValueError, AttributeError):  # no file, or none that can be measured
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        count, last = 0, b"\n"
        while chunk := os.pread(descriptor, 1 << 20, position):
            if not count and chunk.startswith(b"\x1f\x8b"):
                return None
            count += chunk.count(b"\n")
            position, last = position + len(chunk), chunk[-1:]
        return count + (last != b"\n")
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _name(path: Path) -> str:
    return "<stdin>" if path == STANDARD_INPUT else str(path)


def _open(path: Path) -> AbstractContextManager[io.BufferedReader]:
    if path != STANDARD_INPUT:
        return open_file(path)
    if sys.stdin is None:  # the process was started without one
        raise BothendsError("standard input is closed: name a file, or pipe some text in")
    return nullcontext(cast(io.BufferedReader, sys.stdin.buffer))


def _lines(file: io.BufferedReader) -> Iterator[bytes | None]:
    """The lines without their line feeds, and `None` before each read that would have to wait."""
    parts: list[bytes] = []  # of a line that has not ended yet
    size = 0
    while True:
        if _must_wait(file):
            yield None
            _wait(file)
        # One system call: what a pipe or terminal holds now, not what would fill the request.
        chunk = file.read1(_CHUNK)
        if not chunk:
            break
        first, *others = chunk.split(b"\n")
        parts.append(first)
        size += len(first)
        for other in others:
            yield b"".join(parts)
            parts, size = [other], len(other)
        if size > MAX_LINE:
            raise _EndlessLineError
    if last := b"".join(parts):
        yield last


def _must_wait(file: io.BufferedReader) -> bool:
    try:
        descriptor = file.fileno()
    except io.UnsupportedOperation:  # bytes in memory
        return False
    try:
        return not select.select([descriptor], [], [], 0)[0]
    except (OSError, ValueError):  # this system cannot tell: then it may
        return True


def _wait(file: io.BufferedReader) -> None:
    """Until there is something to read: a pipe that does not block would seem to have ended."""
    with suppress(OSError, ValueError):
        select.select([file.fileno()], [], [])
