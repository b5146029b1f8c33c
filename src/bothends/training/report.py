"""Reports of a run: records in a log, a line on the terminal, TensorBoard on request."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from bothends.errors import BothendsError
from bothends.training.recipe import Length


class Log:
    """Appends records to a JSONL file, and to TensorBoard if asked."""

    def __init__(self, path: Path, keep_bytes: int, tensorboard: bool) -> None:
        """Go on after the first `keep_bytes`: what came later will be computed again."""
        self._file = open(path, "ab")  # noqa: SIM115 (open as long as the run)
        self._file.truncate(min(keep_bytes, self._file.tell()))  # it may have been removed
        self._board: Any = _tensorboard(path.parent / "tensorboard") if tensorboard else None

    def write(self, kind: str, record: Mapping[str, Any]) -> int:
        """Append a record; the length of the log after it."""
        line = json.dumps({"kind": kind, **record}, ensure_ascii=False)
        self._file.write(line.encode() + b"\n")
        self._file.flush()
        if self._board is not None:
            for name, value in record.items():
                if isinstance(value, (int, float)) and name != "update":
                    self._board.add_scalar(f"{kind}/{name}", value, record["update"])
        return self._file.tell()

    def sync(self) -> int:
        """Make the log durable; its length."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._file.tell()

    def close(self) -> None:
        self._file.close()
        if self._board is not None:
            self._board.close()


def _tensorboard(directory: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise BothendsError(
            "tensorboard: true needs the package tensorboard: pip install tensorboard"
        ) from None
    return SummaryWriter(str(directory))


class Screen:
    """Messages on stderr: a line that is rewritten on a terminal, plain lines elsewhere."""

    def __init__(self, silent: bool = False) -> None:
        self._silent = silent
        self._terminal = sys.stderr.isatty()
        self._open_line = False

    def say(self, text: str) -> None:
        """A line that stays."""
        if not self._silent:
            print(("\r\033[K" if self._open_line else "") + text, file=sys.stderr, flush=True)
        self._open_line = False

    def progress(self, text: str, lasting: bool) -> None:
        """A line about progress; off a terminal only the `lasting` ones are printed."""
        if self._silent:
            return
        if self._terminal and not lasting:
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
            self._open_line = True
        elif lasting:
            self.say(text)


def time_left(length: Length, update: int, epochs: float, seconds: float) -> str:
    """How long a run will take from here, by whichever limit comes first."""
    fractions = [
        update / length.updates if length.updates else 0.0,
        epochs / length.epochs if length.epochs else 0.0,
        seconds / (60 * length.minutes) if length.minutes else 0.0,
    ]
    done = max(fractions)
    if not done:
        return "?"
    return str(timedelta(seconds=math.ceil(max(0.0, seconds * (1 - done) / done))))
