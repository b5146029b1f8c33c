"""How a command, a server or a job loads the models that it is told of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bothends.engines.registry import EngineName, Precision
from bothends.translator import Translator


@dataclass(frozen=True)
class LoadOptions:
    """How a command or a job loads its models. See `Translator.load`."""

    engine: EngineName | None = None
    precision: Precision | None = None
    threads: int | None = None
    device: str | None = None
    #: use a model's shortlist, if it has one
    shortlist: bool = True

    def load(self, directory: Path | str | None) -> Translator:
        return Translator.load(
            directory,
            engine=self.engine,
            precision=self.precision,
            threads=self.threads,
            device=self.device,
            shortlist=self.shortlist,
        )
