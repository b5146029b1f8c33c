"""The command line: one file per command, and one place where errors become one line.

A command's module imports only what its options need; the work is imported inside the function, so
that `bothends --help` stays quick and no command loads PyTorch unless it trains.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from bothends import __version__
from bothends.cli.analyse import analyse
from bothends.cli.average import average
from bothends.cli.bench import bench
from bothends.cli.chain import chain
from bothends.cli.convert import convert
from bothends.cli.demo import demo
from bothends.cli.denoise import denoise
from bothends.cli.distill import distill
from bothends.cli.evaluate import evaluate
from bothends.cli.export import export
from bothends.cli.fill import fill
from bothends.cli.order import order
from bothends.cli.plan import plan
from bothends.cli.prepare import prepare
from bothends.cli.push import push
from bothends.cli.score import score
from bothends.cli.serve import serve
from bothends.cli.several import SeveralValues
from bothends.cli.shortlist import shortlist
from bothends.cli.splice import splice
from bothends.cli.train import train
from bothends.cli.translate import summarize, translate
from bothends.cli.verify import verify
from bothends.console import complain, run_command, spell_options

# The base of all errors about the command line itself: an unknown option, a bad value. Newer Typers
# carry a copy of click, older ones import it, so the class is asked for and not imported.
_CommandLineError: type[Any] = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)

__all__ = ["app", "run", "spell_options"]

app = typer.Typer(
    name="bothends",
    help="Fast sequence-to-sequence generation: write a sentence from both ends at once.",
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(analyse, name="analyse")
app.command()(average)
app.command(cls=SeveralValues)(bench)
app.command()(chain)
app.command()(convert)
app.command()(demo)
app.command(cls=SeveralValues)(denoise)
app.command(cls=SeveralValues)(distill)
app.command(cls=SeveralValues)(evaluate)
app.command()(export)
app.command()(fill)
app.command()(order)
app.command()(plan)
app.command(cls=SeveralValues)(prepare)
app.command()(push)
app.command()(score)
app.command()(serve)
app.command()(shortlist)
app.command(cls=SeveralValues)(splice)
app.command(
    "summarize",
    help="Summarise text, line by line, with a model of your own.\n\n"
    "--model is required: no bundled model summarises.",
)(summarize)
app.command()(train)
app.command()(translate)
app.command()(verify)


def _print_version(wanted: bool) -> None:
    if wanted:
        from bothends.engines.native import describe

        typer.echo(f"bothends {__version__}")
        typer.echo(describe())
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None: ...


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; `arguments` default to the process's own."""
    arguments = sys.argv[1:] if arguments is None else arguments
    return run_command(lambda: _call(arguments), arguments)


def _call(arguments: Sequence[str]) -> object:
    try:
        # Without a command, help: Typer's own way of giving it is an error with the help inside.
        return app(args=arguments or ["--help"], prog_name="bothends", standalone_mode=False)
    except _CommandLineError as error:
        # "Value error" is the parser's word for it, and says nothing to a user.
        return complain(error.format_message().replace("Value error, ", ""), error.exit_code)
    except typer.Abort:
        raise KeyboardInterrupt from None
