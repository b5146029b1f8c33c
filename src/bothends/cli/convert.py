"""`bothends convert`: a model of another library as one of ours, or one of ours as theirs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer


def convert(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            help="A Hugging Face or CTranslate2 directory, hf:org/name, an .argosmodel package, or "
            "with --to a model of bothends.",
        ),
    ],
    output: Annotated[Path, typer.Option(metavar="DIR", help="The directory to write.")],
    to: Annotated[
        Literal["marian", "ctranslate2"] | None,
        typer.Option(help="Convert a 1x1 model of bothends to this format instead."),
    ] = None,
    source_language: Annotated[
        str | None,
        typer.Option(metavar="CODE", help="Source language, as the model spells it."),
    ] = None,
    target_language: Annotated[
        str | None,
        typer.Option(metavar="CODE", help="Target language, as the model spells it."),
    ] = None,
    source_sentencepiece: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="SentencePiece model of a CTranslate2 model's source."),
    ] = None,
    target_sentencepiece: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="SentencePiece model of its target."),
    ] = None,
    source_end: Annotated[
        bool | None,
        typer.Option(
            "--source-end/--no-source-end",
            help="Whether a CTranslate2 model's source ends with its end symbol.",
            show_default=False,
        ),
    ] = None,
    target_prefix: Annotated[
        str | None,
        typer.Option(metavar="TOKEN", help="Token that a CTranslate2 model's target begins with."),
    ] = None,
) -> None:
    """Convert models from other libraries, or to them."""
    from bothends.convert.options import ConvertOptions
    from bothends.errors import BothendsError
    from bothends.files import is_new

    if not is_new(output):
        raise BothendsError(f"{output}: exists and is not empty; name a new directory")
    if to is not None:
        from bothends.convert.export import export_foreign
        from bothends.model.bundled import find_trainable

        export_foreign(find_trainable(source), to, output)
        print(f"{output}: written for {to}", file=sys.stderr)
        return
    from bothends.convert.source import convert_model

    options = ConvertOptions(
        source_language=source_language,
        target_language=target_language,
        source_sentencepiece=source_sentencepiece,
        target_sentencepiece=target_sentencepiece,
        source_end=source_end,
        target_prefix=target_prefix,
    )
    model = convert_model(source, options)
    model.write(output)
    config = model.description.model
    print(
        f"{output}: {config.encoder_layers} and {config.decoder_layers} layers of width "
        f"{config.width}, {config.target_size:,} words; `bothends export {output}` makes it ready "
        "to translate",
        file=sys.stderr,
    )
