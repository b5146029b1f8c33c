"""Which code made something: the commit of the source tree that this package runs from."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def source_commit() -> str | None:
    """The commit, or None where the package is installed without its repository."""
    try:
        result = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
            env={**os.environ, "GIT_CEILING_DIRECTORIES": ""},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() or None if result.returncode == 0 else None
