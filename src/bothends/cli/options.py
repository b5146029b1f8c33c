"""Options that several commands share: one spelling, one help text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

ModelOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Model directory, or the name of a model in the box."),
]
ThreadsOption = Annotated[
    int | None, typer.Option(min=1, help="Batches at once; else one per core.")
]
PrecisionOption = Annotated[
    Literal["float32", "int8"] | None,
    typer.Option(help="Insist that the model was exported with it."),
]
EngineOption = Annotated[Literal["onnx", "torch"], typer.Option(help="What runs the network.")]
InvalidOption = Annotated[
    Literal["error", "replace"], typer.Option(help="What to do about invalid UTF-8.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON record per line.")]
JsonFileOption = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Where a line of JSON goes.")
]

CommandTimeoutOption = Annotated[
    float, typer.Option(help="Seconds without an answer after which a program counts as hung.")
]
CommandWindowOption = Annotated[
    int, typer.Option(min=1, help="Lines given to a program before it must answer all of them.")
]
CommandRestartOption = Annotated[
    bool,
    typer.Option("--command-restart", help="The program answers at the end of its input."),
]
