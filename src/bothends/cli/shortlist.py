"""`bothends shortlist`: which target words a source word may become, for a faster output layer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from bothends.cli.options import DEFAULTS, BeamOption, InvalidOption, JsonFileOption
from bothends.cli.outputs import check_writable, write_json


def shortlist(
    model: Annotated[Path, typer.Option(metavar="DIR", help="Model directory.")],
    source: Annotated[Path, typer.Option(metavar="FILE", help="Source text, line by line.")],
    target: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="Its translation; best the text the model was trained on."
        ),
    ],
    best: Annotated[int, typer.Option(min=1, help="Target words kept per source word.")] = 100,
    frequent: Annotated[
        int, typer.Option(min=0, help="Frequent target words that every sentence may use.")
    ] = 1000,
    least: Annotated[
        float, typer.Option(help="Least probability of a target word, given the source word.")
    ] = 1e-5,
    iterations: Annotated[int, typer.Option(min=1, help="Iterations of the word alignment.")] = 5,
    pairs: Annotated[
        int, typer.Option(min=1, help="Pairs to learn from, spread evenly over the text.")
    ] = 200_000,
    held_out: Annotated[
        int, typer.Option(min=1, help="Pairs held out to measure coverage on.")
    ] = 500,
    beam: BeamOption = DEFAULTS.beam,
    invalid: InvalidOption = "error",
    json_: JsonFileOption = None,
) -> None:
    """Learn which target words a sentence may use.

    The shortlist is stored with the model and makes its search faster. Prints its coverage: the
    share of held-out translations, and of the model's own, that it allows.
    """
    from bothends.model.bundled import refuse_to_change
    from bothends.shortlisting.learn import ShortlistOptions
    from bothends.shortlisting.report import make_shortlist

    options = ShortlistOptions(best, frequent, least, iterations, pairs)
    refuse_to_change(model, "copy its directory, and name the copy")
    check_writable({"--json": json_}, (source, target))

    def tell(message: str) -> None:
        print(f"shortlist: {message}", file=sys.stderr, flush=True)

    report = make_shortlist(model, source, target, options, held_out, beam, invalid, tell)
    for line in report.lines():
        print(line)  # which waits: nobody need read it for the file to be written
    write_json(json_, report.as_json())
