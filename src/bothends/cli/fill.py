"""`bothends fill`: write the part of a translation between a given beginning and a given end."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bothends.cli.options import DEFAULTS, EngineOption, JsonOption, ModelOption, PrecisionOption
from bothends.cli.outputs import check_writable

if TYPE_CHECKING:
    from bothends.filling import Filling


def fill(
    source: Annotated[str, typer.Option(metavar="TEXT", help="The text to translate.")],
    prefix: Annotated[
        str, typer.Option(metavar="TEXT", help="How the translation begins, kept as it is.")
    ] = "",
    suffix: Annotated[
        str, typer.Option(metavar="TEXT", help="How the translation ends, kept as it is.")
    ] = "",
    n_best: Annotated[int, typer.Option(min=1, help="Translations to print, best first.")] = 1,
    model: ModelOption = None,
    json_: JsonOption = False,
    words: Annotated[
        int | None, typer.Option(min=1, help="Exact number of words of the whole text.")
    ] = None,
    length: Annotated[int | None, typer.Option(min=1, help="Exact number of tokens.")] = None,
    min_words: Annotated[int, typer.Option(min=0, help="Minimum number of words.")] = 0,
    max_words: Annotated[int | None, typer.Option(min=1, help="Maximum number of words.")] = None,
    include: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="A word or phrase to use in the gap; may be repeated."),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="WORD", help="A word not to use in the gap; may be repeated."),
    ] = None,
    beam: Annotated[
        int, typer.Option(min=1, help="Beam size for each length of the gap.")
    ] = DEFAULTS.beam,
    svg: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw how the gap of the best translation is filled."),
    ] = None,
    precision: PrecisionOption = None,
    engine: EngineOption = None,
) -> None:
    """Write what lies between a given beginning and end.

    Without --suffix, it continues the beginning. Without both, it translates the whole text, for
    example with a given number of words.
    """
    from bothends.drawing import draw_gap_svg
    from bothends.files import write_output
    from bothends.filling import FillOptions
    from bothends.text.vocabulary import SPACE
    from bothends.translator import Translator

    options: dict[str, Any] = {
        "beam": beam,
        "words": words,
        "length": length,
        "min_words": min_words,
        "max_words": max_words,
        "include": tuple(include or ()),
        "exclude": tuple(exclude or ()),
    }
    check_writable({"--svg": svg})
    FillOptions(n_best=n_best, **options)  # complains before the model is loaded
    translator = Translator.load(
        model, precision=precision, threads=1, engine=engine, shortlist=False
    )
    fillings = translator.fill(source, prefix, suffix, n_best, **options)
    if svg is not None:
        best = fillings[0]
        pieces = [piece.replace(SPACE, " ").strip() or SPACE for piece in best.pieces]
        picture = draw_gap_svg(translator.description.order, pieces, best.gap)
        write_output(svg, picture.encode())
    for each in fillings:
        print(json.dumps(_record(each), ensure_ascii=False) if json_ else each.text)
    if words is not None and any(each.words != words for each in fillings):
        print(f"no translation of exactly {words} words was found", file=sys.stderr)


def _record(filling: Filling) -> dict[str, Any]:
    return {
        "text": filling.text,
        "prefix": filling.prefix,
        "middle": filling.middle,
        "suffix": filling.suffix,
        "score": filling.score,
        "logprob": filling.logprob,
        "words": filling.words,
        "tokens": list(filling.tokens),
        "pieces": list(filling.pieces),
        "gap": list(filling.gap),
        "steps": filling.steps,
    }
