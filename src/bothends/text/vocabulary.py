"""Text to token ids and back: SentencePiece models, one for both sides or one for each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import sentencepiece

from bothends.errors import BothendsError
from bothends.files import write_atomically
from bothends.order import BoolArray
from bothends.storage.checked import Checked
from bothends.storage.digests import check_content

#: Files of a model or corpus directory: one vocabulary for both sides, or one for each.
VOCABULARY = "sentencepiece.model"
SOURCE_VOCABULARY = "sentencepiece.source.model"
TARGET_VOCABULARY = "sentencepiece.target.model"

Side = Literal["source", "target"]

#: What SentencePiece writes for a space.
SPACE = "\u2581"

#: What ends a line somewhere: a byte token can stand for one, but decoded text is one line.
LINE_BREAKS = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
#: What byte tokens can spell and no text has: U+FFFD for bytes of half a character, and control
#: characters but the tab. One that stands alone leaves one space.
_NO_TEXT = "\ufffd\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f"
_LEFT_OUT = re.compile(f" [{_NO_TEXT}]+(?= )|[{_NO_TEXT}]+")

#: Lines from which on it pays to start threads that encode them.
_WORTH_THREADS = 1000
#: Lines up to which SentencePiece is called for each: for a list, it starts a thread even if one is
#: enough, which takes as long as five lines, and far longer on a busy machine.
_ONE_BY_ONE = 8


def vocabulary_name(side: Side | None) -> str:
    """The file of one side's vocabulary in a converted model, or of one for both."""
    return f"vocabulary.{side}.json" if side else "vocabulary.json"


_SIDES: tuple[Side | None, ...] = (None, "source", "target")
#: Every file that a converted model's vocabularies may have.
FOREIGN_FILES = tuple(
    name
    for side in _SIDES
    for name in (vocabulary_name(side), vocabulary_name(side).replace(".json", ".model"))
)


@dataclass(frozen=True, kw_only=True)
class SpecialTokens(Checked):
    """Ids of the tokens that are not text. `start` may equal `pad`, as in Marian's models."""

    pad: int = 0
    unknown: int = 1
    start: int = 2
    end: int = 3

    @property
    def ids(self) -> tuple[int, ...]:
        return self.pad, self.unknown, self.start, self.end


class TextVocabulary(Protocol):
    """A vocabulary, whichever library tokenises the text."""

    def __hash__(self) -> int: ...

    @property
    def path(self) -> Path: ...

    @property
    def special(self) -> SpecialTokens: ...

    @property
    def size(self) -> int: ...

    @property
    def model(self) -> bytes:
        """What tells two vocabularies apart."""
        ...

    def encode(self, lines: Sequence[str], threads: int = 1) -> list[list[int]]:
        """Ids of each line, text only: no start, no end."""
        ...

    def decode(self, sequences: Sequence[Iterable[int]]) -> list[str]:
        """Text of each sequence, always one line."""
        ...

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The entry behind each id (`▁` is a space)."""
        ...

    def encode_inside(self, text: str) -> list[int]:
        """Ids of a text that goes on without a space before it."""
        ...

    def contents(self) -> Mapping[Path, bytes]:
        """The files that it was loaded from."""
        ...

    @property
    def starts_word(self) -> BoolArray:
        """`(V,)`: does this piece begin with a space?"""
        ...

    def save_side(self, directory: Path, side: Side | None) -> None:
        """Write the files of one side's vocabulary, or of one for both sides."""
        ...


