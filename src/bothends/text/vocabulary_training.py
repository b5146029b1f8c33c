"""Train a vocabulary: a SentencePiece model of byte-pair encoding.

Three choices are ours, each can be changed:

- Byte fallback: a character that the vocabulary does not know is spelled in UTF-8 bytes, so there
  is no text that cannot be represented, and no unknown symbol in anybody's output. It costs 256
  entries. The rarest characters of the training text (`character_coverage`) are spelled in bytes
  as well, which is what gives the byte tokens something to learn from.
- Normalisation `nmt_nfkc`: the same letter typed in two ways (composed or not, full width or half)
  is the same token. The price is that `2` written as a superscript comes out as a plain `2`; where
  that matters, `identity` keeps every character.
- The ids of the special tokens are fixed: those of `SpecialTokens`.

Training is deterministic: the same lines give the same model file, byte for byte.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import sentencepiece

from bothends.errors import BothendsError, UsageError
from bothends.text.vocabulary import SPACE, SpecialTokens, Vocabulary

Normalisation = Literal["nmt_nfkc", "nfkc", "identity"]

#: SentencePiece stops the process at words of 65,536 characters, and a line of a script without
#: spaces is one word; longer lines are trained on in pieces.
_LONGEST_LINE = 2000


@dataclass(frozen=True)
class VocabularyOptions:
    """How a vocabulary is trained."""

    size: int = 32000
    #: if the text cannot fill `size`: an error instead of a smaller vocabulary
    exact: bool = True
    #: share of the text's characters that get an entry of their own
    character_coverage: float = 0.99999
    byte_fallback: bool = True
    normalisation: Normalisation = "nmt_nfkc"
    #: characters that get an entry of their own even if the text hardly has them
    required_characters: str = ""
    #: every digit is a token of its own, so that no number is rarer than its digits
    split_digits: bool = False

    def __post_init__(self) -> None:
        if self.size < 5:
            raise UsageError(
                f"vocabulary size {self.size}: too small, four entries are special tokens"
            )
        if self.size >= 1 << 31:  # SentencePiece counts in 32 bits
            raise UsageError(f"vocabulary size {self.size}: too large")
        if not 0.9 <= self.character_coverage <= 1.0:
            raise UsageError(f"character coverage {self.character_coverage:g}: expected 0.9 to 1")
        if self.normalisation not in get_args(Normalisation):
            raise UsageError(
                f"unknown normalisation {self.normalisation!r}; "
                f"known: {', '.join(get_args(Normalisation))}"
            )


def train_vocabulary(lines: Sequence[str], path: Path, options: VocabularyOptions) -> Vocabulary:
    """Train a vocabulary on `lines` and write it to `path`."""
    special = SpecialTokens()
    model = io.BytesIO()
    required = _normalised_characters(options)
    try:
        sentencepiece.SentencePieceTrainer.train(
            # SentencePiece insists that a required character occurs: a last line has all of them.
            sentence_iterator=_pieces_of_lines([*lines, " ".join(required)] if required else lines),
            model_writer=model,
            model_type="bpe",
            vocab_size=options.size,
            hard_vocab_limit=options.exact,
            character_coverage=options.character_coverage,
            byte_fallback=options.byte_fallback,
            normalization_rule_name=options.normalisation,
            required_chars=required,
            split_digits=options.split_digits,
            max_sentence_length=4 * _LONGEST_LINE,  # in bytes; a line beyond it would be ignored
            pad_id=special.pad,
            unk_id=special.unknown,
            bos_id=special.start,
            eos_id=special.end,
            num_threads=1,  # it is written into the model file
            minloglevel=2,
        )
    except RuntimeError as error:
        raise BothendsError(_explain(str(error), options)) from None
    vocabulary = Vocabulary(path, model.getvalue(), special)
    vocabulary.save(path)
    return vocabulary


def _normalised_characters(options: VocabularyOptions) -> str:
    """The required characters as the vocabulary will see them, each once, without white space."""
    normaliser = sentencepiece.SentencePieceNormalizer(rule_name=options.normalisation)
    characters: str = normaliser.normalize(" ".join(options.required_characters))
    return "".join(dict.fromkeys("".join(characters.replace(SPACE, " ").split())))


def _pieces_of_lines(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        for start in range(0, len(line), _LONGEST_LINE):
            yield line[start : start + _LONGEST_LINE]


def _explain(error: str, options: VocabularyOptions) -> str:
    """SentencePiece's internal error as a message for users."""
    if largest := re.search(r"Vocabulary size too high .* value <= (\d+)", error):
        return (
            f"vocabulary size {options.size} is too large for this text, which has material for "
            f"{largest[1]} entries: ask for {largest[1]} or fewer, or give more text"
        )
    if needed := re.search(r"smaller than required_chars\. \d+ vs (\d+)", error):
        bytes_too = ", the 256 bytes" if options.byte_fallback else ""
        return (
            f"vocabulary size {options.size} is too small: the special tokens{bytes_too} and the "
            f"characters of this text alone take {needed[1]}; ask for more, or for less character "
            f"coverage than {options.character_coverage:g}"
        )
    if "sentences_.empty()" in error:
        return "no text to train a vocabulary on: every line is empty"
    return f"SentencePiece could not train a vocabulary: {error}"
