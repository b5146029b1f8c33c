"""Cores that a process may use."""

from __future__ import annotations

import os


def available_cores() -> int:
    """Cores that this process may run on; fewer than the machine's in a container."""
    if hasattr(os, "sched_getaffinity"):  # not on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
