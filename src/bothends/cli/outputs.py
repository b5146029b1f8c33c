"""Files that a command writes: output paths are checked before the work starts.

One rule for all commands: the directory of a file must be there, since a misspelled one should not
come into being; a directory that a command writes is made, with those above it.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bothends.errors import BothendsError
from bothends.files import real_path, write_output

#: As a file to write JSON to: standard output.
STANDARD_OUTPUT = Path("-")
#: As a file to read: standard input, which may be a file, too.
STANDARD_INPUT = Path("-")


def write_json(path: Path | None, content: dict[str, Any]) -> None:
    """A line of JSON, to a file or to stdout, if there is a place for it."""
    line = json.dumps(content, ensure_ascii=False)
    if path == STANDARD_OUTPUT:
        print(line)
    elif path is not None:
        write_output(path, f"{line}\n".encode())


def check_writable(
    outputs: Mapping[str, Path | Iterable[Path] | None],
    inputs: Iterable[Path | None] = (),
    *,
    plots: bool = True,
) -> None:
    """Complain about an output, by its option, that cannot be written or would replace an input, or
    another output. With `plots`, a picture is one that matplotlib draws."""
    given_inputs = [path for path in inputs if path is not None]
    read = {real_path(path) for path in given_inputs}
    reads_stdin = STANDARD_INPUT in given_inputs
    written: set[Path] = set()
    for option, given in outputs.items():
        paths = [given] if isinstance(given, Path) else given or ()
        for path in paths:
            if option == "--json" and path == STANDARD_OUTPUT:
                continue
            if path.suffix == ".gz":
                raise BothendsError(
                    f"{option} {path}: output is not compressed; choose a name without .gz"
                )
            if path.is_dir():
                raise BothendsError(f"{option} {path}: is a directory, expected a file to write")
            if path.exists():
                if not os.access(path, os.W_OK):
                    raise BothendsError(f"{option} {path}: is not writable")
            elif not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
                raise BothendsError(
                    f"{option} {path}: {path.parent} is not a directory that can be written to"
                )
            if real_path(path) in read or (reads_stdin and _is_standard_input(path)):
                raise BothendsError(f"{option} {path}: is an input, too; write to another file")
            if path.is_file() or not path.exists():  # a device takes any number of outputs
                if real_path(path) in written:
                    raise BothendsError(
                        f"{option} {path}: is another output, too; name a different file"
                    )
                written.add(real_path(path))
    picture = outputs.get("--picture")
    if plots and isinstance(picture, Path):
        from bothends.evaluation.bench.plots import check_picture

        check_picture(picture)


def _is_standard_input(path: Path) -> bool:
    """Whether the shell feeds this very file, as in `translate <text --output text`."""
    try:
        found = path.stat()
        return stat.S_ISREG(found.st_mode) and os.path.samestat(found, os.fstat(0))
    except OSError:  # one of them is not there
        return False
