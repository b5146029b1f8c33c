"""SHA-256 of files and of settings."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from bothends.storage.digests import FileRecord


def file_digest(path: Path) -> str:
    """The SHA-256 of a file, which may be larger than memory."""
    return FileRecord.of(path).sha256


def settings_digest(content: Any) -> str:
    """The SHA-256 of something that JSON can hold; the order of keys does not matter."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
