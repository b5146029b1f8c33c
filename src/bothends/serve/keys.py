"""API keys: random, stored as hashes, compared in constant time.

A file has one key a line, `name:sha256-of-the-key`. A key has 256 random bits, so a plain hash
cannot be searched; a slow hash is for passwords that people think of.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from bothends.errors import BothendsError, UsageError
from bothends.files import append_line
from bothends.serve.logs import log

_LINE = re.compile(r"([A-Za-z0-9._@-]{1,64}):([0-9a-f]{64})")


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class ApiKeys:
    """The keys that a server accepts: hash by name."""

    hashes: dict[str, str]

    @classmethod
    def load(cls, path: Path) -> ApiKeys:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise BothendsError(f"{path}: cannot be read ({error.strerror})") from None
        except UnicodeDecodeError:
            raise BothendsError(f"{path}: not a file of API keys (not UTF-8)") from None
        hashes: dict[str, str] = {}
        for number, line in enumerate(lines, start=1):
            if not line.strip() or line.startswith("#"):
                continue
            match = _LINE.fullmatch(line.strip())
            if match is None:
                raise BothendsError(
                    f"{path}, line {number}: expected name:hash; make keys with "
                    "bothends serve --api-keys FILE --new-key NAME"
                )
            if match[1] in hashes:
                raise BothendsError(f"{path}, line {number}: a second key called {match[1]}")
            hashes[match[1]] = match[2]
        if not hashes:
            raise BothendsError(f"{path}: no keys; make one with --new-key NAME")
        return cls(hashes)

    def owner(self, key: str) -> str | None:
        """The name of a key, or None. All keys are compared, whichever matches."""
        hashed, found = _hash(key), None
        for name, stored in self.hashes.items():
            if hmac.compare_digest(hashed, stored):
                found = name
        return found


class KeyFile:
    """The keys of a file as it is now: a key that is added or removed needs no new start.

    Used by one thread, that of the event loop. A file that is damaged, empty or gone leaves the
    keys as they were: half an edit must not lock everybody out.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._signature = _sign(path)
        self._keys = ApiKeys.load(path)

    def owner(self, key: str) -> str | None:
        """The name of a key, or None."""
        signature = _sign(self._path)
        if signature != self._signature:
            self._signature = signature
            try:
                self._keys = ApiKeys.load(self._path)
            except BothendsError as error:
                log("keys-kept", level="warning", reason=str(error))
            else:
                log("keys-loaded", keys=len(self._keys.hashes))
        return self._keys.owner(key)


def _sign(path: Path) -> tuple[int, int, int] | None:
    """The state of a file: which one it is, its size and its time of change."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def add_key(path: Path, name: str) -> str:
    """Make a key, append its hash to a file that only its owner can read, and return the key."""
    if _LINE.fullmatch(f"{name}:{'0' * 64}") is None:
        raise UsageError(f"{name!r}: a key's name has letters, digits and . _ @ - (64 at most)")
    if path.exists() and path.stat().st_size and name in ApiKeys.load(path).hashes:
        raise UsageError(f"{path}: there is a key called {name}; remove its line first")
    key = "be_" + secrets.token_urlsafe(32)
    append_line(path, f"{name}:{_hash(key)}", mode=0o600)
    return key
