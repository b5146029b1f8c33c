"""Running commands as a user would, in this process or in one of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence

import pytest

from bothends.cli import run


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def error_line(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit status and error message of a command that must fail, in one line and nothing else."""
    status = run(arguments)
    captured = capsys.readouterr()
    assert captured.out == ""
    match = re.fullmatch(r"bothends: error: (\S[^\n]*)\n", captured.err)
    assert match is not None, f"not one error line: {captured.err!r}"
    return status, match[1]
