"""Options and results of a translation.

Every option is declared once: those of the search in `SearchOptions`, the rest here. Methods and
commands take an options object, or its fields by name.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypedDict

from bothends.search.options import SearchOptions, check_whole_number
from bothends.text.arguments import check_choice, check_names

#: A batch's rows share each reading of the weights; with more rows than this makes, their own state
#: no longer stays in a core's cache, and a sentence takes longer, not shorter.
BATCH_TOKENS = 512
#: Tokens of a source or target that is scored. All its slots attend to each other at once, so that
#: memory grows with the square: 2,048 take some hundred megabytes.
MAX_SCORED_LENGTH = 2048


@dataclass(frozen=True)
class TranslationOptions(SearchOptions):
    """How lines are translated: options of the search, and of what comes before and after it.

    Attributes:
        beam: Beam size: hypotheses kept per line; 1 is greedy search.
        length_penalty: How much longer translations are preferred; 0 prefers short ones.
        normalisation: How a log probability becomes a score, `"google"` or `"mean"`.
        n_best: Hypotheses to return for each line, at most `beam`.
        min_length: Minimum length of a translation, in tokens.
        max_length: Maximum length, in tokens; `None` is twice the line's tokens and 20 more.
        deduplicate: Remove words and phrases that immediately repeat. `None` does so only where two
            strands meet, which both may write the same word there, and if the line itself repeats
            none.
        max_source_length: Tokens of a line that are translated; the rest is cut off.
        batch_tokens: Source tokens of a batch, padding included; a line counts for `min_length` at
            least.
        split_sentences: Translate the sentences of a line one by one, and join them again. Models
            are trained on one sentence a line; of several, they may translate only a part. `None`
            does so if the model translates; a summary is of all sentences of a line.
    """

    deduplicate: bool | None = None
    max_source_length: int = 512
    batch_tokens: int = BATCH_TOKENS
    split_sentences: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("max_source_length", "batch_tokens"):
            check_whole_number(name, getattr(self, name), 1)
        for name in ("deduplicate", "split_sentences"):
            check_choice(name, getattr(self, name), undecided=True)

    @classmethod
    def build(cls, options: TranslationOptions | None, changes: Any) -> TranslationOptions:
        """`options`, or the defaults, with some fields changed. An unknown name is a TypeError."""
        if not isinstance(options, cls | None):
            raise TypeError(
                f"expected {cls.__name__} or its fields by name, such as beam=1, not "
                f"{type(options).__name__}"
            )
        check_names("translation", changes, (field.name for field in fields(cls)))
        return replace(options or cls(), **changes)

    def decided(self, task: str) -> TranslationOptions:
        """The same options for a model of this task, with nothing left open."""
        if self.split_sentences is not None:
            return self
        return replace(self, split_sentences=splits_lines(task))


def splits_lines(task: str) -> bool:
    """Whether a line is split into its sentences, unless an option says otherwise.

    A summary is of all sentences of a line.
    """
    return task == "translation"


class OptionFields(TypedDict, total=False):
    """The fields of `TranslationOptions` as keyword arguments, for type checkers."""

    beam: int
    length_penalty: float
    normalisation: Literal["google", "mean"]
    n_best: int
    min_length: int
    max_length: int | None
    deduplicate: bool | None
    max_source_length: int
    batch_tokens: int
    split_sentences: bool | None


@dataclass(frozen=True)
class Translation:
    """A line's translation, the best one or one of `hypotheses`. An empty line has an empty one.

    Attributes:
        text: The translation, one line.
        score: `logprob` after length normalisation: hypotheses are ranked by it.
        logprob: Log probability of exactly these tokens, and of the end symbol if `finished`, given
            the line. Repeated words that were removed still count.
        tokens: Ids in the target vocabulary, in text order, without the end symbol.
        pieces: The same tokens as the vocabulary spells them, `▁` for a space.
        steps: Decoder steps that it took.
        steps_saved: Steps that a draft saved; negative if it cost more than it saved.
        finished: False if it was cut at the length limit, without an end symbol.
        truncated: True if the line was longer than `max_source_length`: its end is not translated.
        time: Seconds that its batch took.
        source_tokens: Ids of the whole line in the source vocabulary, without an end symbol.
        source_pieces: The same tokens as the vocabulary spells them.
        sentences: Sentences that were translated one by one; 0 for an empty line.
        short: True if it is much shorter than its source, by the lengths of the text that the model
            learned from: it may lack a part. Always False if those are not known.
        next_best: The hypotheses after this one, if `n_best` asked for more.
        dropped: Where repeated words were removed: places of their tokens in the text before.
    """

    text: str
    score: float
    logprob: float
    tokens: tuple[int, ...]
    pieces: tuple[str, ...]
    steps: int
    finished: bool
    truncated: bool
    time: float
    source_tokens: tuple[int, ...] = ()
    source_pieces: tuple[str, ...] = ()
    sentences: int = 1
    short: bool = False
    next_best: tuple[Translation, ...] = ()
    steps_saved: int = 0
    dropped: tuple[int, ...] = ()

    @property
    def hypotheses(self) -> tuple[Translation, ...]:
        """The `n_best` translations of the line, this one first."""
        return (self, *self.next_best)


#: The translation of an empty line; the network is not run for it.
EMPTY = Translation(
    text="",
    score=0.0,
    logprob=0.0,
    tokens=(),
    pieces=(),
    steps=0,
    finished=True,
    truncated=False,
    time=0.0,
    sentences=0,
)
