"""Files of lines, translated as a job: many workers, resumable, the same bytes whoever does it.

The job is that of a distillation (`distillation/job.py`): shards that are written whole, each with
the description of its job. When all are there they become one output for each input, and the shards
are removed.

    --output DIR     DIR/NAME for each input NAME, DIR/manifest.json, DIR/shards while it runs
    --output FILE    FILE for a single input; the rest is in FILE.job/
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bothends.digests import FileRecord, RecordingWriter
from bothends.distillation.corpus_directory import provenance_of
from bothends.distillation.job import SHARD_LINES, Job, describe_job, encode_lines, read_shards
from bothends.distillation.shard_file import Record, read_header, read_shard, shard_path
from bothends.distillation.shard_run import OnCrash, ShardRun, Share
from bothends.distillation.teachers import Teacher
from bothends.errors import BothendsError, UsageError
from bothends.files import atomic_file, real_path, write_atomically
from bothends.jobs.locks import lock_directory
from bothends.jobs.pool import ATTEMPTS, Pool, ProcessPool
from bothends.progress import progress
from bothends.records import LARGEST_JSON, Strict, parse_versioned, read_bounded

FORMAT_VERSION = 1
MANIFEST, SHARDS = "manifest.json", "shards"


class BulkManifest(Strict):
    """What `manifest.json` says of a finished job."""

    format_version: int = FORMAT_VERSION
    job: Job
    #: by path as the directory of the manifest sees it
    files: dict[str, FileRecord]
    #: translations that reached the length limit, and lines that were cut
    unfinished: int
    truncated: int
    provenance: dict[str, Any]


@dataclass(frozen=True)
class BulkTranslation:
    """Everything that is asked of a job."""

    #: whoever translates
    teacher: Teacher
    inputs: tuple[Path, ...]
    output: Path
    pool: Pool = field(default_factory=lambda: ProcessPool(1, ATTEMPTS))
    #: translate this part only, and leave merging to another call
    share: Share | None = None
    shard_lines: int = SHARD_LINES
    on_crash: OnCrash = "error"

    @property
    def is_directory(self) -> bool:
        return len(self.inputs) > 1 or self.output.is_dir()

    @property
    def directory(self) -> Path:
        """Where manifest and shards are."""
        if self.is_directory:
            return self.output
        return self.output.with_name(f"{self.output.name}.job")

    def outputs(self) -> list[Path]:
        """The output of each input."""
        if not self.is_directory:
            return [self.output]
        names = [path.name.removesuffix(".gz") for path in self.inputs]
        for path, name in zip(self.inputs, names, strict=True):
            if names.count(name) > 1 or name in (MANIFEST, SHARDS):
                raise UsageError(
                    f"{path}: its translation would be {self.output / name}, which is taken; "
                    "translate it to another --output"
                )
        outputs = [self.output / name for name in names]
        for path, output in zip(self.inputs, outputs, strict=True):
            if real_path(output) == real_path(path):
                raise UsageError(f"{path}: would be overwritten; name another --output")
        return outputs


def translate_in_bulk(options: BulkTranslation) -> BulkManifest | None:
    """Translate what is missing and merge; None if other machines' parts are still to come.

    Interrupted at any moment, the same call goes on where it was, to the same result.
    """
    if not options.inputs:
        raise UsageError("no input: name the files to translate")
    outputs = options.outputs()
    job = describe_job(options.teacher, options.inputs, options.shard_lines)
    directory, shards = options.directory, options.directory / SHARDS
    manifest = _read_manifest(directory, job)
    if manifest is not None:
        shutil.rmtree(shards, ignore_errors=True)
        _say(f"{options.output}: complete, nothing to do")
        return manifest
    _open(options, job)
    # Machines that share the work may share the directory.
    busy = f"{options.output}: another process is at work there"
    with lock_directory(shards, busy, shared=options.share is not None):
        run = ShardRun(
            options.teacher,
            job,
            options.inputs,
            shards,
            options.share or Share(),
            options.on_crash,
        )
        _translate(options, run)
        missing = sum(not shard_path(shards, number).is_file() for number in range(job.shards))
        if options.share is not None:
            _say(
                f"{options.output}: {job.shards - missing:,} of {job.shards:,} shards are there"
                + ("" if missing else "; the same command without --shard merges them")
            )
            return None
        manifest = _merge(options, job, outputs)
        shutil.rmtree(shards, ignore_errors=True)
    return manifest


@dataclass(frozen=True)
class MeasuredRate:
    """How fast one worker is on this machine."""

    #: lines a second
    rate: float
    #: seconds until it begins
    start: float
    lines: int


def measure_rate(teacher: Teacher, source: Path, sample: int) -> MeasuredRate:
    """Translate the first lines of a text, after a few that are not timed."""
    lines = next(read_shards([source], sample), [])
    if not lines:
        raise BothendsError(f"{source}: no lines to translate")
    begun = time.perf_counter()
    with teacher.start() as translate:
        translate(lines[:3])
        ready = time.perf_counter()
        translate(lines)
        ended = time.perf_counter()
    return MeasuredRate(len(lines) / (ended - ready), ready - begun, len(lines))


def _translate(options: BulkTranslation, run: ShardRun) -> None:
    job, missing = run.job, run.missing()
    if not missing:
        return
    if (there := job.shards - len(missing)) and options.share is None:
        _say(f"{options.output}: going on, {there:,} of {job.shards:,} shards are there")
    lines = sum(map(job.shard_size, missing))
    _say(f"{options.teacher.name} translates {lines:,} of {job.lines:,} lines, {options.pool}")
    run.run(options.pool, "translate")


def _open(options: BulkTranslation, job: Job) -> None:
    """Make the directory, or check that whatever is in it belongs to `job`."""
    directory, shards = options.directory, options.directory / SHARDS
    if not shards.is_dir() and directory.exists() and any(directory.iterdir()):
        raise BothendsError(
            f"{directory}: exists and is not a translation of this; name another --output"
        )
    if not options.is_directory and options.output.exists() and not shards.is_dir():
        raise BothendsError(f"{options.output}: exists; remove it, or name another --output")
    for path in sorted(shards.glob("*.jsonl")):
        read_header(path, job)
    try:
        shards.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BothendsError(f"{directory}: cannot be made ({error.strerror})") from None


def _read_manifest(directory: Path, job: Job) -> BulkManifest | None:
    """The manifest if the job is complete, or None; an error if it is of another one."""
    path = directory / MANIFEST
    if not path.is_file():
        return None
    try:
        manifest = BulkManifest.model_validate(
            parse_versioned(read_bounded(path, LARGEST_JSON), path, FORMAT_VERSION)
        )
    except ValueError:  # pydantic's errors are such, too
        raise BothendsError(
            f"{path}: not the manifest of a translation, or damaged; name another --output"
        ) from None
    if difference := job.difference(manifest.job):
        raise BothendsError(
            f"{directory}: holds a translation of another job ({difference}); name another "
            "--output, or remove it"
        )
    for name, record in manifest.files.items():
        file = directory / name
        if not file.is_file() or file.stat().st_size != record.bytes:
            raise BothendsError(
                f"{file}: is not as it was written; remove {directory} to have it made again"
            )
    return manifest


def _merge(options: BulkTranslation, job: Job, outputs: Sequence[Path]) -> BulkManifest:
    """Write outputs and manifest out of the shards, in memory that does not grow with them."""
    unfinished = truncated = 0
    files: dict[str, FileRecord] = {}
    records = _records(options, job)
    for output, source in zip(outputs, job.sources, strict=True):
        with atomic_file(output) as stream:
            file = RecordingWriter(stream)
            for _ in range(source.lines):
                record = next(records)
                file.write(encode_lines([record.text]))
                unfinished += not record.finished
                truncated += record.truncated
        files[os.path.relpath(output, options.directory)] = file.record()
    manifest = BulkManifest(
        job=job,
        files=files,
        unfinished=unfinished,
        truncated=truncated,
        provenance=provenance_of(options.teacher, options.inputs),
    )
    content = json.dumps(manifest.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
    write_atomically(options.directory / MANIFEST, content.encode())
    return manifest


def _records(options: BulkTranslation, job: Job) -> Iterator[Record]:
    with progress("merge", "lines", job.lines) as advance:
        for number, lines in enumerate(read_shards(options.inputs, job.shard_lines)):
            path = shard_path(options.directory / SHARDS, number)
            if not path.is_file():
                raise BothendsError(f"{path}: is missing; the same command makes it")
            yield from read_shard(path, job, lines)
            advance(len(lines))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
