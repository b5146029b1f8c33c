"""A stage of a chain is a command of this tool: how its settings are spelled and recorded."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bothends.jobs.digests import file_digest
from bothends.jobs.stages import Stage


@dataclass(frozen=True, kw_only=True)
class CommandStage(Stage):
    """A stage that a command of this tool makes."""

    #: the part of the chain's recipe that has its settings
    section: str
    #: arguments of `bothends` that write to a directory
    arguments: Callable[[Path], list[str]]
    #: arguments that affect speed alone: they may differ from run to run
    speed_arguments: tuple[str, ...] = ()
    #: more than one: the command is run by torchrun
    processes: int = 1

    def arguments_for(self, output: Path) -> list[str]:
        """All arguments, with another output than the final one."""
        return [*self.arguments(output), *self.speed_arguments]

    @property
    def command(self) -> str:
        """As a user would type it."""
        program = "bothends"
        if self.processes > 1:
            program = f"torchrun --standalone --nproc-per-node {self.processes} -m bothends"
        return f"{program} {shlex.join(self.arguments_for(self.output))}"


def as_flags(options: Mapping[str, Any]) -> list[str]:
    """Options as the command line has them; what is None or False is left out."""
    arguments: list[str] = []
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            arguments.append(flag)
        elif isinstance(value, (list, tuple)):
            arguments += [flag, *map(str, value)]
        elif value is not None and value is not False:
            arguments += [flag, str(value)]
    return arguments


def plain_options(options: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    """Options as JSON has them; a path as `directory` sees it, however it was spelled."""
    spell = partial(os.path.relpath, start=directory)
    plain: dict[str, Any] = json.loads(json.dumps(dict(options), default=spell))
    return plain


def checksums(texts: Iterable[Path]) -> list[str | None]:
    """Of files from outside the chain, which may have been edited since; None: no such file yet."""
    return [file_digest(path) if path.is_file() else None for path in texts]


def dotted(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """`{a: {b: 1}}` as `a.b`, 1: both spellings may stand under `set`."""
    for key, value in settings.items():
        if isinstance(value, dict) and value:
            yield from dotted(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def spell_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
