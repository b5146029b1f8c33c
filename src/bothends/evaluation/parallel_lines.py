"""The files of a test set, read whole: line N of one belongs to line N of the others."""

from __future__ import annotations

from pathlib import Path

from bothends.errors import BothendsError
from bothends.text.lines import Invalid, LineReader


def read_lines(
    path: Path, invalid: Invalid, expected: str = "a sentence in each line"
) -> list[str]:
    """The lines of a file, at least one."""
    lines = [line for line in LineReader([path], invalid) if line is not None]
    if not lines:
        raise BothendsError(f"{path}: is empty, expected {expected}")
    return lines


def read_aligned(path: Path, other: Path, count: int, invalid: Invalid) -> list[str]:
    """The lines of a file, empty ones included: one for each of the `count` lines of `other`."""
    lines = [line for line in LineReader([path], invalid) if line is not None]
    if len(lines) != count:
        raise BothendsError(
            f"{path} has {len(lines):,} lines, but {other} has {count:,}: line N of one must "
            "belong to line N of the other"
        )
    return lines
