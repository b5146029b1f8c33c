"""From a request's texts to their translations: documents around a batcher.

A document is read without a thread of its own that would wait for the model: reading it stops at
the sentences that are not translated yet. These are handed to the batcher, and the document is read
anew with what is known by then. Two or three readings do, and all texts of a request share them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

from bothends.documents import DocumentFormat, DocumentOptions, Glossary, translate_document
from bothends.documents.flows import checked_answers
from bothends.documents.options import DocumentReport
from bothends.documents.plain import is_one_sentence
from bothends.errors import BothendsError
from bothends.serve.batching import Batcher, Kind, Outcome, settle
from bothends.text.unknown_words import UnknownWords
from bothends.text.vocabulary import most_tokens
from bothends.translating.translation import Translation, TranslationOptions
from bothends.translator import Translator

#: Texts of so many characters are read by the event loop itself; longer ones would hold it up.
READ_AT_ONCE = 1_000
#: For the sizes of batches; a guess is as good there.
CHARACTERS_PER_TOKEN = 4
#: Readings of a document. Each translates something new; this is far more than any needs.
MAX_READINGS = 50


@dataclass(frozen=True)
class TranslateBatch:
    """The kind of batch that translates sentences: those of one model and the same options."""

    translator: Translator
    options: TranslationOptions

    def __call__(self, items: Sequence[str]) -> list[Translation]:
        return self.translator.translate_batch(items, self.options, split_sentences=False)

    def size(self, line: str) -> int:
        """About its tokens: to count them takes a millisecond of the event loop's time.

        Or those that its translation must have, if they are more: it takes as much memory then.
        """
        tokens = min(len(line) // CHARACTERS_PER_TOKEN, self.options.max_source_length)
        return max(tokens, self.options.min_length) + 2


@dataclass(frozen=True)
class TranslateFromDrafts:
    """The kind of batch that translates sentences greedily, each from a draft of its own."""

    translator: Translator
    options: TranslationOptions

    def __call__(self, items: Sequence[tuple[str, str]]) -> list[Translation]:
        options = replace(self.options, split_sentences=False)
        return [self.translator.translate(line, options, draft=draft) for line, draft in items]


@dataclass(frozen=True, eq=False)
class RunAlone:
    """The kind of batch that calls a function: it shares workers with others, but no batch."""

    function: Callable[[], Any]

    def __call__(self, items: Sequence[None]) -> list[Any]:
        return [self.function()]


@dataclass(frozen=True)
class TranslatedSentence:
    source: str
    translation: Translation


@dataclass(frozen=True)
class TranslatedText:
    """A text's translation, the sentences that were asked for it, and the report on it."""

    text: str
    sentences: tuple[TranslatedSentence, ...]
    report: DocumentReport
    #: the text made of the second hypothesis of each sentence, of the third, ...
    alternatives: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task:
    """What is to be translated, and how."""

    texts: Sequence[str]
    format: DocumentFormat
    options: TranslationOptions
    glossary: Glossary | None = None
    alternatives: int = 0
    #: of the sentences, in order: what their translations were before the text was edited
    drafts: Sequence[str] = ()


@dataclass
class _Reading:
    """A text while it is being read."""

    text: str
    sentences: dict[str, None] = field(default_factory=dict)  # in the order of the questions


class _UnknownError(Exception):
    """Sentences without a translation yet."""

    def __init__(self, sentences: list[str]) -> None:
        super().__init__()
        self.sentences = sentences


OnSentence = Callable[[TranslatedSentence], None]


async def translate_texts(
    batcher: Batcher,
    translator: Translator,
    task: Task,
    client: str,
    on_sentence: OnSentence = lambda sentence: None,
) -> list[TranslatedText]:
    """Translate the texts; `on_sentence` hears of each sentence as soon as it is there.

    If the task is cancelled, so is all its work that has not begun.
    """
    kind = TranslateBatch(translator, task.options)
    longest = translator.longest_sentence(task.options)
    drafts = iter(task.drafts)
    if task.glossary is None and task.format == "text" and len(task.texts) == 1:
        (text,) = task.texts
        plain = is_one_sentence(text) and not _unknown_words(translator)(text)
        if plain and most_tokens(text) <= longest:
            asked = await _ask(batcher, kind, [text], client, {}, on_sentence, drafts)
            return [_one_sentence(text, asked[text], task.alternatives)]
    options = document_options(translator, longest, task.glossary)
    readings = [_Reading(text) for text in task.texts]
    known: dict[str, Translation] = {}
    results: dict[int, TranslatedText] = {}
    long = sum(map(len, task.texts)) > READ_AT_ONCE or task.format in ("html", "markdown")
    for _ in range(MAX_READINGS):
        read = partial(_read_all, readings, results, known, task, options)
        unknown = await asyncio.to_thread(read) if long else read()
        if not unknown:
            return [results[index] for index in range(len(readings))]
        await _ask(batcher, kind, unknown, client, known, on_sentence, drafts)
    raise BothendsError("the document needs too many readings; send it in parts")


