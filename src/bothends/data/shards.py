"""A prepared corpus on disk: token ids in flat files that are memory-mapped, never loaded.

    manifest.json                what is there, how it was made, a checksum of every file
    sentencepiece.model          the vocabulary (or sentencepiece.source.model and .target.model)
    train.tokens.000, .001 ...   token ids, pair after pair, the source and then the target
    train.offsets                where each pair begins, counted in tokens over all shards
    train.source_lengths         tokens of each source
    train.target_lengths         tokens of each target
    valid.*                      the same for the validation pairs, and their text:
    valid.source, valid.target   one line per pair, for metrics that compare text

Ids are in text order and without special tokens: one prepared corpus serves every generation
order. A source stands next to its target because they are always wanted together: a pair costs one
page of disk instead of two. All numbers are little-endian; tokens take two bytes where the
vocabulary allows.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from bothends.errors import BothendsError
from bothends.files import write_atomically
from bothends.storage.digests import FileRecord, RecordingWriter, record_of
from bothends.storage.records import parse_versioned, read_bounded
from bothends.storage.schemas import Strict, first_problem
from bothends.text.pairs import FilterReport
from bothends.text.vocabulary import Vocabularies

FORMAT_VERSION = 1
MANIFEST = "manifest.json"
TRAIN, VALID = "train", "valid"

TokenType = Literal["uint16", "uint32"]
Tokens = NDArray[np.uint16] | NDArray[np.uint32]
Lengths = NDArray[np.int32]

_OFFSET, _LENGTH = np.dtype("<i8"), np.dtype("<i4")

#: A shard is closed at this many tokens (half a gigabyte at two bytes each).
SHARD_TOKENS = 1 << 28


class SplitRecord(Strict):
    """The extent of one split."""

    pairs: int
    source_tokens: int
    target_tokens: int
    #: tokens in each shard
    shards: tuple[int, ...]


class VocabularyRecord(Strict):
    """The vocabularies, and the number of lines they were trained on if they were not given."""

    joint: bool
    source_size: int
    target_size: int
    training_lines: int | None


class CorpusManifest(Strict):
    """The content of a prepared corpus's `manifest.json`."""

    format_version: int = FORMAT_VERSION
    vocabulary: VocabularyRecord
    token_type: TokenType
    splits: dict[str, SplitRecord]
    files: dict[str, FileRecord]
    #: what the filters dropped from each split
    reports: dict[str, FilterReport]
    #: how the corpus was made: text files, filters, how the vocabulary was trained
    provenance: dict[str, Any]


class TokenPairs:
    """The pairs of one split, by number. Reads only the pairs that are used."""

    def __init__(self, directory: Path, name: str, record: SplitRecord, tokens: TokenType) -> None:
        self.name = name
        self.record = record
        self.source_lengths: Lengths = _map(directory / f"{name}.source_lengths", _LENGTH)
        self.target_lengths: Lengths = _map(directory / f"{name}.target_lengths", _LENGTH)
        self._offsets = _map(directory / f"{name}.offsets", _OFFSET)
        self._shards: list[Tokens] = [
            _map(directory / _shard_name(name, number), np.dtype(tokens).newbyteorder("<"))
            for number in range(len(record.shards))
        ]
        self._shard_starts = list(accumulate(record.shards, initial=0))[:-1]
        lengths = [len(self.source_lengths), len(self.target_lengths), len(self._offsets)]
        homeless = record.pairs > 0 and not record.shards
        if (
            lengths != 3 * [record.pairs]
            or [*map(len, self._shards)] != [*record.shards]
            or homeless
        ):
            raise BothendsError(
                f"{directory / MANIFEST}: damaged, its record of split {name} does not fit the "
                "files; prepare again"
            )

    def __len__(self) -> int:
        return self.record.pairs

    def __getitem__(self, index: int) -> tuple[Tokens, Tokens]:
        """Source and target ids of a pair: read-only views, in text order, no special tokens."""
        offset = int(self._offsets[index])
        shard = bisect_right(self._shard_starts, offset) - 1
        start = offset - self._shard_starts[shard]
        middle = start + int(self.source_lengths[index])
        end = middle + int(self.target_lengths[index])
        tokens = self._shards[shard]
        return tokens[start:middle], tokens[middle:end]

    def __iter__(self) -> Iterator[tuple[Tokens, Tokens]]:
        return (self[index] for index in range(len(self)))


