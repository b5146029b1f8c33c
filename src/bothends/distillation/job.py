"""What decides a distilled corpus: teacher, settings, source text. And nothing else.

Every shard carries this description of the job it belongs to, so that work of another teacher,
another beam or another text is never merged with it. Paths are no part of it: machines that share
the work may have the same files elsewhere.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from bothends.engines.registry import EngineName
from bothends.errors import BothendsError, UsageError
from bothends.model.directory import DECODER, ENCODER, WEIGHTS, read_description
from bothends.records import Strict
from bothends.text.pairs import read_batches, read_lines
from bothends.text.vocabulary import SOURCE_VOCABULARY, TARGET_VOCABULARY, VOCABULARY
from bothends.translation import TranslationOptions
from bothends.translator import Translator

#: Lines of a shard: half a minute of one core, more or less.
SHARD_LINES = 2000


class SourceRecord(Strict):
    """A source file: its lines, and the SHA-256 of its text, whether it is compressed or not."""

    lines: int
    sha256: str


class Job(Strict):
    """Everything that a translation in a shard depends on."""

    #: SHA-256 of what the teacher translates with: graphs or weights, vocabulary, description
    teacher: str
    engine: EngineName = "onnx"
    beam: int = 4
    length_penalty: float = 0.6
    max_source_length: int = 512
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
                    return "another teacher"
                if name == "sources":
                    return "other source text"
                return f"{name} {theirs}, not {ours}"
        return None


@dataclass(frozen=True)
class Teacher:
    """Who translates, and how: all that a process needs to begin."""

    directory: Path
    engine: EngineName = "onnx"
    beam: int = 4
    length_penalty: float = 0.6
    max_source_length: int = 512

    @property
    def options(self) -> TranslationOptions:
        return TranslationOptions(
            beam=self.beam,
            length_penalty=self.length_penalty,
            max_source_length=self.max_source_length,
        )

    def load(self) -> Translator:
        """A translator on one core: how lines are batched must not depend on the machine."""
        return Translator.load(self.directory, threads=1, engine=self.engine)

    def fingerprint(self) -> str:
        """SHA-256 of all that a translation depends on; not of where the weights come from."""
        description = read_description(self.directory).model_dump(mode="json")
        del description["provenance"]
        digest = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
        network = (WEIGHTS,) if self.engine == "torch" else (ENCODER, DECODER)
        for name in (VOCABULARY, SOURCE_VOCABULARY, TARGET_VOCABULARY, *network):
            path = self.directory / name
            if path.is_file():  # what is missing is said by `load`
                digest.update(name.encode())
                with open(path, "rb") as file:
                    while chunk := file.read(1 << 20):
                        digest.update(chunk)
        return digest.hexdigest()


def describe_job(teacher: Teacher, sources: Sequence[Path], shard_lines: int = SHARD_LINES) -> Job:
    """Read the teacher and all source text once; a mistake in the text shows now, not in hours."""
    if shard_lines < 1:
        raise UsageError(f"lines of a shard must be at least 1, but are {shard_lines}")
    if not sources:
        raise UsageError("no source text: name at least one file")
    teacher.options  # noqa: B018  (checks them)
    job = Job(
        teacher=teacher.fingerprint(),
        engine=teacher.engine,
        beam=teacher.beam,
        length_penalty=teacher.length_penalty,
        max_source_length=teacher.max_source_length,
        shard_lines=shard_lines,
        sources=tuple(_record(path) for path in sources),
    )
    if not job.lines:
        raise BothendsError(f"{', '.join(map(str, sources))}: no lines to translate")
    return job


def _record(path: Path) -> SourceRecord:
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


def read_shards(sources: Sequence[Path], shard_lines: int) -> Iterator[list[str]]:
    """The source lines of each shard. The files count as one text: a shard may span two of them."""
    lines = chain.from_iterable(map(read_lines, sources))
    while shard := list(islice(lines, shard_lines)):
        yield shard