async def run_alone(batcher: Batcher, client: str, size: int, function: Callable[[], Any]) -> Any:
    """What a function returns that a worker of the batcher calls."""
    (future,) = _submit(batcher, RunAlone(function), [None], [size], client)
    try:
        return await future
    finally:
        future.cancel()


def deliver_to_event_loop(outcomes: Sequence[Outcome]) -> None:
    """Keep promises that are futures of one event loop, from another thread."""
    loop = cast("asyncio.Future[Any]", outcomes[0].promise).get_loop()
    loop.call_soon_threadsafe(settle, outcomes)


def _submit(
    batcher: Batcher, kind: Kind, items: Sequence[Any], sizes: Sequence[int], client: str
) -> list[asyncio.Future[Any]]:
    """Futures of this event loop, for a batcher that delivers to it."""
    create = asyncio.get_running_loop().create_future
    return batcher.submit_promises(kind, items, sizes, client, [create() for _ in items])


def document_options(
    translator: Translator, longest: int, glossary: Glossary | None
) -> DocumentOptions:
    """How documents are read for a model: its language, and sentences of at most so many tokens."""

    def length(text: str) -> int:
        most = most_tokens(text)
        # Counting takes longer than all else that is done for a short sentence.
        return most if most <= longest else len(translator.vocabularies.source.encode([text])[0])

    return DocumentOptions(
        language=translator.description.source_language,
        target_language=translator.description.target_language,
        unknown_words=_unknown_words(translator),
        glossary=glossary,
        max_length=longest,
        length=length,
    )


def _unknown_words(translator: Translator) -> UnknownWords:
    return UnknownWords(translator.vocabularies.source, translator.description.source_language)


def _one_sentence(text: str, translation: Translation, alternatives: int) -> TranslatedText:
    """What reading a text as a document would come to, if it is one sentence."""
    hypotheses = translation.hypotheses[: alternatives + 1] if alternatives else (translation,)
    first, *others = checked_answers([text] * len(hypotheses), [each.text for each in hypotheses])
    different = dict.fromkeys(each for each in others if each != first)
    sentences = (TranslatedSentence(text, translation),)
    return TranslatedText(first, sentences, DocumentReport(sentences=1), tuple(different))


def _read_all(
    readings: Sequence[_Reading],
    results: dict[int, TranslatedText],
    known: dict[str, Translation],
    task: Task,
    options: DocumentOptions,
) -> list[str]:
    """Read the texts that have no result yet; the sentences that are still unknown, each once."""
    unknown: dict[str, None] = {}
    for index, reading in enumerate(readings):
        if index in results:
            continue
        try:
            results[index] = _read(reading, known, task, options)
        except _UnknownError as error:
            unknown.update(dict.fromkeys(error.sentences))
    return list(unknown)


def _read(
    reading: _Reading, known: dict[str, Translation], task: Task, options: DocumentOptions
) -> TranslatedText:
    def translate(rank: int, sentences: Sequence[str]) -> list[str]:
        missing = [sentence for sentence in sentences if sentence not in known]
        reading.sentences.update(dict.fromkeys(sentences))
        if missing:
            raise _UnknownError(missing)
        ranked = (known[sentence].hypotheses for sentence in sentences)
        return [each[min(rank, len(each) - 1)].text for each in ranked]

    versions = [
        translate_document(reading.text, task.format, partial(translate, rank), options)
        for rank in range(task.alternatives + 1)
    ]
    first = versions[0]
    others = dict.fromkeys(each.text for each in versions[1:] if each.text != first.text)
    sentences = [TranslatedSentence(each, known[each]) for each in reading.sentences]
    return TranslatedText(first.text, tuple(sentences), first.report, tuple(others))


async def _ask(
    batcher: Batcher,
    kind: TranslateBatch,
    sentences: Sequence[str],
    client: str,
    known: dict[str, Translation],
    on_sentence: OnSentence,
    drafts: Iterator[str],
) -> dict[str, Translation]:
    """Have the sentences translated, from drafts if there are any, and add them to the known."""
    sizes = [kind.size(sentence) for sentence in sentences]
    pairs = list(zip(sentences, drafts, strict=False))  # stops at the shorter
    drafted = TranslateFromDrafts(kind.translator, kind.options)
    futures = [
        *_submit(batcher, drafted, pairs, sizes[: len(pairs)], client),
        *_submit(batcher, kind, sentences[len(pairs) :], sizes[len(pairs) :], client),
    ]
    try:
        for sentence, future in zip(sentences, futures, strict=True):
            known[sentence] = await future
            on_sentence(TranslatedSentence(sentence, known[sentence]))
        return known
    finally:
        for future in futures:
            future.cancel()  # no effect on what is done; the rest is not wanted any more