class Vocabulary:
    """One SentencePiece model. Safe to share between threads: nothing changes after loading."""

    def __init__(self, path: Path, model: bytes, special: SpecialTokens) -> None:
        self.path = path
        self.special = special
        self.model = model
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        except (RuntimeError, UnicodeDecodeError):  # the latter quotes what it cannot read
            raise BothendsError(f"{path}: damaged, or not a SentencePiece model") from None
        self.size: int = self._processor.get_piece_size()
        found = {
            "pad": self._processor.pad_id(),
            "unknown": self._processor.unk_id(),
            "start": self._processor.bos_id(),
            "end": self._processor.eos_id(),
        }
        if found != special.dump():
            raise BothendsError(
                f"{path}: special tokens {_spell(found)}, expected {_spell(special.dump())} "
                "(-1: there is none); train it with `bothends prepare`, or by SentencePiece with "
                "--pad_id=0 --unk_id=1 --bos_id=2 --eos_id=3"
            )

    @classmethod
    def load(cls, path: Path, special: SpecialTokens | None = None) -> Vocabulary:
        """The model in file `path`, whose special tokens must be `special` (ours by default)."""
        path = Path(path)
        try:
            model = path.read_bytes()
        except FileNotFoundError:
            raise BothendsError(f"{path}: no such vocabulary (a SentencePiece model)") from None
        except OSError as error:
            raise BothendsError(f"{path}: cannot read the vocabulary: {error.strerror}") from None
        check_content(path, model)
        if not model:  # SentencePiece takes nothing for a model
            raise BothendsError(f"{path}: damaged, the SentencePiece model is empty")
        return cls(path, model, special or SpecialTokens())

    def encode(self, lines: Sequence[str], threads: int = 1) -> list[list[int]]:
        """Ids of each line, text only: no start, no end."""
        lines = list(lines)
        if len(lines) < _WORTH_THREADS:
            threads = 1
        try:
            return self._encode(lines, threads)
        except (TypeError, UnicodeError, RuntimeError):  # which one depends on how it is called
            return self._encode(list(map(_without_surrogates, lines)), threads)

    def _encode(self, lines: list[str], threads: int) -> list[list[int]]:
        encode = self._processor.encode
        if len(lines) <= _ONE_BY_ONE:
            return [encode(line, out_type=int) for line in lines]
        return encode(lines, out_type=int, num_threads=threads)  # type: ignore[no-any-return]

    def decode(self, sequences: Sequence[Iterable[int]]) -> list[str]:
        """Text of each sequence, always one line; special tokens are silent, but for `unknown`."""
        if not len(sequences):
            return []
        ids = [[int(token) for token in sequence] for sequence in sequences]
        decode = self._processor.decode
        try:
            one_by_one = len(ids) <= _ONE_BY_ONE
            texts = [decode(each) for each in ids] if one_by_one else decode(ids, num_threads=1)
        except UnicodeDecodeError:  # pieces are checked when it is loaded, but not what it adds
            raise BothendsError(
                f"{self.path}: damaged, the SentencePiece model writes what is no text"
            ) from None
        return list(map(clean_decoded, texts))

    def encode_inside(self, text: str) -> list[int]:
        """Ids of a text that goes on without a space before it: the rest of a word, a full stop."""
        return self._inside.encode(_without_surrogates(text), out_type=int)  # type: ignore[no-any-return]

    @cached_property
    def _inside(self) -> sentencepiece.SentencePieceProcessor:
        # One of its own: the setting is for good, and `encode` must not see it.
        processor = sentencepiece.SentencePieceProcessor(model_proto=self.model)
        processor.override_normalizer_spec(add_dummy_prefix=False)
        return processor

    @cached_property
    def starts_word(self) -> BoolArray:
        """`(V,)`: does this piece begin with a space?"""
        starts = np.array([piece.startswith(SPACE) for piece in self.pieces(range(self.size))])
        starts.flags.writeable = False
        return starts

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The entry behind each id, as the vocabulary spells it (`▁` is a space)."""
        return [self._processor.id_to_piece(int(token)) for token in ids]

    def contents(self) -> Mapping[Path, bytes]:
        return {self.path: self.model}

    def save(self, path: Path) -> None:
        """Write the model file, whole or not at all."""
        write_atomically(path, self.model)

    def save_side(self, directory: Path, side: Side | None) -> None:
        names = {None: VOCABULARY, "source": SOURCE_VOCABULARY, "target": TARGET_VOCABULARY}
        self.save(Path(directory) / names[side])


def _without_surrogates(text: str) -> str:
    """Half a surrogate pair, as in JSON's "\\ud83d", is no character and has no UTF-8."""
    return text.encode("utf-8", "replace").decode()


def most_tokens(text: str) -> int:
    """At least as many tokens as any vocabulary makes of a text: to count them takes long.

    One for a character of ASCII, and one for the beginning. Others become more characters, which
    become bytes: `\ufdfa`, of three bytes, becomes 33.
    """
    return 1 + len(text) + 16 * (len(text.encode("utf-8", "replace")) - len(text))


def clean_decoded(text: str) -> str:
    """Decoded text as one line, without what is no text."""
    return _LEFT_OUT.sub("", LINE_BREAKS.sub(" ", text))


@dataclass(frozen=True)
class Vocabularies:
    """The vocabularies of a model, the same object twice where they are joint."""

    source: TextVocabulary
    target: TextVocabulary

    @property
    def joint(self) -> bool:
        return self.source is self.target

    @property
    def same_ids(self) -> bool:
        """Whether an entry has the same id on both sides, even if text is cut in two ways."""
        return self.joint or (
            self.source.size == self.target.size
            and type(self.source) is type(self.target)
            and not isinstance(self.source, Vocabulary)
            and self.source.pieces(range(self.source.size))
            == self.target.pieces(range(self.target.size))
        )

    @classmethod
    def load(cls, directory: Path, special: SpecialTokens | None = None) -> Vocabularies:
        """Those of a model directory or a prepared corpus."""
        directory = Path(directory)
        if (directory / VOCABULARY).is_file():
            joint = Vocabulary.load(directory / VOCABULARY, special)
            return cls(joint, joint)
        if foreign := cls._load_foreign(directory, special):
            return foreign
        names = (SOURCE_VOCABULARY, TARGET_VOCABULARY)
        present = [name for name in names if (directory / name).is_file()]
        if not present:
            raise BothendsError(
                f"{directory}: no vocabulary, expected {VOCABULARY} or {' and '.join(names)}"
            )
        return cls(*(Vocabulary.load(directory / name, special) for name in names))

    @classmethod
    def _load_foreign(cls, directory: Path, special: SpecialTokens | None) -> Vocabularies | None:
        """Those of a converted model, if `directory` has them."""
        from bothends.text.foreign import ForeignVocabulary

        if (directory / vocabulary_name(None)).is_file():
            joint = ForeignVocabulary.load(directory / vocabulary_name(None))
            found = cls(joint, joint)
        elif (directory / vocabulary_name("source")).is_file():
            names = vocabulary_name("source"), vocabulary_name("target")
            found = cls(*(ForeignVocabulary.load(directory / name) for name in names))
        else:
            return None
        for vocabulary in (found.source, found.target):
            # Each side may spell an unknown word in its own way, and a student may start with
            # the token that its teacher was prompted with.
            theirs, asked = vocabulary.special, special or vocabulary.special
            if (theirs.pad, theirs.end) != (asked.pad, asked.end):
                raise BothendsError(
                    f"{vocabulary.path}: special tokens {_spell(theirs.dump())}, but the "
                    f"model has {_spell(asked.dump())}: it is another model's vocabulary"
                )
        return found

    def save(self, directory: Path) -> None:
        """Write the files into `directory`, each whole or not at all."""
        if self.joint:
            self.source.save_side(directory, None)
        else:
            self.source.save_side(directory, "source")
            self.target.save_side(directory, "target")


def _spell(special: dict[str, int]) -> str:
    return " ".join(f"{name}={token}" for name, token in special.items())
