"""Any program that reads lines and writes one line for each, in windows that are checked.

The program is started once and fed windows of lines. Each window ends with a guard: a line whose
answer is known from the start. If another answer comes in its place, the program has written a line
too many or too few somewhere, and the window is not believed. A window that fails is tried again
with a fresh process.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Sequence

from bothends.errors import BothendsError
from bothends.jobs.filter_process import FilterProcess, ProgramError, ProgramOptions, shorten

#: The line that closes a window. Most systems copy numbers, and hardly a text has these.
GUARD = "17 3 20 11 8"
#: Times that a window is tried before it is an error.
ATTEMPTS = 3
#: Seconds to wait for the first answer before a warning says what may be wrong.
_PATIENCE = 20.0
#: Where programs may end a line, besides at a newline.
_LINE_BREAKS = re.compile("[\r\v\f\x1c-\x1e\x85\u2028\u2029]")


class LineProgram:
    """Translates lines by a program; starts it when it is needed, and again when it fails."""

    def __init__(
        self, options: ProgramOptions, report: Callable[[str], None] | None = None
    ) -> None:
        self._options = options
        self._report = report or _print
        self._running: FilterProcess | None = None
        #: the answer to the guard, once it is known
        self._guard: str | None = None

    def __enter__(self) -> LineProgram:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._running is not None and kind is None:
            self._running.finish()
            self._running = None
        self._abandon()

    def _abandon(self) -> None:
        if self._running is not None:
            self._running.close()
            self._running = None

    def translate(self, lines: Sequence[str]) -> list[str]:
        """An answer for each line. A blank line is not sent: its answer is an empty line."""
        sent = [_LINE_BREAKS.sub(" ", line) for line in lines if line.strip()]
        size = (len(sent) or 1) if self._options.restart else self._options.window
        windows = (sent[first : first + size] for first in range(0, len(sent), size))
        answers = iter([answer for window in windows for answer in self._try(window)])
        return [next(answers) if line.strip() else "" for line in lines]

    def exchange(self, lines: Sequence[str]) -> list[str]:
        """The same without guard and second attempts, to be timed; `check` from time to time."""
        return self._start().answer(lines)

    def check(self) -> None:
        """Complain if the program has written a line too many by now."""
        self._answer([])

    def _try(self, lines: Sequence[str]) -> list[str]:
        """The answers to a window, if need be at the second or third attempt."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._answer(lines)
            except ProgramError as error:
                self._abandon()
                if isinstance(error, _StartError) and attempt == ATTEMPTS:
                    raise
                if attempt < ATTEMPTS:
                    self._report(f"{error}; attempt {attempt + 1} of {ATTEMPTS}")
                    continue
                raise ProgramError(f"{error}; {self._blame(lines, error)}") from None
        raise AssertionError("unreachable")

    def _blame(self, lines: Sequence[str], error: ProgramError) -> str:
        """A line that the program fails at: found by halving, or the first line without an answer
        if the program is silent, because halving would take long."""
        if error.answered is not None:
            unanswered = [*lines, GUARD][error.answered]
            return f"the first line without an answer: {shorten(unanswered)}"
        suspects = list(lines)
        while len(suspects) > 1:
            half = suspects[: len(suspects) // 2]
            suspects = half if self._fails(half) else suspects[len(half) :]
        if self._fails(suspects):
            return f"it fails at this line alone: {shorten(suspects[0])}"
        return f"it failed {ATTEMPTS} times between {shorten(lines[0])} and {shorten(lines[-1])}"

    def _fails(self, lines: Sequence[str]) -> bool:
        try:
            self._answer(lines)
        except ProgramError:
            self._abandon()
            return True
        return False

    def _answer(self, lines: Sequence[str]) -> list[str]:
        if self._options.restart:
            with FilterProcess(self._options) as program:
                return program.answer_until_end(lines)
        running = self._start()
        *answers, last = running.answer([*lines, GUARD], self._guard)
        if last != self._guard:
            raise running.failure(
                f"wrote more or fewer than one line for each line: the line {GUARD!r} after "
                f"{len(lines)} others was answered by {shorten(last)}, not {self._guard!r}"
            )
        return answers

    def _start(self) -> FilterProcess:
        if self._running is None:
            self._running = FilterProcess(self._options)
            self._guard = self._greet(self._running)
        return self._running

    def _greet(self, program: FilterProcess) -> str:
        """The answer to the guard, which must be the same twice."""
        impatience = threading.Timer(_PATIENCE, self._report, [f"{self._options}: {_SLOW}"])
        impatience.daemon = True
        impatience.start()
        try:
            first, second = program.answer([GUARD, GUARD])
        except ProgramError as error:
            if error.answered is None:
                raise _StartError(str(error)) from None
            raise _UnfitError(f"{error}; {_UNFIT}") from None
        finally:
            impatience.cancel()
        if first != second:
            raise _UnfitError(
                f"{self._options}: answered the line {GUARD!r} by {shorten(first)} and then by "
                f"{shorten(second)}: expected one line for each line, always the same, and "
                "nothing else on stdout; a program whose answers vary needs --command-restart"
            )
        return first


_SLOW = (
    "no answer yet; a program must write and flush a line for each line it reads, or be run with "
    "--command-restart"
)
_UNFIT = (
    "a program must write and flush a line for each line it reads; one that answers at the end of "
    "its input needs --command-restart"
)


class _StartError(ProgramError):
    """A program that ends before it has answered anything: no line is to blame."""


class _UnfitError(BothendsError):
    """A program that no second attempt would help."""


def _print(text: str) -> None:
    print(f"bothends: warning: {text}", file=sys.stderr, flush=True)
