"""Errors that a user can act on.

Each carries one line: what was expected, what came, what to do. The command line prints that line
and exits with `exit_status`; any other exception is a bug.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable


class BothendsError(Exception):
    """Something in the user's data, files or settings is wrong.

    Attributes:
        exit_status: What the command line exits with.
    """

    exit_status = 1


class UsageError(BothendsError):
    """A command, an option or a value was spelled wrongly.

    Attributes:
        exit_status: What the command line exits with.
    """

    exit_status = 2


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint that names the known word closest to a misspelled one, or lists them all."""
    import difflib  # of no use to those who spell well

    known = sorted(known)
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"


def warn(message: str) -> None:
    """Print a warning on stderr."""
    print(f"bothends: warning: {message}", file=sys.stderr)
