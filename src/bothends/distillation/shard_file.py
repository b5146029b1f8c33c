"""A shard on disk: a header, then what became of each source line, in JSON, line by line.

    {"number": 3, "job": {...}, "source_sha256": ..., "records_sha256": ...}
    {"text": "Wo ist der Bahnhof?", "logprob": -1.87, "tokens": 7, "source_tokens": 7, ...}

It keeps more than the text, so that pairs can be filtered in another way without translating again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from bothends.distillation.job import Job, encode_lines
from bothends.errors import BothendsError
from bothends.storage.places import Place, open_reading, write_whole
from bothends.storage.records import LARGEST_JSON, parse_json, parse_versioned
from bothends.storage.schemas import Strict
from bothends.translating.translation import Translation

#: 2 has the kind of processor, and lines that crashed.
FORMAT_VERSION = 2


class Header(Strict):
    """The first line of a shard."""

    format_version: int = FORMAT_VERSION
    number: int
    job: Job
    #: of its source lines
    source_sha256: str
    #: of everything after this line
    records_sha256: str
    #: processor, kernels and versions that translated it: others may round differently
    kind: str | None = None
    #: lines, by index, that crash whoever translates them, and so have no translation
    crashed: tuple[int, ...] = ()


@dataclass(frozen=True)
class Record:
    """The translation of one source line, and what filters need to know."""

    text: str
    #: of the tokens and the end symbol; None if the teacher gives none
    logprob: float | None
    #: length of the text in tokens; in characters if the teacher gives no tokens
    tokens: int
    source_tokens: int
    #: False: cut at the length limit
    finished: bool
    #: the source was over-long, and its end was not translated
    truncated: bool

    @classmethod
    def of(cls, translation: Translation) -> Record:
        return cls(
            # A byte token can stand for NUL, which no text file should have.
            text=translation.text.replace("\0", " "),
            logprob=round(translation.logprob, 4),
            tokens=len(translation.tokens),
            source_tokens=len(translation.source_tokens),
            finished=translation.finished,
            truncated=translation.truncated,
        )

    @property
    def score(self) -> float | None:
        """Log probability per token, the end symbol included."""
        return None if self.logprob is None else self.logprob / (self.tokens + 1)


@dataclass(frozen=True)
class ShardContent:
    """A shard that was read: its header, its records, and the SHA-256 of all of it."""

    header: Header
    records: list[Record]
    sha256: str


def shard_path(directory: Place, number: int) -> Place:
    return directory / f"{number:06}.jsonl"


def write_shard(
    directory: Place,
    job: Job,
    number: int,
    lines: Sequence[str],
    records: Sequence[Record],
    kind: str | None = None,
    crashed: Iterable[int] = (),
) -> None:
    """Write a shard whole, or not at all."""
    body = encode_lines(json.dumps(asdict(record), ensure_ascii=False) for record in records)
    header = Header(
        number=number,
        job=job,
        source_sha256=hashlib.sha256(encode_lines(lines)).hexdigest(),
        records_sha256=hashlib.sha256(body).hexdigest(),
        kind=kind,
        crashed=tuple(sorted(crashed)),
    )
    first = json.dumps(header.model_dump(mode="json")).encode() + b"\n"
    write_whole(shard_path(directory, number), first + body)


def read_header(path: Place, job: Job) -> Header:
    """The header of a shard, which must be one of `job` and stand at its place."""
    try:
        with open_reading(path) as file:
            line = file.readline(LARGEST_JSON)
    except OSError as error:
        raise _unreadable(path, error) from None
    return _parse_header(line, path, job)


def read_shard(path: Place, job: Job, lines: Sequence[str]) -> ShardContent:
    """A shard, after checking that it is whole and belongs to `lines`."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from None
    first, _, body = content.partition(b"\n")
    header = _parse_header(first, path, job)
    if hashlib.sha256(body).hexdigest() != header.records_sha256:
        raise _damaged(path)
    if hashlib.sha256(encode_lines(lines)).hexdigest() != header.source_sha256:
        raise BothendsError(
            f"{path}: its source lines are not those of the text; the text has changed meanwhile"
        )
    records = [Record(**parse_json(line)) for line in body.split(b"\n")[:-1]]
    return ShardContent(header, records, hashlib.sha256(content).hexdigest())


def _parse_header(line: bytes, path: Place, job: Job) -> Header:
    try:
        header = Header.model_validate(parse_versioned(line, path, FORMAT_VERSION))
    except ValueError:  # pydantic's errors are such, too
        raise _damaged(path) from None
    if difference := job.difference(header.job):
        raise BothendsError(
            f"{path}: a shard of another job ({difference}); name another --output, or remove it"
        )
    if path != shard_path(path.parent, header.number):
        raise BothendsError(f"{path}: is shard {header.number} under another name; rename it")
    return header


def _unreadable(path: Place, error: OSError) -> BothendsError:
    return BothendsError(f"{path}: cannot be read ({error.strerror or error})")


def _damaged(path: Place) -> BothendsError:
    return BothendsError(f"{path}: damaged; remove it, and the same command makes it again")
