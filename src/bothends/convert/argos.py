"""Argos packages: a zip file with a CTranslate2 model and its SentencePiece model."""

from __future__ import annotations

import lzma
import os
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from bothends.convert.ctranslate2 import convert_ctranslate2
from bothends.convert.options import ConvertOptions
from bothends.convert.result import ConvertedModel
from bothends.errors import BothendsError
from bothends.storage.records import parse_json

#: Bytes that the files of a package may have when unpacked: far more than any model of its kind.
_LARGEST = 8 << 30
#: How reading a damaged, encrypted or odd archive fails.
_DAMAGES = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    OSError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)


def convert_argos(path: Path, options: ConvertOptions) -> ConvertedModel:
    """The model in a package as one of ours."""
    with tempfile.TemporaryDirectory() as scratch, _named(path, scratch):
        root = _unpack(path, Path(scratch))
        metadata = _metadata(root)
        sentencepiece = root / "sentencepiece.model"
        if not sentencepiece.is_file():
            raise BothendsError(
                f"{path}: no sentencepiece.model in it; packages with another kind of vocabulary "
                "are not supported"
            )
        known = replace(
            options,
            source_language=options.source_language or metadata.get("from_code"),
            target_language=options.target_language or metadata.get("to_code"),
            target_prefix=options.target_prefix or metadata.get("target_prefix") or None,
            source_sentencepiece=options.source_sentencepiece or sentencepiece,
            target_sentencepiece=options.target_sentencepiece or sentencepiece,
        )
        return convert_ctranslate2(root / "model", known)


@contextmanager
def _named(path: Path, scratch: str) -> Iterator[None]:
    """Errors that name a file of the package, and not where it was unpacked."""
    try:
        yield
    except BothendsError as error:
        raise type(error)(str(error).replace(f"{scratch}{os.sep}", f"{path}: ")) from None


def _unpack(path: Path, directory: Path) -> Path:
    """Unpack what we need into `directory`; no name may lead out of it."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            for entry in entries:
                _check(path, entry)
            if sum(entry.file_size for entry in entries) > _LARGEST:
                raise BothendsError(f"{path}: unpacks to more than {_LARGEST >> 30} GB")
            wanted = [
                entry for entry in entries if "stanza" not in PurePosixPath(entry.filename).parts
            ]
            archive.extractall(directory, wanted)
    except _DAMAGES as error:
        raise BothendsError(f"{path}: damaged, not an Argos package ({error})") from None
    roots = [each.parent for each in directory.rglob("metadata.json")]
    if len(roots) != 1:
        raise BothendsError(f"{path}: not an Argos package, it has {len(roots)} metadata.json")
    return roots[0]


def _check(path: Path, entry: zipfile.ZipInfo) -> None:
    name = PurePosixPath(entry.filename)
    is_link = stat.S_ISLNK(entry.external_attr >> 16)
    climbs = ".." in name.parts or name.is_absolute() or "\\" in entry.filename
    if is_link or climbs or ":" in entry.filename:
        raise BothendsError(f"{path}: refused, its entry {entry.filename!r} leads out of it")


def _metadata(root: Path) -> dict[str, Any]:
    try:
        metadata = parse_json((root / "metadata.json").read_bytes())
    except ValueError as error:
        raise BothendsError(f"{root.name}/metadata.json: damaged, not JSON ({error})") from None
    texts = ("from_code", "to_code", "target_prefix")
    if not isinstance(metadata, dict) or not all(
        isinstance(metadata.get(name, ""), str) for name in texts
    ):
        raise BothendsError(f"{root.name}/metadata.json: damaged, expected an object of texts")
    return metadata
