"""A teacher that crashes its process at some lines. Workers import this, so it imports little."""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bothends.distillation.shard_file import Record

#: Where this is set, nothing can be written, as on a disk that is full.
FULL_DISK = "BOTHENDS_TEST_FULL_DISK"


def _no_space(_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@dataclass(frozen=True)
class CrashingTeacher:
    """Writes lines in capitals, and crashes its process at some."""

    name: str = "crashing"
    has_scores: bool = False
    #: for each call
    seconds: float = 0.0

    def settings(self) -> dict[str, Any]:
        return {"teacher": self.name}

    def provenance(self) -> dict[str, Any]:
        return {"teacher": self.name}

    def packages(self) -> tuple[str, ...]:
        return ()

    @contextmanager
    def start(self) -> Iterator[Callable[[Sequence[str]], list[Record]]]:
        if os.environ.get(FULL_DISK):
            os.fsync = _no_space  # type: ignore[assignment]

        def translate(lines: Sequence[str]) -> list[Record]:
            if any("poison" in line for line in lines):
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(self.seconds)
            return [Record(line.upper(), None, len(line), len(line), True, False) for line in lines]

        yield translate
