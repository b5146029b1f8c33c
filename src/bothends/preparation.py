"""From aligned text files to a prepared corpus: train a vocabulary, encode, filter, write.

The text is read twice, once for the vocabulary and once to encode it, in batches: memory does not
grow with the corpus, but for eight bytes a pair where duplicates are dropped. The same text and
options give the same files, byte for byte.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import chain, compress
from pathlib import Path
from typing import Any

from bothends import __version__
from bothends.corpus import FilterReport, Filters, Reason, SeenPairs, read_pairs
from bothends.encoding import CorpusEncoder
from bothends.errors import BothendsError, UsageError
from bothends.model.directory import SOURCE_VOCABULARY, TARGET_VOCABULARY, VOCABULARY
from bothends.progress import progress
from bothends.shards import (
    MANIFEST,
    TRAIN,
    VALID,
    FileRecord,
    Manifest,
    PairWriter,
    RecordedFile,
    SplitRecord,
    TokenType,
    VocabularyRecord,
    token_type,
    write_manifest,
)
from bothends.vocabulary import (
    Vocabularies,
    Vocabulary,
    VocabularyOptions,
    affordable,
    train_vocabulary,
)

#: Seed of the sample that the vocabulary is trained on: fixed, since no one sample is better.
_SEED = 2020


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
    """Everything that is asked of `prepare`."""

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


def prepare(options: Preparation) -> Manifest:
    """Write a prepared corpus to `options.output`, complete or not at all."""
    with _complete_or_nothing(options.output, options.overwrite) as directory:
        vocabularies, training_lines = _make_vocabularies(options, directory)
        files = {path.name: FileRecord.of(path) for path in sorted(directory.iterdir())}
        splits: dict[str, SplitRecord] = {}
        reports: dict[str, FilterReport] = {}
        for name, text in options.texts.items():
            # What is measured on validation pairs must not depend on a filter: all are kept.
            filters = options.filters if name == TRAIN else Filters(max_length=0, max_ratio=0)
            split = _SplitInTheMaking(directory, name, vocabularies, filters, options.threads)
            with progress(f"encode {name}", "pairs") as advance:
                for sources, targets in text.batches():
                    split.add(sources, targets)
                    advance(len(sources))
            splits[name], reports[name], split_files = split.finish()
            files |= split_files
        manifest = Manifest(
            vocabulary=VocabularyRecord(
                joint=vocabularies.joint,
                source_size=vocabularies.source.size,
                target_size=vocabularies.target.size,
                training_lines=training_lines,
            ),
            token_type=_token_type(vocabularies),
            splits=splits,
            files=files,
            reports=reports,
            provenance=_provenance(options),
        )
        write_manifest(directory, manifest)
    return manifest


def _make_vocabularies(options: Preparation, directory: Path) -> tuple[Vocabularies, int | None]:
    """The vocabularies, written into `directory`, and the lines they were trained on."""
    if isinstance(options.vocabulary, Path):
        if options.vocabulary.is_dir():
            given = Vocabularies.load(options.vocabulary)
        else:
            joint = Vocabulary.load(options.vocabulary)
            given = Vocabularies(joint, joint)
        given.save(directory)
        return given, None
    sources, targets = _sample(options.train, options.sample)
    if not options.separate:
        lines = affordable(list(chain.from_iterable(zip(sources, targets, strict=True))))
        joint = train_vocabulary(lines, directory / VOCABULARY, options.vocabulary)
        return Vocabularies(joint, joint), len(lines)
    sources, targets = affordable(sources), affordable(targets)
    separate = Vocabularies(
        train_vocabulary(sources, directory / SOURCE_VOCABULARY, options.vocabulary),
        train_vocabulary(targets, directory / TARGET_VOCABULARY, options.vocabulary),
    )
    return separate, len(sources) + len(targets)


def _sample(text: TextFiles, size: int) -> tuple[list[str], list[str]]:
    """`size` random pairs in random order, each pair of the text as likely as any other.

    A reservoir: pair number `n` replaces one of those kept with probability `size / n`.
    """
    chance = random.Random(_SEED)
    reservoir: list[tuple[str, str]] = []
    number = 0
    with progress("read", "pairs") as advance:
        for sources, targets in text.batches():
            for pair in zip(sources, targets, strict=True):
                number += 1
                if len(reservoir) < size:
                    reservoir.append(pair)
                elif (place := int(chance.random() * number)) < size:
                    reservoir[place] = pair
            advance(len(sources))
    chance.shuffle(reservoir)
    return [source for source, _ in reservoir], [target for _, target in reservoir]


class _SplitInTheMaking:
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
        if not record.pairs:
            counts = ", ".join(f"{count} {reason}" for reason, count in dropped.items() if count)
            why = counts.replace("_", " ") or "the files are empty"
            raise BothendsError(f"no {self._name} pair is left of {self._read} ({why})")
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


@contextmanager
def _complete_or_nothing(output: Path, overwrite: bool) -> Iterator[Path]:
    """A directory to write to, which gets the name `output` only if all goes well.

    It is `output` with `.partial` appended; what a killed run left there is removed by the next.
    """
    complete = (output / MANIFEST).is_file()
    if complete and not overwrite:
        raise BothendsError(f"{output}: holds a prepared corpus already; --overwrite replaces it")
    if output.exists() and not complete and not (output.is_dir() and not any(output.iterdir())):
        # Whatever it is, it is not ours to delete, not even with --overwrite.
        raise BothendsError(f"{output}: exists and is not a prepared corpus; choose another name")
    output = output.resolve()
    partial = output.with_name(f"{output.name}.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        yield partial
        if complete:
            replaced = output.with_name(f"{output.name}.replaced")
            shutil.rmtree(replaced, ignore_errors=True)
            os.rename(output, replaced)
            os.rename(partial, output)
            shutil.rmtree(replaced, ignore_errors=True)
        else:
            os.rename(partial, output)
    except OSError as error:
        raise BothendsError(f"{partial}: cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