class PreparedCorpus:
    """A prepared directory, opened for reading. Costs a few pages of memory, whatever its size."""

    def __init__(self, directory: Path, manifest: CorpusManifest) -> None:
        self.directory = directory
        self.manifest = manifest
        self.splits = tuple(manifest.splits)

    @classmethod
    def open(cls, directory: Path) -> PreparedCorpus:
        """Open `directory` after checking its manifest and that its files have their sizes."""
        directory = Path(directory)
        manifest = read_manifest(directory)
        for name, record in manifest.files.items():
            path = directory / name
            if not path.is_file():
                raise BothendsError(f"{path}: missing, though {MANIFEST} lists it; prepare again")
            if path.stat().st_size != record.bytes:
                raise BothendsError(
                    f"{path}: damaged, {path.stat().st_size} bytes where {MANIFEST} says "
                    f"{record.bytes}; prepare again"
                )
        return cls(directory, manifest)

    def vocabularies(self) -> Vocabularies:
        """The vocabularies; an error if the text was encoded with others."""
        vocabularies = Vocabularies.load(self.directory)
        for vocabulary in (vocabularies.source, vocabularies.target):
            for path, content in vocabulary.contents().items():
                if self.manifest.files.get(path.name) != record_of(content):
                    raise _changed(path)
        return vocabularies

    def split(self, name: str) -> TokenPairs:
        """The pairs of split `name`, `train` or `valid`."""
        if name not in self.manifest.splits:
            raise BothendsError(
                f"{self.directory}: no split {name!r}, only {', '.join(self.splits)}; "
                "validation pairs come from `bothends prepare --valid-source ... --valid-target`"
            )
        return TokenPairs(
            self.directory, name, self.manifest.splits[name], self.manifest.token_type
        )

    def valid_text(self) -> tuple[list[str], list[str]]:
        """Source and target lines of the validation pairs, in the order of `split("valid")`."""
        self.split(VALID)
        source, target = (
            self._text(self.directory / f"{VALID}.{side}") for side in ("source", "target")
        )
        return source, target

    def _text(self, path: Path) -> list[str]:
        """The lines of a file, which is small enough to be compared with its digest each time."""
        content = path.read_bytes()
        if self.manifest.files.get(path.name) != record_of(content):
            raise _changed(path)
        return content.decode().split("\n")[:-1]


