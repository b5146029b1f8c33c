"""Packages that only some commands need."""

from __future__ import annotations

from importlib.util import find_spec

from bothends.errors import BothendsError


def require_torch(purpose: str) -> None:
    """Complain that PyTorch is missing before any work for `purpose` starts."""
    if find_spec("torch") is None:
        raise BothendsError(
            f"{purpose} needs PyTorch, which is not installed: pip install 'bothends[train,eval]'"
        )
