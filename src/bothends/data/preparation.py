"""From aligned text files to a prepared corpus: train a vocabulary, encode, filter, write.

The text is read twice, once for the vocabulary and once to encode it, in batches: memory does not
grow with the corpus, but for eight bytes a pair where duplicates are dropped. The same text and
options give the same files, byte for byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import chain, compress
from pathlib import Path
from typing import Any

from bothends import __version__
from bothends.data.sampling import PairSample, within_memory
from bothends.data.shards import (
    MANIFEST,
    TRAIN,
    VALID,
    CorpusManifest,
    PairWriter,
    RecordedFile,
    SplitRecord,
    TokenType,
    VocabularyRecord,
    read_manifest,
    token_type,
    write_manifest,
)
from bothends.errors import BothendsError, UsageError
from bothends.files import is_new, new_directory
from bothends.progress import progress
from bothends.storage.digests import FileRecord
from bothends.text.encoding import CorpusEncoder
from bothends.text.pairs import FilterReport, Filters, Reason, SeenPairs, read_pairs
from bothends.text.vocabulary import (
    SOURCE_VOCABULARY,
    TARGET_VOCABULARY,
    VOCABULARY,
    Vocabularies,
    Vocabulary,
)
from bothends.text.vocabulary_training import VocabularyOptions, train_vocabulary


@dataclass(frozen=True)
class TextFiles:
    """The text of a split: source files and target files, aligned one by one."""

    sources: tuple[Path, ...]
    targets: tuple[Path, ...]

    def __post_init__(self) -> None:
        if len(self.sources) != len(self.targets) or not self.sources:
            raise UsageError(
                f"{len(self.sources)} source and {len(self.targets)} target files: expected one "
                "target file for each source file, in the same order"
            )
        for path in (*self.sources, *self.targets):
            if not path.exists():
                raise BothendsError(f"{path}: no such file")
            if not path.is_file():
                raise BothendsError(f"{path}: not a regular file, and text is read twice")

    def batches(self) -> Iterator[tuple[list[str], list[str]]]:
        for source, target in zip(self.sources, self.targets, strict=True):
            yield from read_pairs(source, target)


@dataclass(frozen=True)
class Preparation:
    """The settings of `prepare`."""

    train: TextFiles
    valid: TextFiles | None
    output: Path
    #: how to train a vocabulary, or where one is: a model file, or a directory with one or two
    vocabulary: VocabularyOptions | Path = field(default_factory=VocabularyOptions)
    #: train one vocabulary per side
    separate: bool = False
    #: pairs that a vocabulary is trained on at most
    sample: int = 500_000
    filters: Filters = field(default_factory=Filters)
    threads: int = 1
    #: replace a prepared corpus
    overwrite: bool = False

    @property
    def texts(self) -> dict[str, TextFiles]:
        """The text of each split."""
        return {TRAIN: self.train} | ({VALID: self.valid} if self.valid else {})


def prepare(options: Preparation) -> CorpusManifest:
    """Write a prepared corpus to `options.output`, complete or not at all."""
    _check_output(options.output, options.overwrite)
    with new_directory(options.output, options.overwrite) as directory:
        pairs, training_lines = None, None
        if isinstance(options.vocabulary, Path):
            vocabularies = _given_vocabularies(options.vocabulary)
            vocabularies.save(directory)
        else:
            sample = _sample(options.train, options.sample)
            vocabularies, training_lines = _train_vocabularies(
                sample, directory, options.vocabulary, options.separate
            )
            pairs = sample.seen
            del sample  # a hundred million characters
        files = {path.name: FileRecord.of(path) for path in sorted(directory.iterdir())}
        splits: dict[str, SplitRecord] = {}
        reports: dict[str, FilterReport] = {}
        # Validation first: it is small, and a mistake in it should not show after an hour.
        for name, total in ((VALID, None), (TRAIN, pairs)):
            if name not in options.texts:
                continue
            # What is measured on validation pairs must not depend on a filter: all are kept.
            filters = options.filters if name == TRAIN else Filters(max_length=0, max_ratio=0)
            split = _SplitWriter(directory, name, vocabularies, filters, options.threads)
            with progress(f"encode {name}", "pairs", total) as advance:
                for sources, targets in options.texts[name].batches():
                    split.add(sources, targets)
                    advance(len(sources))
            splits[name], reports[name], split_files = split.finish()
            files |= split_files
        manifest = CorpusManifest(
            vocabulary=VocabularyRecord(
                joint=vocabularies.joint,
                source_size=vocabularies.source.size,
                target_size=vocabularies.target.size,
                training_lines=training_lines,
            ),
            token_type=_token_type(vocabularies),
            splits=dict(sorted(splits.items())),
            files=files,
            reports=dict(sorted(reports.items())),
            provenance=_provenance(options),
        )
        write_manifest(directory, manifest)
    return manifest


def _given_vocabularies(path: Path) -> Vocabularies:
    if path.is_dir():
        return Vocabularies.load(path)
    joint = Vocabulary.load(path)
    return Vocabularies(joint, joint)


def _sample(text: TextFiles, size: int) -> PairSample:
    sample = PairSample(size)
    with progress("read", "pairs") as advance:
        for sources, targets in text.batches():
            sample.add(sources, targets)
            advance(len(sources))
    return sample


def _train_vocabularies(
    sample: PairSample, directory: Path, options: VocabularyOptions, separate: bool
) -> tuple[Vocabularies, int]:
    """The vocabularies, written into `directory`, and the number of lines they were trained on."""
    sources, targets = sample.sides()
    if separate:
        sources, targets = within_memory(sources), within_memory(targets)
        vocabularies = Vocabularies(
            train_vocabulary(sources, directory / SOURCE_VOCABULARY, options),
            train_vocabulary(targets, directory / TARGET_VOCABULARY, options),
        )
        return vocabularies, len(sources) + len(targets)
    # One by one, so that both sides have their share of the memory.
    lines = within_memory(list(chain.from_iterable(zip(sources, targets, strict=True))))
    joint = train_vocabulary(lines, directory / VOCABULARY, options)
    return Vocabularies(joint, joint), len(lines)


class _SplitWriter:
    """One split while it is encoded, filtered, counted and written."""

    def __init__(
        self,
        directory: Path,
        name: str,
        vocabularies: Vocabularies,
        filters: Filters,
        threads: int,
    ) -> None:
        self._name = name
        self._source = self._target = CorpusEncoder(vocabularies.source, threads)
        if not vocabularies.joint:
            self._target = CorpusEncoder(vocabularies.target, threads)
        self._filters = filters
        self._seen = SeenPairs()
        self._read = 0
        self._dropped: Counter[Reason] = Counter()
        self._writer = PairWriter(directory, name, _token_type(vocabularies))
        text_sides = ("source", "target") if name == VALID else ()
        self._text = [RecordedFile(directory / f"{name}.{side}") for side in text_sides]

    def add(self, sources: list[str], targets: list[str]) -> None:
        """Add a batch of lines."""
        self._read += len(sources)
        source_ids = self._source.encode(sources)
        target_ids = self._target.encode(targets)
        lengths = zip(map(len, source_ids), map(len, target_ids), strict=True)
        reasons = [self._filters.refuse(*pair) for pair in lengths]
        if self._filters.drop_duplicates:
            candidates = [index for index, reason in enumerate(reasons) if reason is None]
            first = self._seen.first_time(
                [sources[index] for index in candidates], [targets[index] for index in candidates]
            )
            for index, is_first in zip(candidates, first, strict=True):
                reasons[index] = None if is_first else "duplicate"
        keep = [reason is None for reason in reasons]
        self._dropped.update(reason for reason in reasons if reason is not None)
        self._writer.write(list(compress(source_ids, keep)), list(compress(target_ids, keep)))
        for file, lines in zip(self._text, (sources, targets), strict=False):
            file.write("".join(f"{line}\n" for line in compress(lines, keep)).encode())

    def finish(self) -> tuple[SplitRecord, FilterReport, dict[str, FileRecord]]:
        """Close the files; what they hold, what was dropped, and their records."""
        record, files = self._writer.close()
        files |= dict(file.close() for file in self._text)
        dropped = {reason: self._dropped[reason] for reason in self._filters.reasons}
        if not self._read:
            raise BothendsError(f"no {self._name} pairs: the files are empty")
        if not record.pairs:
            counts = ", ".join(f"{count} {reason}" for reason, count in dropped.items() if count)
            why = counts.replace("_", " ")
            raise BothendsError(f"all {self._read} {self._name} pairs were dropped ({why})")
        return record, FilterReport(read=self._read, kept=record.pairs, dropped=dropped), files


def _token_type(vocabularies: Vocabularies) -> TokenType:
    return token_type(max(vocabularies.source.size, vocabularies.target.size))


def _provenance(options: Preparation) -> dict[str, Any]:
    vocabulary = options.vocabulary
    return {
        "bothends": __version__,
        "texts": {
            name: {
                "sources": [str(path) for path in text.sources],
                "targets": [str(path) for path in text.targets],
            }
            for name, text in options.texts.items()
        },
        "filters": asdict(options.filters),
        "vocabulary": {"given": str(vocabulary)}
        if isinstance(vocabulary, Path)
        else {**asdict(vocabulary), "separate": options.separate, "sample": options.sample},
    }


def _check_output(output: Path, overwrite: bool) -> None:
    """Refuse an output that has something in it, unless it is a corpus that is to be replaced."""
    if is_new(output):
        return
    _check_ours(output)
    if not overwrite:
        raise BothendsError(f"{output}: holds a prepared corpus already; --overwrite replaces it")


def _check_ours(output: Path) -> None:
    """Refuse to replace anything that `prepare` did not write, even with --overwrite."""
    try:
        manifest = read_manifest(output)
    except BothendsError:
        raise BothendsError(
            f"{output}: exists and is not a prepared corpus; choose another name"
        ) from None
    others = {path.name for path in output.iterdir()} - {MANIFEST, *manifest.files}
    if others:
        raise BothendsError(
            f"{output}: a prepared corpus, but {min(others)} does not belong to it; choose another "
            "name"
        )
