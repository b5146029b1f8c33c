"""The text side of a CTranslate2 model: lists of tokens, and settings that name some of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bothends.convert.huggingface_config import read_json
from bothends.convert.options import ConvertOptions
from bothends.errors import BothendsError
from bothends.storage.records import read_foreign_json
from bothends.text.foreign import load_sentencepiece

#: Names that a SentencePiece model has in a directory, for both sides or for each.
_SENTENCEPIECE = {
    "source": ("source.spm", "source.model", "sentencepiece.model", "spiece.model"),
    "target": ("target.spm", "target.model", "sentencepiece.model", "spiece.model"),
}


@dataclass(frozen=True)
class TokenLists:
    """The tokens of both sides, and what the settings say of them."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    settings: dict[str, Any]
    #: the file that errors name
    path: Path
    source_sentencepiece: bytes = b""
    target_sentencepiece: bytes = b""

    @classmethod
    def read(cls, directory: Path, sizes: tuple[int, int], options: ConvertOptions) -> TokenLists:
        config = directory / "config.json"
        settings = read_json(config) if config.is_file() else {}
        unknown = settings.get("unk_token", "<unk>")
        sides, path = [], directory
        for side, size in zip(("source", "target"), sizes, strict=True):
            path = _find_list(directory, side)
            tokens = _read_list(path)
            if len(tokens) == size - 1 and unknown not in tokens:
                tokens = [*tokens, unknown]  # as OpenNMT-tf counts them
            if len(tokens) != size:
                raise BothendsError(
                    f"{path}: {len(tokens)} tokens, but the model has {size} {side} words: it is "
                    "the vocabulary of another model"
                )
            sides.append(tuple(tokens))
        source, target = sides
        return cls(
            source,
            target,
            settings=settings,
            path=path,
            source_sentencepiece=_sentencepiece(directory, "source", options.source_sentencepiece),
            target_sentencepiece=_sentencepiece(directory, "target", options.target_sentencepiece),
        )

    def token(self, setting: str, default: str | None) -> str | None:
        value = self.settings.get(setting, default)
        if value is not None and not isinstance(value, str):
            raise BothendsError(f"{self.path.parent}/config.json: {setting} should be a token")
        return value

    def source_id(self, token: str) -> int:
        return self._id(self.source, token, "source")

    def target_id(self, token: str) -> int:
        return self._id(self.target, token, "target")

    def _id(self, tokens: tuple[str, ...], token: str, side: str) -> int:
        if token not in tokens:
            raise BothendsError(f"{self.path.parent}: the {side} vocabulary has no token {token!r}")
        return tokens.index(token)

    def source_frame(self, options: ConvertOptions) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The ids before and after the text of a source."""
        prefix: tuple[int, ...] = ()
        if self.settings.get("add_source_bos"):
            prefix = (self.source_id(self.token("bos_token", "<s>") or "<s>"),)
        ends = options.source_end
        if ends is None:
            ends = bool(self.settings.get("add_source_eos"))
        suffix = (self.source_id(self.token("eos_token", "</s>") or "</s>"),) if ends else ()
        return prefix, suffix


def _find_list(directory: Path, side: str) -> Path:
    for name in (f"{side}_vocabulary", "shared_vocabulary"):
        for ending in ("json", "txt"):
            if (directory / f"{name}.{ending}").is_file():
                return directory / f"{name}.{ending}"
    raise BothendsError(
        f"{directory}: no vocabulary, neither {side}_vocabulary nor shared_vocabulary is there"
    )


def _read_list(path: Path) -> list[str]:
    try:
        if path.suffix == ".json":
            tokens = read_foreign_json(path)
        else:
            tokens = path.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise BothendsError(f"{path}: damaged, not a list of tokens ({error})") from None
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise BothendsError(f"{path}: damaged, not a list of tokens")
    if path.suffix == ".txt":
        tokens = [token.removesuffix("\r") for token in tokens]
        if tokens and not tokens[-1]:
            tokens.pop()
    return tokens


def _sentencepiece(directory: Path, side: str, given: Path | None) -> bytes:
    """The SentencePiece model of a side; nothing where there is none."""
    path = given or next(
        (directory / name for name in _SENTENCEPIECE[side] if (directory / name).is_file()), None
    )
    if path is None:
        return b""
    try:
        model = path.read_bytes()
    except OSError as error:
        raise BothendsError(f"{path}: cannot be read ({error.strerror})") from None
    load_sentencepiece(model, path)
    return model
