"""Vocabularies of other libraries' models, as a converted model carries them.

A side's vocabulary is two files: `vocabulary.json` says what kind it is and lists its entries, and
`vocabulary.model` beside it is the original's own file, byte for byte. There are three kinds:

- `pieces`: a SentencePiece model cuts the text, and a list gives the pieces their ids. Marian,
  M2M-100 and Argos have such a pair, because they were trained with one order of entries and cut
  with another.
- `words`: the text is tokens with spaces between them, as CTranslate2 reads it.
- `tokenizer`: Hugging Face's `tokenizer.json`, run by the `tokenizers` package.

Text becomes the ids that the original tokenizer gives it, and ids the same text. Tokens that are no
text have no place in it: a translation never shows them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bothends.errors import BothendsError
from bothends.files import write_atomically
from bothends.order import BoolArray
from bothends.storage.checked import Checked, CheckError
from bothends.storage.digests import check_file
from bothends.storage.records import parse_versioned, read_bounded
from bothends.text.vocabulary import (
    SPACE,
    Side,
    SpecialTokens,
    clean_decoded,
    vocabulary_name,
)

FORMAT_VERSION = 1
Kind = Literal["pieces", "words", "tokenizer"]

#: How Marian's multilingual models are told the target language, at the start of a source.
_LANGUAGE = re.compile(r">>[^<]*<<")
#: How byte-level tokenizers spell a space.
_BYTE_LEVEL_SPACE = "\u0120"


@dataclass(frozen=True, kw_only=True)
class VocabularyContent(Checked):
    """What `vocabulary.json` says."""

    format_version: int = FORMAT_VERSION
    kind: Kind
    special: SpecialTokens
    #: rows of the embedding, of which the last may have no entry
    size: int
    #: by id; a tokenizer has its own
    entries: tuple[str, ...] = ()
    #: ids that are no text
    silent: tuple[int, ...] = ()
    #: a source may begin with `>>language<<`
    language_marks: bool = False


@dataclass(frozen=True, eq=False)
class ForeignVocabulary:
    """One side's vocabulary of a converted model. Safe to share between threads."""

    path: Path
    content: VocabularyContent
    #: the original's file: a SentencePiece model, or `tokenizer.json`; empty for words
    file: bytes

    @classmethod
    def load(cls, path: Path) -> ForeignVocabulary:
        """The vocabulary in file `path` and the one beside it."""
        beside = path.with_suffix(".model")
        check_file(path)
        try:
            text = read_bounded(path)
            content = VocabularyContent.read(parse_versioned(text, path, FORMAT_VERSION))
            file = b""
            if content.kind != "words":
                check_file(beside)
                file = beside.read_bytes()
        except FileNotFoundError as error:
            raise BothendsError(f"{error.filename}: no such vocabulary file") from None
        except CheckError as error:
            raise BothendsError(f"{path}: {error}") from None
        except (OSError, ValueError) as error:
            raise BothendsError(f"{path}: damaged, not a vocabulary ({error!r})") from None
        vocabulary = cls(path, content, file)
        _ = vocabulary._processor, vocabulary._ids  # a damaged file is an error now
        return vocabulary

    def save_side(self, directory: Path, side: Side | None) -> None:
        """Write the files of one side, or of both sides in one, each whole or not at all."""
        path = Path(directory) / vocabulary_name(side)
        for place, content in replace(self, path=path).contents().items():
            write_atomically(place, content)

    def contents(self) -> Mapping[Path, bytes]:
        """The files that it is loaded from."""
        text = json.dumps(self.content.dump(), indent=1, ensure_ascii=False) + "\n"
        described = {self.path: text.encode()}
        beside = {self.path.with_suffix(".model"): self.file} if self.file else {}
        return beside | described

    @property
    def special(self) -> SpecialTokens:
        return self.content.special

    @property
    def size(self) -> int:
        return self.content.size

    @property
    def model(self) -> bytes:
        """What tells two vocabularies apart."""
        return json.dumps(self.content.dump()).encode() + self.file

    def encode(self, lines: Sequence[str], threads: int = 1) -> list[list[int]]:
        """Ids of each line, text only: no start, no end."""
        # Half a surrogate pair, as in JSON's "\ud83d", is no character and has no UTF-8.
        lines = [line.encode("utf-8", "replace").decode() for line in lines]
        if self.content.kind == "tokenizer":
            encodings = self._processor.encode_batch(lines, add_special_tokens=False)
            return [encoding.ids for encoding in encodings]
        unknown = self.content.special.unknown
        return [
            [self._ids.get(piece, unknown) for piece in self._cut(line, threads)] for line in lines
        ]

    def _cut(self, line: str, threads: int) -> list[str]:
        if self.content.kind == "words":
            return line.split()
        mark = _LANGUAGE.match(line) if self.content.language_marks else None
        language = [mark[0]] if mark else []
        pieces: list[str] = self._processor.encode(line[mark.end() if mark else 0 :], out_type=str)
        return language + pieces

    def decode(self, sequences: Sequence[Iterable[int]]) -> list[str]:
        """Text of each sequence, always one line, without the tokens that are no text."""
        silent = set(self.content.silent)
        texts = []
        for sequence in sequences:
            ids = [int(token) for token in sequence if int(token) not in silent]
            texts.append(clean_decoded(self._join(ids)))
        return texts

    def _join(self, ids: list[int]) -> str:
        text: str
        if self.content.kind == "tokenizer":
            text = self._processor.decode(ids, skip_special_tokens=True)
        elif self.content.kind == "words":
            text = " ".join(self.pieces(ids))
        else:
            text = self._processor.decode_pieces(self.pieces(ids)).replace(SPACE, " ").strip()
        return text

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The entry behind each id (`▁` is a space)."""
        if self.content.kind == "tokenizer":
            tokens = (self._processor.id_to_token(int(token)) or "" for token in ids)
            return [token.replace(_BYTE_LEVEL_SPACE, SPACE) for token in tokens]
        entries = self.content.entries
        return [entries[token] if token < len(entries) else "" for token in map(int, ids)]

    def encode_inside(self, text: str) -> list[int]:
        """Ids of a text that goes on without a space before it: the rest of a word, a full stop."""
        if self.content.kind == "pieces":
            pieces = self._inside.encode(text, out_type=str)
            return [self._ids.get(piece, self.special.unknown) for piece in pieces]
        # Behind a letter, unless the two become one token.
        letter, both = self.encode(["a", "a" + text])
        return both[len(letter) :] if both[: len(letter)] == letter else self.encode([text])[0]

    @cached_property
    def _inside(self) -> Any:
        processor = load_sentencepiece(self.file, self.path.with_suffix(".model"))
        processor.override_normalizer_spec(add_dummy_prefix=False)
        return processor

    @cached_property
    def starts_word(self) -> BoolArray:
        """`(V,)`: does this piece begin with a space? A word always does."""
        words = self.content.kind == "words"
        starts = np.array([words or x.startswith(SPACE) for x in self.pieces(range(self.size))])
        starts.flags.writeable = False
        return starts

    @cached_property
    def _ids(self) -> dict[str, int]:
        # Of equal entries the first is meant.
        return {entry: i for i, entry in reversed(list(enumerate(self.content.entries)))}

    @cached_property
    def _processor(self) -> Any:
        if self.content.kind == "words":
            return None
        beside = self.path.with_suffix(".model")
        if self.content.kind == "pieces":
            return load_sentencepiece(self.file, beside)
        return load_tokenizer(self.file, beside)


def load_sentencepiece(model: bytes, path: Path) -> Any:
    """The SentencePiece model that was read from `path`."""
    import sentencepiece

    try:
        if not model:  # SentencePiece takes nothing for a model
            raise RuntimeError
        return sentencepiece.SentencePieceProcessor(model_proto=model)
    except RuntimeError:
        raise BothendsError(f"{path}: damaged, or not a SentencePiece model") from None


def load_tokenizer(content: bytes, path: Path) -> Any:
    """The tokenizer that was read from `path`."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise BothendsError(
            f"{path}: to read this tokenizer, pip install 'bothends[convert]'"
        ) from None
    try:
        return Tokenizer.from_str(content.decode())
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # a panic in its Rust code is no Exception
        raise BothendsError(f"{path}: damaged, not a tokenizer ({error})") from None
