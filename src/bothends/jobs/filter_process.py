"""A program that reads lines and writes one line for each, as a process with three pipes.

Pipes cannot block each other: writing, reading and collecting what the program says on stderr each
have a thread of their own.
"""

from __future__ import annotations

import os
import queue
import shlex
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedReader, FileIO

from bothends.errors import BothendsError, UsageError

#: Bytes of a line that the program writes; more is taken for output without end.
LONGEST_ANSWER = 1 << 20
#: Seconds to wait for more lines after the last one has come too early, or for a process to end.
GRACE = 5.0


@dataclass(frozen=True)
class ProgramOptions:
    """How a program is run."""

    command: tuple[str, ...]
    #: seconds without any answer after which it counts as hung
    timeout: float = 300.0
    #: lines that it is given before all of them must be answered
    window: int = 256
    #: start it for each list of lines anew, and let it answer when its input ends
    restart: bool = False

    def __post_init__(self) -> None:
        if not self.command:
            raise UsageError("the command is empty: expected a program and its arguments")
        if not 0 < self.timeout <= threading.TIMEOUT_MAX:  # no number is neither
            raise UsageError(f"the timeout must be positive and finite, not {self.timeout:g} s")
        if self.window < 1:
            raise UsageError(f"a window must have at least 1 line, but has {self.window}")

    @classmethod
    def parse(
        cls, command: str, timeout: float = timeout, window: int = window, restart: bool = False
    ) -> ProgramOptions:
        """A command as one would type it. There is no shell: for pipes, write `sh -c '...'`."""
        try:
            words = tuple(shlex.split(command))
        except ValueError as error:
            raise UsageError(f"command {command!r}: {error}") from None
        return cls(words, timeout, window, restart)

    def __str__(self) -> str:
        return shlex.join(self.command)


class ProgramError(BothendsError):
    """A program did not answer as it should; the line says how."""

    def __init__(self, message: str, answered: int | None = None) -> None:
        super().__init__(message)
        #: how many lines it had answered when it fell silent; None if it was not that
        self.answered = answered


class FilterProcess:
    """A process with its three pipes."""

    def __init__(self, options: ProgramOptions) -> None:
        self._options = options
        self._answers: queue.Queue[bytes | None] = queue.Queue(4 * options.window + 16)
        self._last_words: deque[bytes] = deque(maxlen=3)
        #: seconds between two answers so far
        self._longest_wait = 0.0
        try:
            self._process = subprocess.Popen(
                options.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,  # a buffer has a lock, which a blocked write would hold
                # Its group is ended as a whole, and Ctrl-C is for us.
                start_new_session=True,
            )
        except OSError as error:
            raise UsageError(f"{options.command[0]}: cannot be run ({error.strerror})") from None
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert isinstance(stdin, FileIO)
        assert isinstance(stdout, FileIO)
        assert isinstance(stderr, FileIO)
        self._stdin, self._stdout = stdin, BufferedReader(stdout)
        self._stderr = BufferedReader(stderr)
        self._threads = [
            threading.Thread(target=target, daemon=True)
            for target in (self._read_answers, self._read_errors)
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> FilterProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def answer(self, lines: Sequence[str], guard: str | None = None) -> list[str]:
        """A line for each of `lines`; the program goes on."""
        self._start_writing(lines, end=False)
        answers: list[str] = []
        while len(answers) < len(lines):
            # Once the guard is answered nothing more should come: a line is missing.
            early = bool(answers) and answers[-1] == guard
            timeout = max(GRACE, 4 * self._longest_wait) if early else self._options.timeout
            try:
                answer = self._next(len(answers), len(lines), timeout)
            except ProgramError as error:
                if early:  # it is not silent: it has passed over a line before
                    error.answered = None
                raise
            if answer is None:
                raise self.failure(f"ended {self._status()} {_after(len(answers), len(lines))}")
            answers.append(answer)
        return answers

    def answer_until_end(self, lines: Sequence[str]) -> list[str]:
        """A line for each of `lines`, all that the program ever writes."""
        self._start_writing(lines, end=True)
        answers: list[str] = []
        timeout = self._options.timeout
        while (answer := self._next(len(answers), len(lines), timeout)) is not None:
            answers.append(answer)
            if len(answers) > len(lines):
                raise self.failure(f"wrote more than one line for each of {len(lines)} lines")
        status = self._status()
        if len(answers) < len(lines) or status != "with status 0":
            raise self.failure(f"ended {status} {_after(len(answers), len(lines))}")
        return answers

    def failure(self, what: str, answered: int | None = None) -> ProgramError:
        """An error with the last lines of the program's stderr."""
        self._threads[1].join(0.2)  # it may be about to say them
        words = b" / ".join(self._last_words).decode("utf-8", "replace").strip()
        said = f"; its last words: {shorten(words)}" if words else ""
        return ProgramError(f"{self._options}: {what}{said}", answered)

    def finish(self) -> None:
        """Wait for the program to end after its input has ended; otherwise end it."""
        self._stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)
        self.close()

    def close(self) -> None:
        """End the program at once, and all that it started."""
        if hasattr(os, "killpg"):
            with suppress(ProcessLookupError, PermissionError):  # all of them have ended
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        # A reader that waits for room in the queue gets it.
        for _ in range(50):
            if not self._threads[0].is_alive():
                break
            with suppress(queue.Empty):
                self._answers.get(timeout=0.1)
        self._stdin.close()

    def _next(self, count: int, expected: int, timeout: float) -> str | None:
        """The next answer; None at the end of the program's output."""
        timeout = min(timeout, self._options.timeout)
        begin = time.monotonic()
        try:
            answer = self._answers.get(timeout=timeout)
        except queue.Empty:
            raise self.failure(
                f"no line for {timeout:g} seconds {_after(count, expected)}", count
            ) from None
        self._longest_wait = max(self._longest_wait, time.monotonic() - begin)
        if answer is None:
            return None
        if len(answer) >= LONGEST_ANSWER:
            raise self.failure(f"wrote a line of more than {LONGEST_ANSWER:,} bytes")
        try:
            text = answer.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.failure(
                f"wrote a line that is not UTF-8 (byte {answer[error.start]:#04x})"
            ) from None
        return text.removesuffix("\n").removesuffix("\r")

    def _status(self) -> str:
        try:
            status = self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            return "its output, but not itself,"
        return f"by signal {-status}" if status < 0 else f"with status {status}"

    def _start_writing(self, lines: Sequence[str], end: bool) -> None:
        text = "".join(f"{line}\n" for line in lines).encode()
        threading.Thread(target=self._write, args=(text, end), daemon=True).start()

    def _write(self, text: bytes, end: bool) -> None:
        # The reader notices if the program has ended, or was ended.
        with suppress(OSError, ValueError):
            view = memoryview(text)
            while view:
                view = view[self._stdin.write(view) :]
            if end:
                self._stdin.close()

    def _read_answers(self) -> None:
        while answer := self._stdout.readline(LONGEST_ANSWER):
            self._answers.put(answer)
        self._answers.put(None)

    def _read_errors(self) -> None:
        while words := self._stderr.readline(1000):
            if words.strip():
                self._last_words.append(words.strip())


def _after(count: int, expected: int) -> str:
    return f"after {count} of {expected} lines"


def shorten(text: str) -> str:
    """A quotation for a message of one line."""
    return repr(text if len(text) <= 120 else f"{text[:117]}...")
