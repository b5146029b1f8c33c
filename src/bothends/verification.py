"""Compares every file of a model, corpus, run or chain with its digest.

A model has `digests.json`; a prepared or distilled corpus has its digests in `manifest.json`; a
shard of a distillation that is still going on has them in its first line. A run, a chain or any
other directory is gone through for these.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from bothends.data.shards import MANIFEST
from bothends.errors import BothendsError
from bothends.model.directory import CONFIG, FILES, read_description
from bothends.storage.digests import DIGESTS, FileName, FileRecord, read_digests, record_digests
from bothends.storage.records import parse_json, read_bounded
from bothends.storage.schemas import first_problem

#: Directories in each other that are looked into: a chain has runs, which have checkpoints.
_DEEPEST = 4


@dataclass(frozen=True)
class Verified:
    """What was found of one model or corpus."""

    directory: Path
    kind: str
    #: files that were compared, and the bytes in them
    files: int
    bytes: int
    #: messages, each beginning with the name of a file
    problems: tuple[str, ...]


class _Manifest(BaseModel):
    """What the manifests of all kinds of corpora have."""

    model_config = ConfigDict(extra="ignore")

    files: dict[FileName, FileRecord]
    #: SHA-256 of every shard, if it is a distilled corpus
    shards: dict[FileName, str] = {}


def verify(directory: Path) -> list[Verified]:
    """Check every model and corpus in `directory`, which may be one itself."""
    if not directory.is_dir():
        raise BothendsError(f"{directory}: no such directory")
    found = list(_verify(directory, _DEEPEST))
    if not found:
        raise BothendsError(
            f"{directory}: no model, corpus, run or chain, nor is there one in its directories"
        )
    return found


def record(directory: Path) -> int:
    """Record the digests of a model's files as they are now; their number."""
    if not (directory / CONFIG).is_file():
        raise BothendsError(
            f"{directory}: not a model directory, {CONFIG} is missing; a corpus is prepared or "
            "distilled again instead"
        )
    try:
        known = read_digests(directory)
    except BothendsError:  # damaged, and so written anew
        (directory / DIGESTS).unlink()
        known = None
    names = dict.fromkeys((*FILES, *(known.files if known else ())))
    there = [name for name in names if (directory / name).is_file()]
    files = record_digests(directory, there, written=there).files
    read_description(directory)
    return len(files)


def _verify(directory: Path, levels: int) -> Iterator[Verified]:
    if (directory / CONFIG).is_file() or (directory / DIGESTS).is_file():
        yield _verify_model(directory)
    elif (directory / MANIFEST).is_file():
        yield _verify_corpus(directory)
    elif any(directory.glob("shards/*.jsonl")):
        problems = [problem for path in _shards(directory) if (problem := _shard_problem(path))]
        yield _result(directory, "distillation that goes on", _shards(directory), problems)
    elif levels:
        for path in sorted(directory.iterdir()):
            if path.is_dir() and not path.is_symlink() and not path.name.startswith("."):
                yield from _verify(path, levels - 1)


def _verify_model(directory: Path) -> Verified:
    try:
        digests = read_digests(directory)
    except BothendsError as error:
        return _result(directory, "model", [], [str(error)])
    if digests is None:
        hint = f"nothing to compare with; `bothends verify --record {directory}` writes it"
        return _result(directory, "model", [], [f"{directory / DIGESTS}: missing, {hint}"])
    problems = list(_differences(directory, digests.files, DIGESTS))
    problems += (
        f"{directory / name}: not in {DIGESTS}"
        for name in FILES
        if name not in digests.files and (directory / name).is_file()
    )
    return _result(directory, "model", [directory / name for name in digests.files], problems)


def _verify_corpus(directory: Path) -> Verified:
    path = directory / MANIFEST
    try:
        content = parse_json(read_bounded(path))
        manifest = _Manifest.model_validate(content)
    except ValidationError as error:
        return _result(directory, "corpus", [], [f"{path}: damaged, {first_problem(error)}"])
    except (OSError, ValueError, BothendsError) as error:
        return _result(directory, "corpus", [], [f"{path}: damaged ({error})"])
    problems = list(_differences(directory, manifest.files, MANIFEST))
    files = [directory / name for name in manifest.files]
    for name, sha256 in manifest.shards.items():
        shard = directory / "shards" / name
        if not shard.is_file():  # they may be removed once they are merged
            continue
        files.append(shard)
        if FileRecord.of(shard).sha256 != sha256:
            problems.append(f"{shard}: damaged or exchanged, not as {MANIFEST} describes it")
    kind = "distilled corpus" if "job" in content else "prepared corpus"
    return _result(directory, kind, files, problems)


def _differences(directory: Path, records: Mapping[str, FileRecord], source: str) -> Iterator[str]:
    for name, expected in records.items():
        path = directory / name
        if not path.is_file():
            yield f"{path}: missing, though {source} lists it"
            continue
        try:
            found = FileRecord.of(path)
        except OSError as error:
            yield f"{path}: cannot be read ({error.strerror})"
            continue
        if found.bytes != expected.bytes:
            yield f"{path}: {found.bytes:,} bytes, but {expected.bytes:,} were written"
        elif found != expected:
            yield (
                f"{path}: other content, SHA-256 {found.sha256[:12]}..., but "
                f"{expected.sha256[:12]}... was written"
            )


def _shards(directory: Path) -> list[Path]:
    return sorted(directory.glob("shards/*.jsonl"))


def _shard_problem(path: Path) -> str | None:
    """What is wrong with a shard, by the digest in its first line."""
    first, _, rest = path.read_bytes().partition(b"\n")
    try:
        expected = parse_json(first)["records_sha256"]
    except (ValueError, KeyError, TypeError):
        expected = None
    if hashlib.sha256(rest).hexdigest() == expected:
        return None
    return f"{path}: damaged; remove it, and the same `bothends distill` makes it again"


def _result(directory: Path, kind: str, files: list[Path], problems: list[str]) -> Verified:
    there = [path for path in files if path.is_file()]
    total = sum(path.stat().st_size for path in there)
    return Verified(directory, kind, len(there), total, tuple(problems))
