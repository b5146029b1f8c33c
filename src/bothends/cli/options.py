"""Options that several commands share: one spelling, one help text, one default."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from bothends.translating.translation import TranslationOptions

#: The defaults of all commands that translate. Importing them loads nothing heavy.
DEFAULTS = TranslationOptions()

ModelOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Model directory, bundled model, or hf:org/name[@revision]. Default: en-pt-1x1, which "
        "translates English to Portuguese.",
    ),
]
BeamOption = Annotated[int, typer.Option(min=1, help="Beam size; 1 is greedy search.")]
LengthPenaltyOption = Annotated[
    float, typer.Option(min=0, help="Exponent of the length normalisation; 0 prefers short output.")
]
DeduplicateOption = Annotated[
    bool | None,
    typer.Option(
        "--deduplicate/--no-deduplicate",
        help="Drop words and phrases that repeat immediately. Default: only where strands meet.",
    ),
]
MaxSourceLengthOption = Annotated[
    int, typer.Option(min=1, help="Longest line, in tokens; the rest is cut off.")
]
ThreadsOption = Annotated[
    int | None, typer.Option(min=1, help="Batches computed at once. Default: one per core.")
]
PrecisionOption = Annotated[
    Literal["float32", "int8"] | None,
    typer.Option(help="Fail if the model was exported with another precision."),
]
EngineOption = Annotated[
    Literal["native", "onnx", "torch"] | None,
    typer.Option(help="What runs the network. Default: native for int8 if it is built, else onnx."),
]
DeviceOption = Annotated[
    str | None, typer.Option(help="Device of the torch engine, e.g. cuda. Default: the CPU.")
]
ShortlistOption = Annotated[
    bool, typer.Option("--shortlist/--no-shortlist", help="Use the model's shortlist, if any.")
]
InvalidOption = Annotated[
    Literal["error", "replace"], typer.Option(help="What to do about invalid UTF-8.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON record per line.")]
JsonFileOption = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Write a line of JSON; - is stdout."),
]

CommandOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CMD...", help="Programs that translate --source: a line out for each line in."
    ),
]
CommandTimeoutOption = Annotated[
    float, typer.Option(help="Seconds to wait for a program's answer.")
]
CommandWindowOption = Annotated[
    int, typer.Option(min=1, help="Lines sent to a program before waiting for its answers.")
]
CommandRestartOption = Annotated[
    bool,
    typer.Option(
        "--command-restart",
        help="The program answers only at the end of its input: start it anew each time.",
    ),
]
