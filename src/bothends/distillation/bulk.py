"""Files of lines, translated as a job: many workers, resumable, the same bytes whoever does it.

The job is that of a distillation (`distillation/job.py`): shards that are written whole, each with
the description of its job. When all are there they become one output for each input, and the shards
are removed.

    --output DIR     DIR/NAME for each input NAME, DIR/manifest.json, DIR/shards while it runs
    --output FILE    FILE for a single input; the rest is in FILE.job/
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from bothends.distillation.corpus_directory import CRASHED, provenance_of
from bothends.distillation.job import Job, describe_job, encode_lines
from bothends.distillation.shard_directory import Account, ShardDirectory
from bothends.distillation.shard_run import OnCrash, ShardRun, Share
from bothends.distillation.shard_times import ShardTimes
from bothends.distillation.teachers import Teacher
from bothends.errors import BothendsError, UsageError
from bothends.files import real_path
from bothends.jobs import SHARD_LINES
from bothends.jobs.locks import lock_directory
from bothends.jobs.pool import ATTEMPTS, Pool, ProcessPool
from bothends.storage.digests import FileRecord
from bothends.storage.places import (
    Output,
    Place,
    Remote,
    names_in,
    read_record,
    relative_name,
    remove_tree,
    several_outputs,
    size_of,
    write_whole,
)
from bothends.storage.records import parse_versioned
from bothends.storage.schemas import Strict

#: 2 has kinds of processors, and lines that crashed.
FORMAT_VERSION = 2
MANIFEST, SHARDS = "manifest.json", "shards"
#: Of progress, and of the picture.
_TITLE = "translate"


class BulkManifest(Strict):
    """What `manifest.json` says of a finished job."""

    format_version: int = FORMAT_VERSION
    job: Job
    #: by path as the directory of the manifest sees it
    files: dict[str, FileRecord]
    #: translations that reached the length limit, and lines that were cut
    unfinished: int
    truncated: int
    #: which shards were made by which kind of processor
    kinds: dict[str, str] = Field(default_factory=dict)
    #: `FILE:LINE` of lines that crash whoever translates them
    crashed: tuple[str, ...] = ()
    provenance: dict[str, Any]


@dataclass(frozen=True)
class BulkTranslation:
    """Everything that is asked of a job."""

    #: whoever translates
    teacher: Teacher
    inputs: tuple[Place, ...]
    output: Place
    pool: Pool = field(default_factory=lambda: ProcessPool(1, ATTEMPTS))
    #: translate this part only, and leave merging to another call
    share: Share | None = None
    shard_lines: int = SHARD_LINES
    on_crash: OnCrash = "error"
    #: insist that one kind of processor makes all shards
    same_kind: bool = False
    #: where a picture of the shards over time goes
    picture: Place | None = None

    @property
    def is_directory(self) -> bool:
        return len(self.inputs) > 1 or self.output.is_dir()

    @property
    def directory(self) -> Place:
        """Where manifest and shards are."""
        if self.is_directory:
            return self.output
        return self.output.with_name(f"{self.output.name}.job")

    def outputs(self) -> list[Place]:
        """The output of each input."""
        if not self.is_directory:
            self._check_picture([self.output])
            return [self.output]
        names = [path.name.removesuffix(".gz") for path in self.inputs]
        for path, name in zip(self.inputs, names, strict=True):
            if names.count(name) > 1 or name in (MANIFEST, SHARDS, CRASHED):
                raise UsageError(
                    f"{path}: its translation would be {self.output / name}, which is taken; "
                    "translate it to another --output"
                )
        outputs = [self.output / name for name in names]
        for path, output in zip(self.inputs, outputs, strict=True):
            if _resolved(output) == _resolved(path):
                raise UsageError(f"{path}: would be overwritten; name another --output")
        self._check_picture(outputs)
        return outputs

    def _check_picture(self, outputs: Sequence[Place]) -> None:
        if self.picture is not None and _resolved(self.picture) in map(_resolved, outputs):
            raise UsageError(
                f"--picture {self.picture}: is another output, too; name a different file"
            )


def translate_in_bulk(options: BulkTranslation) -> BulkManifest | None:
    """Translate what is missing and merge; None if other machines' parts are still to come.

    Interrupted at any moment, the same call goes on where it was, to the same result.
    """
    if not options.inputs:
        raise UsageError("no input: name the files to translate")
    outputs = options.outputs()
    job = describe_job(options.teacher, options.inputs, options.shard_lines)
    directory, shards = options.directory, ShardDirectory(options.directory / SHARDS)
    manifest = _read_manifest(directory, job)
    if manifest is not None:
        remove_tree(shards.place)
        _say(f"{options.output}: complete, nothing to do")
        ShardTimes().draw(options.picture, _TITLE)
        return manifest
    _open(options, job, shards)
    # Machines that share the work may share the directory.
    busy = f"{options.output}: another process is at work there"
    with lock_directory(shards.place, busy, shared=options.share is not None):
        run = ShardRun(
            options.teacher,
            job,
            options.inputs,
            shards,
            options.share or Share(),
            options.on_crash,
            options.same_kind,
            options.picture,
        )
        times = _translate(options, run)
        if options.share is None:
            manifest = _merge(options, job, shards, outputs)
        else:
            missing = len(shards.missing(job))
            _say(
                f"{options.output}: {job.shards - missing:,} of {job.shards:,} shards are there"
                + ("" if missing else "; the same command without --shard merges them")
            )
    if manifest is not None:
        remove_tree(shards.place)
    # Last: that a picture cannot be written is an error, but no reason to leave the rest undone.
    times.draw(options.picture, _TITLE)
    return manifest


def _translate(options: BulkTranslation, run: ShardRun) -> ShardTimes:
    job, missing = run.job, run.missing()
    if not missing:
        return ShardTimes()
    if (there := job.shards - len(missing)) and options.share is None:
        _say(f"{options.output}: going on, {there:,} of {job.shards:,} shards are there")
    lines = sum(map(job.shard_size, missing))
    _say(f"{options.teacher.name} translates {lines:,} of {job.lines:,} lines, {options.pool}")
    return run.run(options.pool, _TITLE)


def _open(options: BulkTranslation, job: Job, shards: ShardDirectory) -> None:
    """Make the directory, or check that whatever is in it belongs to `job`."""
    directory = options.directory
    if not shards.exists() and names_in(directory):
        raise BothendsError(
            f"{directory}: exists and is not a translation of this; name another --output"
        )
    if not options.is_directory and options.output.exists() and not shards.exists():
        raise BothendsError(f"{options.output}: exists; remove it, or name another --output")
    shards.open(job)


def _read_manifest(directory: Place, job: Job) -> BulkManifest | None:
    """The manifest if the job is complete, or None; an error if it is of another one."""
    path = directory / MANIFEST
    if not path.is_file():
        return None
    try:
        manifest = BulkManifest.model_validate(
            parse_versioned(read_record(path), path, FORMAT_VERSION)
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
        if size_of(file) != record.bytes:
            raise BothendsError(
                f"{file}: is not as it was written; remove {directory} to have it made again"
            )
    return manifest


def _merge(
    options: BulkTranslation, job: Job, shards: ShardDirectory, outputs: Sequence[Place]
) -> BulkManifest:
    """Write outputs and manifest out of the shards, in memory that does not grow with them."""
    unfinished = truncated = 0
    files: dict[str, FileRecord] = {}
    account = Account(job, options.inputs)
    records = (
        record for _, shard in shards.read(job, options.inputs, account) for record in shard.records
    )
    with several_outputs() as written:
        for output, source in zip(outputs, job.sources, strict=True):
            file = Output(output)
            written.append(file)
            for _ in range(source.lines):
                record = next(records)
                file.write(encode_lines([record.text]))
                unfinished += not record.finished
                truncated += record.truncated
            files[relative_name(output, options.directory)] = file.close()
        next(records, None)  # the last shard is accounted for, and progress ends
        if options.same_kind:
            account.check_same_kind(options.output)
        if options.on_crash == "aside" and account.crashed:
            written.append(Output(options.directory / CRASHED))
            written[-1].write(account.crashed_file())
            files[CRASHED] = written[-1].close()
    manifest = BulkManifest(
        job=job,
        files=files,
        unfinished=unfinished,
        truncated=truncated,
        kinds=account.kinds,
        crashed=tuple(map(str, account.crashed)),
        provenance=provenance_of(options.teacher, options.inputs),
    )
    content = json.dumps(manifest.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
    write_whole(options.directory / MANIFEST, content.encode())
    return manifest


def _resolved(place: Place) -> str:
    return str(place if isinstance(place, Remote) else real_path(place))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
