"""Jobs whose inputs and outputs are paths, as tests that look at files want them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bothends.distillation.bulk import BulkTranslation
from bothends.distillation.distill import Distillation


@dataclass(frozen=True)
class LocalTranslation(BulkTranslation):
    inputs: tuple[Path, ...]
    output: Path


@dataclass(frozen=True)
class LocalDistillation(Distillation):
    sources: tuple[Path, ...]
    output: Path
