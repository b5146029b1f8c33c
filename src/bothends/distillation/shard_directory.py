"""The shards of a job, in a directory or a store: which are there, whose they are, all in order.

A store of objects has no empty directories, and thousands of headers take long to read from afar.
There, one object, `job.json`, says whose shards these are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bothends.distillation.job import Job, read_shards
from bothends.distillation.shard_file import (
    Header,
    ShardContent,
    read_header,
    read_shard,
    shard_path,
)
from bothends.errors import BothendsError
from bothends.progress import progress
from bothends.storage.places import Place, Remote, names_in, read_record, write_whole
from bothends.storage.records import parse_json

JOB = "job.json"


@dataclass(frozen=True)
class ShardDirectory:
    """Where the shards of a job are, or will be."""

    place: Place

    def exists(self) -> bool:
        return self.place.is_dir()

    def open(self, job: Job) -> None:
        """Make the directory, or check that whatever is in it belongs to `job`."""
        if isinstance(self.place, Remote):
            self._open_remote(job)
            return
        for number in self.numbers():
            read_header(shard_path(self.place, number), job)
        try:
            self.place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BothendsError(f"{self.place.parent}: cannot be made ({error.strerror})") from None

    def _open_remote(self, job: Job) -> None:
        place = self.place / JOB
        try:
            found = Job.model_validate(parse_json(read_record(place)))
        except FileNotFoundError:
            content = json.dumps(job.model_dump(mode="json"), indent=2, ensure_ascii=False)
            write_whole(place, f"{content}\n".encode())
            return
        except ValueError:  # pydantic's errors are such, too
            raise BothendsError(f"{place}: damaged; name another --output") from None
        if difference := job.difference(found):
            raise BothendsError(
                f"{self.place}: shards of another job ({difference}); name another --output, or "
                "remove them"
            )

    def numbers(self) -> list[int]:
        """Numbers of the shards that are there."""
        matches = (re.fullmatch(r"(\d{6,})\.jsonl", name) for name in names_in(self.place))
        return [int(match[1]) for match in matches if match]

    def missing(self, job: Job) -> list[int]:
        """Numbers of the shards that are not there yet."""
        there = set(self.numbers())
        return [number for number in range(job.shards) if number not in there]

    def first_kind(self, job: Job) -> str | None:
        """The kind of processor that made the first shard, if there is one that tells."""
        numbers = self.numbers()
        return read_header(shard_path(self.place, numbers[0]), job).kind if numbers else None

    def read(
        self, job: Job, sources: Sequence[Place], account: Account
    ) -> Iterator[tuple[list[str], ShardContent]]:
        """All shards with their source lines, in order, each checked; one at a time in memory."""
        with progress("merge", "lines", job.lines) as advance:
            for number, lines in enumerate(read_shards(sources, job.shard_lines)):
                path = shard_path(self.place, number)
                if not path.is_file():
                    raise BothendsError(f"{path}: is missing; the same command makes it")
                content = read_shard(path, job, lines)
                account.add(content.header, lines)
                yield lines, content
                advance(len(lines))

    def remove_leftovers(self) -> None:
        """Remove what processes that were killed did not finish."""
        for name in names_in(self.place):
            if name.startswith(".") and name.endswith(".partial"):
                (self.place / name).unlink(missing_ok=True)


@dataclass(frozen=True)
class CrashedLine:
    """A line that crashes whoever translates it."""

    file: str
    #: from 1
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass
class Account:
    """What the shards of a job say of themselves."""

    job: Job
    sources: Sequence[Place]
    #: by kind of processor, the shards it made
    _shards: dict[str, list[int]] = field(default_factory=dict)
    crashed: list[CrashedLine] = field(default_factory=list)

    def add(self, header: Header, lines: Sequence[str]) -> None:
        self._shards.setdefault(header.kind or "not recorded", []).append(header.number)
        first = header.number * self.job.shard_lines
        self.crashed += [self.crashed_line(first + index, lines[index]) for index in header.crashed]

    def crashed_line(self, number: int, text: str) -> CrashedLine:
        """A line of the text, counted over all files, with its place."""
        for path, record in zip(self.sources, self.job.sources, strict=True):
            if number < record.lines:
                return CrashedLine(str(path), number + 1, text)
            number -= record.lines
        raise AssertionError("past the end of the text")

    @property
    def kinds(self) -> dict[str, str]:
        """Which shards were made by which kind of processor, as in `0-41, 43`."""
        return {kind: ", ".join(spans(numbers)) for kind, numbers in sorted(self._shards.items())}

    def check_same_kind(self, place: Place) -> None:
        """Refuse shards of several kinds."""
        if len(self._shards) > 1:
            kinds = "; ".join(f"{shards}: {kind}" for kind, shards in self.kinds.items())
            raise other_kind(f"{place}: shards of several kinds of processors ({kinds})")

    def crashed_file(self) -> bytes:
        """The lines that were kept aside, one JSON record each."""
        records = [vars(line) for line in self.crashed]
        return "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in records).encode()


def other_kind(what: str) -> BothendsError:
    """The error of `--same-kind`."""
    return BothendsError(
        f"{what}; --same-kind insists on one: use machines of one kind, or leave it out"
    )


def spans(numbers: Sequence[int]) -> list[str]:
    """Numbers as `0`, `3-5`."""
    return [f"{first}-{last}" if first < last else f"{first}" for first, last in _runs(numbers)]


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield first, last
            first = number
        last = number
    yield first, last
