"""A distilled corpus on disk, and how shards become one.

train.source, train.target   the text, line N of one belongs to line N of the other
manifest.json                teacher, settings, counts, checksums: with it, it is complete
shards/000000.jsonl ...      what each process wrote
"""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from bothends import __version__
from bothends.distillation.filters import PairFilters, Reason
from bothends.distillation.job import Job, encode_lines
from bothends.distillation.shard_directory import Account, ShardDirectory, spans
from bothends.distillation.shard_file import Record, shard_path
from bothends.distillation.teachers import Teacher, package_versions
from bothends.errors import BothendsError
from bothends.provenance import source_commit
from bothends.storage.digests import FileRecord
from bothends.storage.places import (
    Output,
    Place,
    names_in,
    read_record,
    several_outputs,
    size_of,
    write_whole,
)
from bothends.storage.records import parse_versioned
from bothends.storage.schemas import Strict

#: 2 has kinds of processors, and lines that crashed.
FORMAT_VERSION = 2
MANIFEST = "manifest.json"
SOURCE, TARGET = "train.source", "train.target"
#: Lines that crash whoever translates them, if they are kept aside.
CRASHED = "crashed.jsonl"


class Counts(Strict):
    """What became of the source lines."""

    read: int
    kept: int
    #: a count for each filter that was on; a pair counts once, under the first that drops it
    dropped: dict[Reason, int]
    #: translations that reached the length limit
    unfinished: int
    #: source lines that were over-long, and translated in part
    truncated: int


class Manifest(Strict):
    """What `manifest.json` says of a distilled corpus."""

    format_version: int = FORMAT_VERSION
    job: Job
    filters: PairFilters
    counts: Counts
    files: dict[str, FileRecord]
    #: SHA-256 of every shard
    shards: dict[str, str]
    #: which shards were made by which kind of processor
    kinds: dict[str, str] = Field(default_factory=dict)
    #: `FILE:LINE` of lines that crash whoever translates them
    crashed: tuple[str, ...] = ()
    #: paths as they were given, the teacher's description, versions
    provenance: dict[str, Any]


@dataclass(frozen=True)
class DistilledCorpus:
    """The directory of a distilled corpus, complete or in the making."""

    path: Place

    @property
    def shards(self) -> ShardDirectory:
        return ShardDirectory(self.path / "shards")

    def open(self, job: Job) -> None:
        """Make the directory, or check that whatever is in it belongs to `job`."""
        ours = self.shards.exists() or (self.path / MANIFEST).is_file()
        if not ours and (self.path.is_file() or names_in(self.path)):
            # Whatever it is, it is not ours to write into.
            raise BothendsError(f"{self.path}: exists and is not a distilled corpus")
        self.shards.open(job)

    def manifest(self) -> Manifest | None:
        """The manifest if the corpus is complete, or None."""
        path = self.path / MANIFEST
        if not path.is_file():
            return None
        try:
            content = parse_versioned(read_record(path), path, FORMAT_VERSION)
            manifest = Manifest.model_validate(content)
        except ValueError:  # pydantic's errors are such, too
            raise BothendsError(
                f"{path}: not the manifest of a distilled corpus, or damaged; name another --output"
            ) from None
        for name, record in manifest.files.items():
            if size_of(self.path / name) != record.bytes:
                return None
        return manifest

    def merge(
        self,
        job: Job,
        filters: PairFilters,
        teacher: Teacher,
        sources: Sequence[Place],
        *,
        same_kind: bool = False,
        crashed_aside: bool = False,
    ) -> Manifest:
        """Write text and manifest out of the shards, which must all be there and whole."""
        if missing := self.shards.missing(job):
            raise BothendsError(
                f"{self.shards.place}: {len(missing)} of {job.shards} shards are missing "
                f"({_few(spans(missing))}); the same command without --merge makes them"
            )
        (self.path / MANIFEST).unlink(missing_ok=True)
        account = Account(job, sources)
        digests: dict[str, str] = {}
        with several_outputs() as outputs:
            text = _TextInTheMaking(self.path, filters, outputs)
            for lines, shard in self.shards.read(job, sources, account):
                text.add(lines, shard.records)
                digests[shard_path(self.path, shard.header.number).name] = shard.sha256
            if same_kind:
                account.check_same_kind(self.path)
            if crashed_aside and account.crashed:
                text.keep(CRASHED, account.crashed_file())
            counts, files = text.finish()
        manifest = Manifest(
            job=job,
            filters=filters,
            counts=counts,
            files=files,
            shards=digests,
            kinds=account.kinds,
            crashed=tuple(map(str, account.crashed)),
            provenance=provenance_of(teacher, sources),
        )
        content = json.dumps(manifest.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
        write_whole(self.path / MANIFEST, content.encode())
        self.shards.remove_leftovers()
        return manifest


class _TextInTheMaking:
    """The two text files while pairs are filtered, counted and written."""

    def __init__(self, directory: Place, filters: PairFilters, outputs: list[Output]) -> None:
        self._directory = directory
        self._filters = filters
        self._outputs = outputs
        self._files: dict[str, Output] = {}
        for name in (SOURCE, TARGET):
            self._open(name)
        self._read = self._kept = self._unfinished = self._truncated = 0
        self._dropped: Counter[Reason] = Counter()

    def _open(self, name: str) -> Output:
        self._files[name] = Output(self._directory / name)
        self._outputs.append(self._files[name])
        return self._files[name]

    def keep(self, name: str, content: bytes) -> None:
        """A further file."""
        self._open(name).write(content)

    def add(self, lines: Sequence[str], records: Sequence[Record]) -> None:
        """Add the pairs of a shard."""
        sources, targets = [], []
        for line, record in zip(lines, records, strict=True):
            reason = self._filters.refuse(line, record)
            if reason is None:
                sources.append(line)
                targets.append(record.text)
            else:
                self._dropped[reason] += 1
            self._unfinished += not record.finished
            self._truncated += record.truncated
        self._read += len(lines)
        self._kept += len(sources)
        self._files[SOURCE].write(encode_lines(sources))
        self._files[TARGET].write(encode_lines(targets))

    def finish(self) -> tuple[Counts, dict[str, FileRecord]]:
        """Close the files; what is in them."""
        counts = Counts(
            read=self._read,
            kept=self._kept,
            dropped={reason: self._dropped[reason] for reason in self._filters.reasons},
            unfinished=self._unfinished,
            truncated=self._truncated,
        )
        return counts, {name: file.close() for name, file in self._files.items()}


def provenance_of(teacher: Teacher, sources: Sequence[Place]) -> dict[str, Any]:
    """Who translated what, where: for readers of a manifest."""
    return {
        **teacher.provenance(),
        "sources": [str(path) for path in sources],
        "versions": {
            "bothends": __version__,
            "python": platform.python_version(),
            **package_versions(teacher),
        },
        "commit": source_commit(),
    }


def _few(parts: Sequence[str]) -> str:
    """The first parts, and how many more there are."""
    more = len(parts) - 3
    return ", ".join(parts[:3]) + (f" and {more} more gaps" if more > 0 else "")
