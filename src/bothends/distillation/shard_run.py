"""The shards of a job that are not there yet, translated by a pool of workers.

A line that crashes its worker is found by halving the shard, and named with its file. By request
its translation is empty, and the line may be kept aside; otherwise the run goes on with the other
shards and ends with an error.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from bothends.distillation.job import Job, read_shards
from bothends.distillation.shard_directory import (
    Account,
    CrashedLine,
    ShardDirectory,
    other_kind,
)
from bothends.distillation.shard_file import Record, shard_path, write_shard
from bothends.distillation.shard_times import ShardTimes
from bothends.distillation.teachers import Teacher, kind_of
from bothends.errors import BothendsError, UsageError, warn
from bothends.jobs.pool import InThisProcess, NodeError, Pool
from bothends.jobs.whereabouts import node_name, worker_name
from bothends.progress import progress
from bothends.storage.places import Place, Remote

#: What becomes of a line that crashes every worker.
OnCrash = Literal["error", "empty", "aside"]


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
class ShardDone:
    """What a worker tells of a shard that it has written."""

    number: int
    lines: int
    #: that it took, writing included
    seconds: float
    node: str
    worker: str
    #: of processor
    kind: str


@dataclass(frozen=True)
class TranslateShards:
    """Work for a pool: shards in; what was done out, once it is written."""

    teacher: Teacher
    job: Job
    #: where shards are written
    directory: Place
    #: of processor; another one is refused. None takes any
    kind: str | None = None

    @contextmanager
    def start(self) -> Iterator[Callable[[Shard], ShardDone]]:
        kind = kind_of(self.teacher)
        if self.kind is not None and kind != self.kind:
            raise other_kind(f"{node_name()}: another kind of processor ({kind}, not {self.kind})")
        with self.teacher.start() as translate_lines:

            def translate(shard: Shard) -> ShardDone:
                begun = time.perf_counter()
                good = [
                    line for index, line in enumerate(shard.lines) if index not in shard.crashing
                ]
                records = iter(translate_lines(good))
                aligned = [
                    _EMPTY if index in shard.crashing else next(records)
                    for index in range(len(shard.lines))
                ]
                if not shard.is_trial:
                    self._write(shard, aligned, kind)
                seconds = time.perf_counter() - begun
                return ShardDone(
                    shard.number, len(shard.lines), seconds, node_name(), worker_name(), kind
                )

            yield translate

    def _write(self, shard: Shard, records: Sequence[Record], kind: str) -> None:
        try:
            write_shard(
                self.directory, self.job, shard.number, shard.lines, records, kind, shard.crashing
            )
        except BothendsError as error:
            # A full disk, for one: another node may have room, or reach the store.
            raise NodeError(str(error)) from None


_EMPTY = Record("", logprob=None, tokens=0, source_tokens=0, finished=True, truncated=False)


@dataclass(frozen=True)
class ShardRun:
    """The part of a job that is to be done here."""

    teacher: Teacher
    job: Job
    sources: Sequence[Place]
    shards: ShardDirectory
    share: Share = Share()
    on_crash: OnCrash = "error"
    same_kind: bool = False
    #: where a picture of the shards over time goes
    picture: Place | None = None

    def missing(self) -> list[int]:
        """Numbers of the shards that are not there yet."""
        return [number for number in self.shards.missing(self.job) if self.share.has(number)]

    def run(self, pool: Pool, title: str) -> ShardTimes:
        """Translate what is missing; when which shard was done, for whoever draws the picture."""
        place = self.shards.place
        if isinstance(place, Remote) and place.is_private and not isinstance(pool, InThisProcess):
            raise UsageError(
                f"{place}: other processes do not see it; name a store that they share"
            )
        missing = set(self.missing())
        kind = self.shards.first_kind(self.job) if self.same_kind else None
        lost: list[Shard] = []
        work = TranslateShards(self.teacher, self.job, place, kind)
        times = ShardTimes(keep=self.picture is not None)
        total = sum(map(self.job.shard_size, missing))
        with progress(title, "sentences", total, times.rates) as advance:
            for done in pool.run(work, self._shards(missing), lost.append):
                times.add(done.number, done.lines, done.seconds, done.node, done.worker)
                advance(done.lines)
                kind = kind or done.kind
                if self.same_kind and done.kind != kind:
                    shard_path(place, done.number).unlink(missing_ok=True)
                    raise other_kind(
                        f"{done.node}: another kind of processor ({done.kind}, not {kind})"
                    )
            crashes = [line for shard in lost for line in self._find_crashes(shard, pool)]
        if crashes and self.on_crash == "error":
            try:
                times.draw(self.picture, title)
            except BothendsError as error:  # the lines that crash are the greater news
                warn(str(error))
            raise BothendsError(
                f"{crashes[0]}: this line crashes whoever translates it"
                + (f" (and {len(crashes) - 1} more)" if len(crashes) > 1 else "")
                + "; all else is done; --on-crash empty leaves it without a translation"
            )
        return times

    def _shards(self, wanted: set[int]) -> Iterator[Shard]:
        for number, lines in enumerate(read_shards(self.sources, self.job.shard_lines)):
            if number in wanted:
                yield Shard(number, lines)

    def _find_crashes(self, shard: Shard, pool: Pool) -> list[CrashedLine]:
        """The lines that crash workers. If they may, the shard is written then."""
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
                        "that alone; if memory ran out, use fewer workers"
                    )
                crashed.clear()
                crashing.append(suspects[0])
                write = self.on_crash != "error"
                yield replace(shard, crashing=frozenset(crashing), is_trial=not write)
                if not crashed:
                    return
                crashed.clear()

        work = TranslateShards(self.teacher, self.job, self.shards.place)
        # One worker, so that one task is done before the next is asked for.
        for _ in pool.alone().run(work, halves(), crashed.append):
            pass
        account, first = Account(self.job, self.sources), shard.number * self.job.shard_lines
        found = [
            account.crashed_line(first + index, shard.lines[index]) for index in sorted(crashing)
        ]
        for line in found:
            _say(f"{line}: this line crashes whoever translates it: {line.text[:80]!r}")
        return found


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
