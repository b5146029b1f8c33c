"""All that a distilled corpus depends on: teacher, settings, source text.

Every shard carries this description of the job it belongs to, so that work of another teacher,
another beam or another text is never merged with it. Paths are no part of it: machines that share
the work may have the same files elsewhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Protocol

from bothends.engines.registry import EngineName
from bothends.errors import BothendsError, UsageError
from bothends.jobs import SHARD_LINES
from bothends.storage.places import Place
from bothends.storage.schemas import Strict
from bothends.text.pairs import read_batches, read_lines


class SourceRecord(Strict):
    """A source file: its lines, and the SHA-256 of its text, whether it is compressed or not."""

    lines: int
    sha256: str


class Job(Strict):
    """Everything that a translation in a shard depends on."""

    #: SHA-256 of what the teacher translates with: graphs or weights, vocabulary, description; or
    #: of a program's command and version
    teacher: str
    command: str | None = None
    version: str | None = None
    #: of a model of ours
    engine: EngineName | None = None
    beam: int | None = None
    length_penalty: float | None = None
    max_source_length: int | None = None
    split_sentences: bool | None = None
    shard_lines: int = SHARD_LINES
    sources: tuple[SourceRecord, ...]

    @property
    def lines(self) -> int:
        """Source lines of all files."""
        return sum(source.lines for source in self.sources)

    @property
    def shards(self) -> int:
        return -(-self.lines // self.shard_lines)

    def shard_size(self, number: int) -> int:
        """Lines of shard `number`: fewer only in the last one."""
        return min(self.shard_lines, self.lines - number * self.shard_lines)

    def difference(self, other: Job) -> str | None:
        """The first way in which `other` is another job, in words; None if it is the same."""
        for name in type(self).model_fields:
            ours, theirs = getattr(self, name), getattr(other, name)
            if ours != theirs:
                if name == "teacher":
                    return self._other_teacher(other)
                if name == "sources":
                    return "other source text"
                return f"{name} {theirs}, not {ours}"
        return None

    def _other_teacher(self, other: Job) -> str:
        if self.command is None or other.command is None:
            return "another teacher"
        if self.command != other.command:
            return f"teacher command {other.command!r}, not {self.command!r}"
        return f"teacher version {other.version!r}, not {self.version!r}"


class HasSettings(Protocol):
    """The part of a teacher that decides a job."""

    def settings(self) -> Mapping[str, Any]:
        """The fields of `Job` that are the teacher's; mistakes in them are errors now."""
        ...


def describe_job(
    teacher: HasSettings, sources: Sequence[Place], shard_lines: int = SHARD_LINES
) -> Job:
    """Read the teacher and all source text once; a mistake in the text shows now, not in hours."""
    if shard_lines < 1:
        raise UsageError(f"lines of a shard must be at least 1, but are {shard_lines}")
    if not sources:
        raise UsageError("no source text: name at least one file")
    job = Job(
        **teacher.settings(),
        shard_lines=shard_lines,
        sources=tuple(_record(path) for path in sources),
    )
    if not job.lines:
        raise BothendsError(f"{', '.join(map(str, sources))}: no lines to translate")
    return job


def _record(path: Place) -> SourceRecord:
    if path.exists() and not path.is_file():
        raise BothendsError(f"{path}: not a regular file, and text is read several times")
    lines, digest = 0, hashlib.sha256()
    for batch in read_batches(path):
        lines += len(batch)
        digest.update(encode_lines(batch))
    return SourceRecord(lines=lines, sha256=digest.hexdigest())


def encode_lines(lines: Iterable[str]) -> bytes:
    """Lines as a text file has them."""
    return "".join(f"{line}\n" for line in lines).encode()


def read_shards(sources: Sequence[Place], shard_lines: int) -> Iterator[list[str]]:
    """The source lines of each shard. The files count as one text: a shard may span two of them."""
    lines = chain.from_iterable(map(read_lines, sources))
    while shard := list(islice(lines, shard_lines)):
        yield shard
