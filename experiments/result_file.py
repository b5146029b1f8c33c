"""A model's result as files: a summary that people can read, and long lists compressed beside it.

result.json             figures with their signatures, the training, the recipe
float32-beam4.txt.gz    translations of the test set, one a line; likewise of other settings
references.tsv.gz       log probability and number of symbols of each reference
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bothends.files import write_atomically

RESULT = "result.json"
REFERENCES = "references.tsv.gz"
#: A value of a summary stays on one line if the line is not longer.
WIDTH = 120


def write_result(directory: Path, content: dict[str, Any]) -> None:
    """Store a result; its `translations` and `references` go into files of their own.

    The summary comes last: where it is, the rest is complete.
    """
    summary = dict(content)
    translations, references = summary.pop("translations"), summary.pop("references")
    for setting, lines in translations.items():
        _write_lines(directory / _translations(setting), lines)
    pairs = zip(references["logprobs"], references["symbols"], strict=True)
    _write_lines(directory / REFERENCES, [f"{logprob}\t{symbols}" for logprob, symbols in pairs])
    write_atomically(directory / RESULT, f"{pretty(summary)}\n".encode())


def read_summary(directory: Path) -> dict[str, Any]:
    """The summary: all but translations and scores of references."""
    summary: dict[str, Any] = json.loads((directory / RESULT).read_bytes())
    return summary


def read_translations(directory: Path, setting: str) -> list[str]:
    """Translations of the test set in a setting, such as `float32-beam4`."""
    return _read_lines(directory / _translations(setting))


def read_references(directory: Path) -> list[tuple[float, int]]:
    """Log probability and number of symbols of each reference."""
    pairs = (line.split("\t") for line in _read_lines(directory / REFERENCES))
    return [(float(logprob), int(symbols)) for logprob, symbols in pairs]


def result_files(directory: Path) -> list[Path]:
    """All files of the result in a directory."""
    return [*sorted(directory.glob("*.txt.gz")), directory / REFERENCES, directory / RESULT]


def pretty(value: Any, indent: int = 0, before: int = 0) -> str:
    """JSON in which a list or object that fits into a line stays on it.

    `before` is the number of characters that stand before the value on its line.
    """
    line = json.dumps(value, ensure_ascii=False)
    if indent + before + len(line) < WIDTH or not isinstance(value, dict | list) or not value:
        return line
    inner = indent + 1
    if isinstance(value, dict):
        keys = [f"{json.dumps(key, ensure_ascii=False)}: " for key in value]
        parts = [
            key + pretty(each, inner, len(key))
            for key, each in zip(keys, value.values(), strict=True)
        ]
        opening, closing = "{}"
    else:
        parts = [pretty(each, inner) for each in value]
        opening, closing = "[]"
    lines = ",\n".join(" " * inner + part for part in parts)
    return f"{opening}\n{lines}\n{' ' * indent}{closing}"


def _translations(setting: str) -> str:
    return f"{setting}.txt.gz"


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    """Without a time or a name inside, so that the same lines give the same file."""
    buffer = io.BytesIO()
    with gzip.GzipFile("", "wb", fileobj=buffer, mtime=0) as file:
        file.write("".join(f"{line}\n" for line in lines).encode())
    write_atomically(path, buffer.getvalue())


def _read_lines(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().split("\n")[:-1]
