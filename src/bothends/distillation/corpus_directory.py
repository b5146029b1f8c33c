"""A distilled corpus on disk, and how shards become one.

train.source, train.target   the text, line N of one belongs to line N of the other
manifest.json                teacher, settings, counts, checksums: with it, it is complete
shards/000000.jsonl ...      what each process wrote
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from bothends import __version__
from bothends.digests import FileRecord, RecordingWriter
from bothends.distillation.filters import PairFilters, Reason
from bothends.distillation.job import Job, encode_lines, read_shards
from bothends.distillation.shard_file import Record, read_header, read_shard, shard_path
from bothends.distillation.teachers import Teacher, package_versions
from bothends.errors import BothendsError
from bothends.files import atomic_file, write_atomically
from bothends.progress import progress
from bothends.provenance import source_commit
from bothends.records import LARGEST_JSON, Strict, parse_versioned, read_bounded

FORMAT_VERSION = 1
MANIFEST = "manifest.json"
SOURCE, TARGET = "train.source", "train.target"


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
    #: paths as they were given, the teacher's description, versions
    provenance: dict[str, Any]


@dataclass(frozen=True)
class DistilledCorpus:
    """The directory of a distilled corpus, complete or in the making."""

    path: Path

    @property
    def shards(self) -> Path:
        return self.path / "shards"

    def open(self, job: Job) -> None:
        """Make the directory, or check that whatever is in it belongs to `job`."""
        ours = self.shards.is_dir() or (self.path / MANIFEST).is_file()
        empty = not self.path.exists() or (self.path.is_dir() and not any(self.path.iterdir()))
        if not ours and not empty:
            # Whatever it is, it is not ours to write into.
            raise BothendsError(f"{self.path}: exists and is not a distilled corpus")
        for path in sorted(self.shards.glob("*.jsonl")):
            read_header(path, job)
        try:
            self.shards.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BothendsError(f"{self.path}: cannot be made ({error.strerror})") from None

    def missing(self, job: Job) -> list[int]:
        """The shards that are not there yet."""
        return [
            number for number in range(job.shards) if not shard_path(self.shards, number).is_file()
        ]

    def manifest(self) -> Manifest | None:
        """The manifest if the corpus is complete, or None."""
        path = self.path / MANIFEST
        if not path.is_file():
            return None
        try:
            content = parse_versioned(read_bounded(path, LARGEST_JSON), path, FORMAT_VERSION)
            manifest = Manifest.model_validate(content)
        except ValueError:  # pydantic's errors are such, too
            raise BothendsError(
                f"{path}: not the manifest of a distilled corpus, or damaged; name another --output"
            ) from None
        for name, record in manifest.files.items():
            file = self.path / name
            if not file.is_file() or file.stat().st_size != record.bytes:
                return None
        return manifest

    def merge(
        self, job: Job, filters: PairFilters, teacher: Teacher, sources: Sequence[Path]
    ) -> Manifest:
        """Write text and manifest out of the shards, which must all be there and whole."""
        if missing := self.missing(job):
            raise BothendsError(
                f"{self.shards}: {len(missing)} of {job.shards} shards are missing "
                f"({_spans(missing)}); the same command without --merge makes them"
            )
        (self.path / MANIFEST).unlink(missing_ok=True)
        digests: dict[str, str] = {}
        with (
            atomic_file(self.path / SOURCE) as source,
            atomic_file(self.path / TARGET) as target,
            progress("merge", "lines", job.lines) as advance,
        ):
            text = _TextInTheMaking(source, target, filters)
            for number, lines in enumerate(read_shards(sources, job.shard_lines)):
                path = shard_path(self.shards, number)
                text.add(lines, read_shard(path, job, lines))
                digests[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
                advance(len(lines))
        counts, files = text.records()
        manifest = Manifest(
            job=job,
            filters=filters,
            counts=counts,
            files=files,
            shards=digests,
            provenance=provenance_of(teacher, sources),
        )
        content = json.dumps(manifest.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
        write_atomically(self.path / MANIFEST, content.encode())
        for leftover in self.shards.glob(".*.partial"):  # of processes that were killed
            leftover.unlink(missing_ok=True)
        return manifest


class _TextInTheMaking:
    """The two text files while pairs are filtered, counted and written."""

    def __init__(self, source: BinaryIO, target: BinaryIO, filters: PairFilters) -> None:
        self._filters = filters
        self._files = {SOURCE: RecordingWriter(source), TARGET: RecordingWriter(target)}
        self._read = self._kept = self._unfinished = self._truncated = 0
        self._dropped: Counter[Reason] = Counter()

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

    def records(self) -> tuple[Counts, dict[str, FileRecord]]:
        """What is in the files."""
        counts = Counts(
            read=self._read,
            kept=self._kept,
            dropped={reason: self._dropped[reason] for reason in self._filters.reasons},
            unfinished=self._unfinished,
            truncated=self._truncated,
        )
        return counts, {name: file.record() for name, file in self._files.items()}


def provenance_of(teacher: Teacher, sources: Sequence[Path]) -> dict[str, Any]:
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


def _spans(numbers: Sequence[int]) -> str:
    """Numbers as `0, 3-5 and 9 more`."""
    spans = [f"{first}-{last}" if first < last else f"{first}" for first, last in _runs(numbers)]
    more = len(spans) - 3
    return ", ".join(spans[:3]) + (f" and {more} more gaps" if more > 0 else "")


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield first, last
            first = number
        last = number
    yield first, last
