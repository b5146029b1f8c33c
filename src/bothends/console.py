"""How a command ends: an error is one line, and a reader who has gone is no error.

Apart from the commands, so that what needs none of them can end in the same way.
"""

from __future__ import annotations

import errno
import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields

from bothends.errors import BothendsError
from bothends.translating.translation import TranslationOptions

#: Fields of options objects that commands have as options, with dashes.
_OPTIONS = {field.name for field in fields(TranslationOptions)} | {"threads", "device"}


def run_command(call: Callable[[], object], arguments: Sequence[str] = ()) -> int:
    """Call a command, which may return a status, and return its exit status.

    Messages name the options as they were given in `arguments`.
    """
    _open_closed_outputs()
    _print_any_character()
    try:
        status = call()
        sys.stdout.flush()
    except BothendsError as error:
        return complain(spell_options(str(error), arguments), error.exit_status)
    except MemoryError as error:
        return complain(f"not enough memory: {error}" if str(error) else "not enough memory", 1)
    except BrokenPipeError:
        # The reader has gone, as in `bothends translate | head`.
        _discard_output()
        return 0
    except OSError as error:
        if error.filename is None:
            _discard_output()
            if error.errno == errno.EBADF:
                return complain("standard output is closed: nobody can read the result", 1)
        return complain(f"{error.filename or 'output'}: {error.strerror or error}", 1)
    except SystemExit as leaving:
        # Typer does the same when it happens inside a command, and then exits with 1.
        if isinstance(leaving.__context__, BrokenPipeError):
            return 0
        raise
    except KeyboardInterrupt:
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
    """Escape what the terminal's encoding lacks, and bytes of file names that are not text."""
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


def complain(message: str, status: int) -> int:
    """One line on stderr; the status comes back."""
    line = " ".join(message.split())
    # A file's own words may be in it, and among them what would rule a terminal.
    shown = "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in line)
    print(f"bothends: error: {shown}", file=sys.stderr)
    return status
