"""What a worker of a distillation does: translate a shard and write it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bothends.distillation.job import Job
from bothends.distillation.shard_file import write_shard
from bothends.distillation.teachers import Teacher


@dataclass(frozen=True)
class Shard:
    """Source lines to be translated, by their place in the corpus."""

    number: int
    lines: list[str]


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
                records = translate_lines(shard.lines)
                write_shard(self.directory, self.job, shard.number, shard.lines, records)
                return len(shard.lines)

            yield translate
