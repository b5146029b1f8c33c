"""A teacher and source text to a distilled corpus: translate the missing shards, and merge."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

from bothends.distillation.corpus_directory import DistilledCorpus, Manifest
from bothends.distillation.filters import PairFilters
from bothends.distillation.job import Job, describe_job
from bothends.distillation.shard_run import OnCrash, ShardRun, Share
from bothends.distillation.shard_times import ShardTimes
from bothends.distillation.teachers import CommandTeacher, Teacher
from bothends.errors import BothendsError, UsageError
from bothends.jobs import SHARD_LINES
from bothends.jobs.locks import lock_directory
from bothends.jobs.pool import ATTEMPTS, InThisProcess, Pool, ProcessPool
from bothends.storage.places import Place

#: Of progress, and of the picture.
_TITLE = "distill"


@dataclass(frozen=True)
class Distillation:
    """The settings of `distill`."""

    teacher: Teacher
    sources: tuple[Place, ...]
    output: Place
    filters: PairFilters = field(default_factory=PairFilters)
    processes: int = 1
    #: translate this part only, and leave merging to another call
    share: Share | None = None
    #: translate nothing: a missing shard is an error
    merge_only: bool = False
    shard_lines: int = SHARD_LINES
    on_crash: OnCrash = "error"
    #: the workers; by default `processes` on this machine
    pool: Pool | None = None
    #: insist that one kind of processor makes all shards
    same_kind: bool = False
    #: where a picture of the shards over time goes
    picture: Place | None = None

    def __post_init__(self) -> None:
        if self.share is not None and self.merge_only:
            raise UsageError("--shard translates a part, --merge nothing: give one of the two")
        if self.processes < 1:
            raise UsageError(f"processes must be at least 1, but are {self.processes}")
        if self.filters.min_score is not None and not self.teacher.has_scores:
            raise UsageError("--min-score needs log probabilities, which a program does not give")


def distill(options: Distillation) -> Manifest | None:
    """Translate what is missing and merge; None if other machines' parts are still to come.

    Interrupted at any moment, the same call goes on where it was, to the same result. What it finds
    complete it leaves as it is.
    """
    job = describe_job(options.teacher, options.sources, options.shard_lines)
    corpus = DistilledCorpus(options.output)
    manifest = corpus.manifest()
    if manifest is not None and (difference := job.difference(manifest.job)):
        raise BothendsError(
            f"{options.output}: holds a distilled corpus of another job ({difference}); "
            "name another --output, or remove it"
        )
    if manifest is not None and manifest.filters == options.filters:
        _say(f"{options.output}: complete, nothing to do")
        ShardTimes().draw(options.picture, _TITLE)
        return manifest
    corpus.open(job)
    # Machines that share the work may share the directory.
    busy = f"{options.output}: another process is at work there"
    with lock_directory(corpus.shards.place, busy, shared=options.share is not None):
        times = ShardTimes() if options.merge_only else _translate(options, job, corpus)
        manifest = _merge(options, job, corpus)
    # Last: that a picture cannot be written is an error, but no reason to leave the rest undone.
    times.draw(options.picture, _TITLE)
    return manifest


def _merge(options: Distillation, job: Job, corpus: DistilledCorpus) -> Manifest | None:
    if options.share is not None:
        missing = len(corpus.shards.missing(job))
        _say(
            f"{options.output}: {job.shards - missing:,} of {job.shards:,} shards are there"
            + ("" if missing else "; the same command without --shard merges them")
        )
        return None
    return corpus.merge(
        job,
        options.filters,
        options.teacher,
        options.sources,
        same_kind=options.same_kind,
        crashed_aside=options.on_crash == "aside",
    )


def _translate(options: Distillation, job: Job, corpus: DistilledCorpus) -> ShardTimes:
    run = ShardRun(
        options.teacher,
        job,
        options.sources,
        corpus.shards,
        options.share or Share(),
        options.on_crash,
        options.same_kind,
        options.picture,
    )
    missing = run.missing()
    if not missing:
        return ShardTimes()
    there = job.shards - len(corpus.shards.missing(job))
    if there:
        _say(f"{options.output}: going on, {there:,} of {job.shards:,} shards are there")
    pool = options.pool or _pool(options, len(missing))
    _say(
        f"{options.teacher.name} translates {sum(map(job.shard_size, missing)):,} of "
        f"{job.lines:,} lines, " + (f"beam {job.beam}, " if job.beam else "") + str(pool)
    )
    return run.run(pool, _TITLE)


def _pool(options: Distillation, shards: int) -> Pool:
    """As many processes as there is work for; this one must survive a line that crashes them."""
    if options.processes == 1 and isinstance(options.teacher, CommandTeacher):
        return InThisProcess()  # a program crashes in a process of its own
    return ProcessPool(min(options.processes, shards), ATTEMPTS)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
