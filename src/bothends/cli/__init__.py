"""The command line: one file per command, and one place where errors become one line.

A command's module imports only what its options need; the work is imported inside the function, so
that `bothends --help` stays quick and no command loads PyTorch unless it trains.
"""

from __future__ import annotations

import errno
import io
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from typing import Annotated, Any

import typer

from bothends import __version__
from bothends.cli.analyse import analyse
from bothends.cli.average import average
from bothends.cli.bench import bench
from bothends.cli.chain import chain
from bothends.cli.convert import convert
from bothends.cli.demo import demo
from bothends.cli.distill import distill
from bothends.cli.evaluate import evaluate
from bothends.cli.export import export
from bothends.cli.fill import fill
from bothends.cli.order import order
from bothends.cli.plan import plan
from bothends.cli.prepare import prepare
from bothends.cli.score import score
from bothends.cli.serve import serve
from bothends.cli.several import SeveralValues
from bothends.cli.splice import splice
from bothends.cli.train import train
from bothends.cli.translate import summarize, translate
from bothends.cli.verify import verify
from bothends.errors import BothendsError
from bothends.translation import TranslationOptions

# The base of all errors about the command line itself: an unknown option, a bad value. Newer Typers
# carry a copy of click, older ones import it, so the class is asked for and not imported.
_CommandLineError: type[Any] = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)

#: Fields of options objects that commands have as options, with dashes.
_OPTIONS = {field.name for field in fields(TranslationOptions)} | {"threads", "device"}

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
app.command(cls=SeveralValues)(distill)
app.command(cls=SeveralValues)(evaluate)
app.command()(export)
app.command()(fill)
app.command()(order)
app.command()(plan)
app.command(cls=SeveralValues)(prepare)
app.command()(score)
app.command()(serve)
app.command(cls=SeveralValues)(splice)
app.command("summarize", help="Summarise text, line by line, with a model that does.")(summarize)
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
    _open_closed_outputs()
    _print_any_character()
    try:
        # Without a command, help: Typer's own way of giving it is an error with the help inside.
        status = app(args=arguments or ["--help"], prog_name="bothends", standalone_mode=False)
        sys.stdout.flush()
    except BothendsError as error:
        return _complain(spell_options(str(error), arguments), error.exit_status)
    except _CommandLineError as error:
        return _complain(error.format_message(), error.exit_code)
    except MemoryError as error:
        return _complain(f"not enough memory: {error}" if str(error) else "not enough memory", 1)
    except BrokenPipeError:
        # The reader has gone, as in `bothends translate | head`.
        _discard_output()
        return 0
    except OSError as error:
        if error.filename is None:
            _discard_output()
            if error.errno == errno.EBADF:
                return _complain("standard output is closed: nobody can read the result", 1)
        return _complain(f"{error.filename or 'output'}: {error.strerror or error}", 1)
    except SystemExit as leaving:
        # Typer does the same when it happens inside a command, and then exits with 1.
        if isinstance(leaving.__context__, BrokenPipeError):
            return 0
        raise
    except (KeyboardInterrupt, typer.Abort):
        return 130
    return status if isinstance(status, int) else 0


def _open_closed_outputs() -> None:
    """Where the process was started without an output (`>&-`), give it one.

    Python has None in its place then, and prints to stdout what was meant for stderr. Whatever is
    written to a closed stdout is lost, and an error; messages without a reader are not.
    """
    if sys.stdout is None:
        # Only for reading: writing fails, as it would have.
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def _print_any_character() -> None:
    """Escape what the terminal's encoding lacks, or a file name has that is no text at all."""
    for output in (sys.stdout, sys.stderr):
        if isinstance(output, io.TextIOWrapper):
            output.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Python complains once more when it closes a stdout that failed: let it close another."""
    with suppress(OSError):  # one that is no file needs none
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def spell_options(message: str, arguments: Sequence[str] = ()) -> str:
    """A message in the words of the command line: `--n-best` for `n_best`.

    Besides the options of a search, those are meant that were given in `arguments`.
    """
    given = {each[2:].partition("=")[0].replace("-", "_") for each in arguments if each[:2] == "--"}
    given = {name for name in given if name.isidentifier() and not os.path.exists(name)}
    names = "|".join(sorted(_OPTIONS | given, key=len, reverse=True))
    # Errors about options begin with one; in others, such a word may be a key of a recipe.
    if not re.match(
        rf"(?:{names}) (?:must|\d)|(?:{'|'.join(given) or '(?!)'}): (?:expected|Input)", message
    ):
        return message
    message = f"--{message}"
    return re.sub(
        rf"^--(?:{names})|(?<![\w./-])(?:\w+_\w+)(?![\w./-])",
        lambda match: f"--{match[0].removeprefix('--').replace('_', '-')}",
        message,
    )


def _complain(message: str, status: int) -> int:
    line = " ".join(message.split())
    # A file's own words may be in it, and among them what would rule a terminal.
    shown = "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in line)
    print(f"bothends: error: {shown}", file=sys.stderr)
    return status
