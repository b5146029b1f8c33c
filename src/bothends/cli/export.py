"""`bothends export`: from trained weights to the graphs of the runtime, and what int8 costs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def export(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Model directory, or hf:org/name.")
    ],
    precision: Annotated[
        Literal["float32", "int8"],
        typer.Option(help="Precision of the weights and their products."),
    ] = "int8",
    output: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Directory to write. Default: DIR itself.")
    ] = None,
    compress: Annotated[
        bool,
        typer.Option(help="Store the graphs a fifth smaller; loading them takes a little longer."),
    ] = False,
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
    """Export a model to graphs that need no PyTorch.

    They are encoder.onnx and decoder.onnx, in float32 or int8; compressed, their names end in .gz.
    """
    from bothends.errors import BothendsError, UsageError

    if compress and precision != "int8":
        raise UsageError("--compress is for int8: weights in float32 hardly shrink")
    if reference is not None and sample is None:
        raise UsageError("--reference belongs to --sample, which is missing")
    if sample is not None and not (check and precision == "int8"):
        raise UsageError("--sample is for the int8 check, which --no-check and float32 switch off")
    try:
        import onnx  # noqa: F401
        import safetensors  # noqa: F401
    except ImportError as error:
        raise BothendsError(
            f"export needs {error.name}, which is not installed: pip install 'bothends[train]'"
        ) from None
    from bothends.engines.export import export_model
    from bothends.evaluation.precision import Sample, add_lengths, report_int8
    from bothends.model.bundled import find_trainable, refuse_to_write
    from bothends.model.directory import CONFIG
    from bothends.model.graph_files import GRAPHS, stored_graph

    # Before anything is written: a sample that cannot be read leaves no half of an export.
    read = None if sample is None else Sample.read(sample, reference)
    if output is None:
        refuse_to_write(directory, "name a directory with --output DIR")
    directory = find_trainable(directory)
    output = directory if output is None else output
    export_model(directory, precision, output, compressed=compress)
    if read is not None and add_lengths(output, read):
        typer.echo(f"{output / CONFIG}: lengths of the {len(read.lines)} sample pairs added")
    for name in GRAPHS:
        file = stored_graph(output, name)
        typer.echo(f"{file}: {precision}, {file.stat().st_size / 1e6:.1f} MB")
    if precision == "int8" and check:
        for line in report_int8(directory, output, read):
            typer.echo(line)
