"""`bothends prepare`: from aligned text files to token shards."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from bothends.data.shards import CorpusManifest

_DEFAULT_SIZE = 32000


#: What has no meaning with a vocabulary that is there already.
_OF_A_NEW_VOCABULARY = (
    "vocabulary_size",
    "separate_vocabularies",
    "character_coverage",
    "byte_fallback",
    "normalisation",
    "required_characters",
    "split_digits",
    "vocabulary_sample",
)


def prepare(
    context: typer.Context,
    source: Annotated[
        list[Path], typer.Option(metavar="FILE...", help="Source text, plain or .gz.")
    ],
    target: Annotated[
        list[Path], typer.Option(metavar="FILE...", help="Target text, aligned line by line.")
    ],
    output: Annotated[Path, typer.Option(metavar="DIR", help="The prepared corpus to write.")],
    valid_source: Annotated[
        list[Path] | None, typer.Option(metavar="FILE...", help="Source text for validation.")
    ] = None,
    valid_target: Annotated[
        list[Path] | None, typer.Option(metavar="FILE...", help="Target text for validation.")
    ] = None,
    vocabulary_size: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help=f"Number of entries. Default: {_DEFAULT_SIZE}, fewer for a small text.",
        ),
    ] = None,
    vocabulary: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Use this SentencePiece model, or those in this model or corpus directory.",
        ),
    ] = None,
    separate_vocabularies: Annotated[
        bool, typer.Option("--separate-vocabularies", help="Train one vocabulary per side.")
    ] = False,
    character_coverage: Annotated[
        float, typer.Option(help="Share of characters with an entry; the rest is spelled in bytes.")
    ] = 0.99999,
    byte_fallback: Annotated[
        bool, typer.Option(help="Spell unknown characters in bytes, not as unknown.")
    ] = True,
    normalisation: Annotated[
        str, typer.Option(metavar="RULE", help="nmt_nfkc, nfkc or identity (keep all characters).")
    ] = "nmt_nfkc",
    required_characters: Annotated[
        str,
        typer.Option(metavar="TEXT", help="Characters that get an entry even if they are rare."),
    ] = "",
    split_digits: Annotated[
        bool, typer.Option("--split-digits", help="Make every digit a token of its own.")
    ] = False,
    vocabulary_sample: Annotated[
        int, typer.Option(min=1, help="Maximum pairs to train the vocabulary on.")
    ] = 500_000,
    max_length: Annotated[
        int, typer.Option(help="Drop pairs with more tokens on a side; 0: no limit.")
    ] = 256,
    max_ratio: Annotated[
        float, typer.Option(help="Drop pairs with a larger length ratio; 0: no limit.")
    ] = 9.0,
    drop_duplicates: Annotated[
        bool, typer.Option("--drop-duplicates", help="Drop repeated pairs.")
    ] = False,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads to encode with; by default one per core.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an earlier corpus.")
    ] = False,
) -> None:
    """Check, filter and encode aligned text files for training."""
    from bothends.data.preparation import Preparation, TextFiles
    from bothends.data.preparation import prepare as prepare_corpus
    from bothends.errors import UsageError
    from bothends.model.bundled import find_if_named
    from bothends.text.pairs import Filters
    from bothends.text.vocabulary_training import VocabularyOptions

    given = [name for name in _OF_A_NEW_VOCABULARY if _is_given(context, name)]
    if vocabulary is not None and given:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise UsageError(f"--vocabulary names a trained one: leave out {options}")
    valid = None
    if valid_source or valid_target:
        valid = TextFiles(tuple(valid_source or ()), tuple(valid_target or ()))
    manifest = prepare_corpus(
        Preparation(
            train=TextFiles(tuple(source), tuple(target)),
            valid=valid,
            output=output,
            vocabulary=find_if_named(vocabulary)
            if vocabulary is not None
            else VocabularyOptions(
                size=_DEFAULT_SIZE if vocabulary_size is None else vocabulary_size,
                exact=vocabulary_size is not None,
                character_coverage=character_coverage,
                byte_fallback=byte_fallback,
                normalisation=normalisation,  # type: ignore[arg-type]  # checked there
                required_characters=required_characters,
                split_digits=split_digits,
            ),
            separate=separate_vocabularies,
            sample=vocabulary_sample,
            filters=Filters(max_length, max_ratio, drop_duplicates),
            threads=threads or os.cpu_count() or 1,
            overwrite=overwrite,
        )
    )
    _print_report(manifest, output)


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _print_report(manifest: CorpusManifest, output: Path) -> None:
    filters = manifest.provenance["filters"]
    reasons = {
        "empty": "with an empty side",
        "too_long": f"longer than {filters['max_length']} tokens",
        "ratio": f"with a length ratio over {filters['max_ratio']:g}",
        "duplicate": "seen before",
    }
    for name, report in manifest.reports.items():
        record = manifest.splits[name]
        dropped = [f"{count:,} {reasons[reason]}" for reason, count in report.dropped.items()]
        print(
            f"{name}: {report.read:,} pairs read, {report.kept:,} kept, "
            f"{record.source_tokens:,} source and {record.target_tokens:,} target tokens"
        )
        print(f"  dropped: {', '.join(dropped)}")
    vocabulary = manifest.vocabulary
    sizes = f"{vocabulary.source_size:,} entries, joint"
    if not vocabulary.joint:
        sizes = f"{vocabulary.source_size:,} source and {vocabulary.target_size:,} target entries"
    origin = "given"
    if vocabulary.training_lines is not None:
        origin = f"trained on {vocabulary.training_lines:,} lines"
        if vocabulary.source_size < manifest.provenance["vocabulary"]["size"]:
            origin += "; the text has no more"
    print(f"vocabulary: {sizes}, {origin}")
    print(f"written to {output}")
