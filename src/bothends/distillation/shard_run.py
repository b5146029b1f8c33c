"""The shards of a job that are not there yet, translated by a pool of workers.

A line that crashes its worker is found by halving the shard, and named with its file. By request
its translation is empty; otherwise the run goes on with the other shards and ends with an error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from bothends.distillation.job import Job, read_shards
from bothends.distillation.shard_file import Record, shard_path, write_shard
from bothends.distillation.teachers import Teacher
from bothends.errors import BothendsError, UsageError
from bothends.jobs.pool import Pool, ProcessPool
from bothends.progress import progress

#: What becomes of a line that crashes every worker.
OnCrash = Literal["error", "empty"]


@dataclass(frozen=True)
class Share:
    """One of several equal parts of the shards: `2/5` is the second of five."""

    index: int = 1
    parts: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.index <= self.parts:
            raise UsageError(
                f"--shard {self.index}/{self.parts}: expected I/N with I from 1 to N, such as 1/4"
            )

    @classmethod
    def parse(cls, text: str) -> Share:
        index, slash, parts = text.partition("/")
        if not slash or not index.isdecimal() or not parts.isdecimal():
            raise UsageError(f"--shard {text}: expected I/N with I from 1 to N, such as 1/4")
        return cls(int(index), int(parts))

    def has(self, shard: int) -> bool:
        return shard % self.parts == self.index - 1


@dataclass(frozen=True)
class Shard:
    """Source lines to be translated, by their place in the corpus."""

    number: int
    lines: list[str]
    #: lines that crash workers, by index: their translations are empty
    crashing: frozenset[int] = frozenset()
    #: is not written: the question is whether its worker survives
    is_trial: bool = False

    def only(self, indices: Sequence[int]) -> Shard:
        """Some of the lines, for a trial."""
        return Shard(self.number, [self.lines[index] for index in indices], is_trial=True)


@dataclass(frozen=True)
class TranslateShards:
    """Work for a pool: shards in, the number of lines of each out, once it is written."""

    teacher: Teacher
    job: Job
    #: where shards are written
    directory: Path

    @contextmanager
    def start(self) -> Iterator[Callable[[Shard], int]]:
        with self.teacher.start() as translate_lines:

            def translate(shard: Shard) -> int:
                good = [
                    line for index, line in enumerate(shard.lines) if index not in shard.crashing
                ]
                records = iter(translate_lines(good))
                aligned = [
                    _EMPTY if index in shard.crashing else next(records)
                    for index in range(len(shard.lines))
                ]
                if not shard.is_trial:
                    write_shard(self.directory, self.job, shard.number, shard.lines, aligned)
                return len(shard.lines)

            yield translate


_EMPTY = Record("", logprob=None, tokens=0, source_tokens=0, finished=True, truncated=False)


@dataclass(frozen=True)
class ShardRun:
    """The part of a job that is to be done here."""

    teacher: Teacher
    job: Job
    sources: Sequence[Path]
    #: of shards
    directory: Path
    share: Share = Share()
    on_crash: OnCrash = "error"

    def missing(self) -> list[int]:
        """Numbers of the shards that are not there yet."""
        return [
            number
            for number in range(self.job.shards)
            if self.share.has(number) and not shard_path(self.directory, number).is_file()
        ]

    def run(self, pool: Pool, title: str) -> None:
        """Translate what is missing."""
        missing = set(self.missing())
        lost: list[Shard] = []
        work = TranslateShards(self.teacher, self.job, self.directory)
        with progress(title, "sentences", sum(map(self.job.shard_size, missing))) as advance:
            for lines_done in pool.run(work, self._shards(missing), lost.append):
                advance(lines_done)
            crashes = [place for shard in lost for place in self._find_crashes(shard)]
        if crashes and self.on_crash == "error":
            raise BothendsError(
                f"{crashes[0]}: this line crashes whoever translates it"
                + (f" (and {len(crashes) - 1} more)" if len(crashes) > 1 else "")
                + "; all else is done; --on-crash empty leaves it without a translation"
            )

    def _shards(self, wanted: set[int]) -> Iterator[Shard]:
        for number, lines in enumerate(read_shards(self.sources, self.job.shard_lines)):
            if number in wanted:
                yield Shard(number, lines)

    def _find_crashes(self, shard: Shard) -> list[str]:
        """The places of the lines that crash workers. If they may, the shard is written then."""
        _say(f"shard {shard.number}: searching for the line that crashes its workers")
        crashed: list[Shard] = []
        crashing: list[int] = []

        def halves() -> Iterator[Shard]:
            """Parts of the shard; the pool asks for one when it knows what became of the last."""
            while True:
                suspects = [index for index in range(len(shard.lines)) if index not in crashing]
                while len(suspects) > 1:
                    half = suspects[: len(suspects) // 2]
                    yield shard.only(half)
                    suspects = half if crashed else suspects[len(half) :]
                    crashed.clear()
                yield shard.only(suspects)
                if not crashed:
                    raise BothendsError(
                        f"shard {shard.number}: its workers were killed, but no line of it does "
                        "that alone; if memory ran out, use fewer --processes"
                    )
                crashed.clear()
                crashing.append(suspects[0])
                write = self.on_crash == "empty"
                yield replace(shard, crashing=frozenset(crashing), is_trial=not write)
                if not crashed:
                    return
                crashed.clear()

        work = TranslateShards(self.teacher, self.job, self.directory)
        # One worker, so that one task is done before the next is asked for.
        for _ in ProcessPool(1).run(work, halves(), crashed.append):
            pass
        places = []
        for index in sorted(crashing):
            places.append(self._place(shard.number * self.job.shard_lines + index))
            line = shard.lines[index][:80]
            _say(f"{places[-1]}: this line crashes whoever translates it: {line!r}")
        return places

    def _place(self, line: int) -> str:
        """`FILE:LINE` of a line of the text."""
        for path, record in zip(self.sources, self.job.sources, strict=True):
            if line < record.lines:
                return f"{path}:{line + 1}"
            line -= record.lines
        raise AssertionError("past the end of the text")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
