"""`bothends export`: from trained weights to the graphs of the runtime, and what int8 costs."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import typer

if TYPE_CHECKING:
    from bothends.evaluation.precision import Agreement
    from bothends.text.vocabulary import Vocabularies

#: Lines of a sample that are used, and sentences that are made up where there is none.
_LINES = 200
_RANDOM_SENTENCES = 32
_RANDOM_LENGTH = 16


class _Sample(NamedTuple):
    """Lines to translate in both precisions, empty ones left out."""

    path: Path
    lines: list[str]
    references: list[str] | None


def export(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Model directory.")],
    precision: Annotated[
        Literal["float32", "int8"], typer.Option(help="Of the weights and their products.")
    ] = "int8",
    output: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Directory to write; else DIR itself.")
    ] = None,
    sample: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Source lines to compare int8 with float32 on."),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Translations of the sample, to compare BLEU."),
    ] = None,
    check: Annotated[
        bool, typer.Option(help="Compare int8 with float32; random sentences if no sample.")
    ] = True,
) -> None:
    """Write the graphs that translate without PyTorch.

    They are encoder.onnx and decoder.onnx, in float32 or int8.
    """
    from bothends.errors import BothendsError, UsageError

    if reference is not None and sample is None:
        raise UsageError("--reference belongs to --sample, which is missing")
    if sample is not None and not (check and precision == "int8"):
        raise UsageError("--sample is for the check of int8, which is left out here")
    try:
        import onnx  # noqa: F401
        import safetensors  # noqa: F401
    except ImportError as error:
        raise BothendsError(
            f"export needs {error.name}, which is not installed: pip install 'bothends[train]'"
        ) from None
    from bothends.engines.export import export_model
    from bothends.model.directory import DECODER, ENCODER

    # Before anything is written: what cannot be read leaves no half of an export.
    read = None if sample is None else _read_sample(sample, reference)
    output = directory if output is None else output
    export_model(directory, precision, output)
    for file in (ENCODER, DECODER):
        typer.echo(f"{output / file}: {precision}, {(output / file).stat().st_size / 1e6:.1f} MB")
    if precision == "int8" and check:
        for line in _report(directory, output, read):
            typer.echo(line)


def _read_sample(path: Path, reference: Path | None) -> _Sample:
    from bothends.errors import BothendsError

    lines = _read_lines(path)
    kept = [line for line in lines if line.strip()]
    if not kept:
        raise BothendsError(f"{path}: no text in its first {_LINES} lines")
    if reference is None:
        return _Sample(path, kept, None)
    references = _read_lines(reference)
    if len(references) != len(lines):
        raise BothendsError(
            f"{reference}: {len(references)} lines, but {path} has {len(lines)}: expected pairs"
        )
    pairs = zip(lines, references, strict=True)
    return _Sample(path, kept, [text for line, text in pairs if line.strip()])


def _report(directory: Path, output: Path, sample: _Sample | None) -> list[str]:
    """What int8 changes, measured on a sample."""
    import numpy as np

    from bothends.engines.export import export_model
    from bothends.engines.onnx.engine import OnnxEngine
    from bothends.evaluation.bench.synthetic import random_sources
    from bothends.evaluation.precision import compare
    from bothends.model.directory import read_description
    from bothends.text.vocabulary import Vocabularies

    description = read_description(directory)
    config = description.model
    if sample is None:
        sources = random_sources(config, _RANDOM_SENTENCES, _RANDOM_LENGTH, seed=0)
        name = f"{len(sources)} random sentences (--sample FILE for real ones)"
    else:
        vocabularies = Vocabularies.load(directory, config.special)
        pieces = vocabularies.source.encode(sample.lines)
        sources = [np.array([*each, config.special.end]) for each in pieces]
        name = f"{len(sources)} lines of {sample.path}"
    with TemporaryDirectory() as scratch:
        export_model(directory, "float32", Path(scratch))
        engines = (OnnxEngine.load(output), OnnxEngine.load(Path(scratch)))
        agreement = compare(*engines, description.order, config.special, sources, beam=4)
    report = [
        f"int8 against float32 on {name}, beam 4: {agreement.identical:.1%} of outputs identical, "
        f"logprob per symbol {agreement.mean_difference:+.4f} "
        f"(mean distance {agreement.mean_distance:.4f})"
    ]
    if sample is not None and sample.references is not None:
        report.append(_bleu(agreement, vocabularies, sample.references))
    return report


def _bleu(agreement: Agreement, vocabularies: Vocabularies, references: list[str]) -> str:
    try:
        from sacrebleu.metrics import BLEU
    except ImportError:
        return "BLEU was not computed: pip install 'bothends[eval]'"
    metric = BLEU()
    scores = [
        metric.corpus_score(vocabularies.target.decode(outputs), [references]).score
        for outputs in (agreement.outputs, agreement.reference_outputs)
    ]
    return (
        f"BLEU {scores[0]:.2f} in int8, {scores[1]:.2f} in float32 ({scores[0] - scores[1]:+.2f}), "
        f"{metric.get_signature()}"
    )


def _read_lines(path: Path) -> list[str]:
    """The first lines of a file. Invalid UTF-8 is replaced: a comparison does not depend on it."""
    from itertools import islice

    from bothends.text.lines import LineReader

    # None says that input is slow; a report can wait for it.
    lines = (line for line in LineReader([path], "replace") if line is not None)
    return list(islice(lines, _LINES))