class PairWriter:
    """Writes one split, batch by batch."""

    def __init__(
        self, directory: Path, name: str, token_type: TokenType, shard_tokens: int = SHARD_TOKENS
    ) -> None:
        self._directory = directory
        self._name = name
        self._dtype = np.dtype(token_type).newbyteorder("<")
        self._shard_tokens = shard_tokens
        self._pairs = self._source_tokens = self._target_tokens = 0
        self._offsets = RecordedFile(directory / f"{name}.offsets")
        self._source_lengths = RecordedFile(directory / f"{name}.source_lengths")
        self._target_lengths = RecordedFile(directory / f"{name}.target_lengths")
        self._shards = [RecordedFile(directory / _shard_name(name, 0))]

    def write(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> None:
        """Append pairs; those of one call stay in one shard."""
        shard = self._shards[-1]
        if shard.size >= self._shard_tokens * self._dtype.itemsize:
            shard.close()
            shard = RecordedFile(self._directory / _shard_name(self._name, len(self._shards)))
            self._shards.append(shard)
        source_lengths = np.array([len(tokens) for tokens in sources], dtype=_LENGTH)
        target_lengths = np.array([len(tokens) for tokens in targets], dtype=_LENGTH)
        ends = np.cumsum(source_lengths + target_lengths, dtype=_OFFSET)
        before = self._source_tokens + self._target_tokens
        self._offsets.write((before + ends - source_lengths - target_lengths).tobytes())
        self._source_lengths.write(source_lengths.tobytes())
        self._target_lengths.write(target_lengths.tobytes())
        ids = chain.from_iterable(chain.from_iterable(zip(sources, targets, strict=True)))
        shard.write(np.fromiter(ids, dtype=self._dtype).tobytes())
        self._pairs += len(sources)
        self._source_tokens += int(source_lengths.sum())
        self._target_tokens += int(target_lengths.sum())

    def close(self) -> tuple[SplitRecord, dict[str, FileRecord]]:
        """Finish the files; the records that the manifest needs."""
        files = [self._offsets, self._source_lengths, self._target_lengths, *self._shards]
        record = SplitRecord(
            pairs=self._pairs,
            source_tokens=self._source_tokens,
            target_tokens=self._target_tokens,
            shards=tuple(shard.size // self._dtype.itemsize for shard in self._shards),
        )
        return record, dict(file.close() for file in files)


class RecordedFile:
    """A file of a directory in the making, whose size and checksum are taken while it is written.

    Nobody sees the directory before it is complete, so the file has its name from the beginning.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = open(path, "xb")  # noqa: SIM115
        self._writer = RecordingWriter(self._file)

    @property
    def size(self) -> int:
        return self._writer.size

    def write(self, content: bytes) -> None:
        self._writer.write(content)

    def close(self) -> tuple[str, FileRecord]:
        """Close it; its name and record. Closing twice is harmless."""
        self._file.close()
        return self._path.name, self._writer.record()


def token_type(vocabulary_size: int) -> TokenType:
    """The smallest type that holds every id."""
    return "uint16" if vocabulary_size <= 1 << 16 else "uint32"


def write_manifest(directory: Path, manifest: CorpusManifest) -> None:
    """Write `manifest.json`, the last file of a prepared corpus: with it, it is complete."""
    text = json.dumps(manifest.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
    write_atomically(directory / MANIFEST, text.encode())


def read_manifest(directory: Path) -> CorpusManifest:
    """The manifest of a prepared corpus, read and checked."""
    path = directory / MANIFEST
    if not directory.is_dir():
        raise BothendsError(f"{directory}: no such prepared corpus; make it with bothends prepare")
    if not path.is_file():
        raise BothendsError(f"{directory}: not a prepared corpus, {MANIFEST} is missing")
    try:
        content = parse_versioned(read_bounded(path), path, FORMAT_VERSION)
    except ValueError as error:
        raise BothendsError(f"{path}: damaged, not a corpus's manifest ({error})") from None
    try:
        return CorpusManifest.model_validate(content)
    except ValidationError as error:
        raise BothendsError(f"{path}: damaged, {first_problem(error)}") from None


def _changed(path: Path) -> BothendsError:
    return BothendsError(
        f"{path}: damaged or exchanged, it is not the file that {MANIFEST} describes; prepare again"
    )


def _shard_name(split: str, number: int) -> str:
    return f"{split}.tokens.{number:03}"


def _map(path: Path, dtype: np.dtype[Any]) -> NDArray[Any]:
    """A file as a read-only array. An empty one cannot be mapped, and need not be."""
    if not path.stat().st_size:
        return np.empty(0, dtype)
    if path.stat().st_size % dtype.itemsize:
        raise BothendsError(f"{path}: damaged, ends within a number; prepare again")
    # A plain view: slices of a memmap object are ten times slower to make.
    return np.memmap(path, dtype, mode="r").view(np.ndarray)
