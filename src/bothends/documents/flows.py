"""Flows translated: split into sentences, asked in few large calls, put together again.

Two rounds of questions do for any document: sentences as they are, with placeholders for what must
not change; then those whose placeholders or tags did not come back well, piece by piece around
them. A sentence that comes back unchanged keeps its source to the letter.
"""

# Marks of other scripts look like ours to the linter.
# ruff: noqa: RUF001

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from bothends.documents.cutting import FlowCutter
from bothends.documents.glossary import count_term
from bothends.documents.options import DocumentOptions, DocumentReport, Translate
from bothends.documents.pieces import Close, Flow, New, Open, Piece, Text
from bothends.documents.placement import UnplaceableError
from bothends.documents.sentence_units import (
    Item,
    SentenceRequest,
    Thing,
    has_words,
    is_words,
    join_spaces,
    source_pieces,
    without_terms,
)
from bothends.errors import BothendsError
from bothends.text.sentences import OBJECT

#: What a run may end with that a sentence ends with.
_ENDS = (*".!?…:;", "")
#: Marks that a run of text between two things may begin and end with.
_BEFORE = " \t\r\n\u00a0)]},;:.!?/+&|–—-"
_AFTER = " \t\r\n\u00a0([{,;:/+&|–—-"


@dataclass
class _Sentence:
    """A sentence on its way."""

    items: list[Item]
    #: with glossary terms masked, if there are any; and with all terms as text
    masked: SentenceRequest | None = None
    plain: SentenceRequest | None = None
    #: its translation, once known
    pieces: list[Piece] | None = None
    targets: list[tuple[str, str]] = field(default_factory=list)


class FlowTranslator:
    """Translates the flows of one document and keeps its report."""

    def __init__(
        self,
        translate: Translate,
        options: DocumentOptions,
        report: DocumentReport,
        protect: Collection[str],
    ) -> None:
        self._translate = translate
        self._options = options
        self._report = report
        self._cutter = FlowCutter(options, report, protect)
        self._known: dict[str, str] = {}

    def translate(
        self, flows: Sequence[Flow], *, whole: bool = False, in_pieces: bool = False
    ) -> list[list[Piece]]:
        """The flows translated, in order; with `whole`, each is one sentence.

        With `in_pieces`, the text between tags is translated alone: for flows that were
        translated before, but whose tags a format could not write where they were placed.
        """
        cut = [self._cut(flow, whole, counted=not in_pieces) for flow in flows]
        sentences = [part for parts in cut for part in parts if isinstance(part, _Sentence)]
        if not in_pieces:
            self._ask(self._first_questions(sentences))
            for sentence in sentences:
                self._settle(sentence)
        failed = [sentence for sentence in sentences if sentence.pieces is None]
        self._ask([text for sentence in failed for text in self._pieces_to_ask(sentence.items)])
        for sentence in failed:
            sentence.pieces = self._in_pieces(sentence)
        return [
            [
                piece
                for part in parts
                for piece in (part.pieces or [] if isinstance(part, _Sentence) else part)
            ]
            for parts in cut
        ]

    def _cut(self, flow: Flow, whole: bool, counted: bool) -> list[_Sentence | list[Piece]]:
        """Sentences, and the pieces between them."""
        parts = self._cutter.cut(flow, whole, counted)
        return [
            _Sentence(items) if number % 2 else source_pieces(items)
            for number, items in enumerate(parts)
        ]

    # Questions

    def _ask(self, texts: Sequence[str]) -> None:
        new = [text for text in dict.fromkeys(texts) if text and text not in self._known]
        if not new:
            return
        self._learn(new, self._translate(new))

    def _learn(self, texts: Sequence[str], answers: Sequence[str]) -> None:
        self._known.update(zip(texts, checked_answers(texts, answers), strict=True))

    def _first_questions(self, sentences: Sequence[_Sentence]) -> list[str]:
        style = self._options.placeholders
        texts: list[str] = []
        constrained: dict[str, tuple[str, ...]] = {}
        for sentence in sentences:
            items = sentence.items
            sentence.targets = [
                (item.term, item.target)
                for item in items
                if isinstance(item, Thing) and item.target is not None
            ]
            if not has_words(items):
                continue
            sentence.plain = SentenceRequest(without_terms(items), style)
            if sentence.targets and self._options.translate_with is not None:
                targets = tuple(target for _, target in sentence.targets)
                if sentence.plain.possible:
                    constrained.setdefault(sentence.plain.text, targets)
            elif sentence.targets:
                sentence.masked = SentenceRequest(items, style)
            for request in (sentence.plain, sentence.masked):
                if request is not None and request.possible:
                    texts += [request.text, *request.hints()]
        if constrained and self._options.translate_with is not None:
            answers = self._options.translate_with(list(constrained), list(constrained.values()))
            self._learn(list(constrained), answers)
        return texts

    # Answers

    def _settle(self, sentence: _Sentence) -> None:
        """Choose the answer that keeps everything, if there is one."""
        if sentence.plain is None:
            # Nothing to translate, unless a glossary says so.
            sentence.pieces = self._in_pieces(sentence, counted=False)
            return
        plain = self._answer(sentence.plain)
        honoured = plain is not None and not self._missing(sentence, plain[0])
        masked = None
        if sentence.masked is not None and not honoured:
            masked = self._answer(sentence.masked)
        chosen = masked or plain
        if chosen is None:
            return
        sentence.pieces, guessed = chosen
        missing = [] if masked else self._missing(sentence, sentence.pieces)
        self._count_terms(sentence, missing)
        self._report.unplaced_tags += guessed

    def _answer(self, request: SentenceRequest) -> tuple[list[Piece], int] | None:
        if not request.possible:
            return None
        answer = self._known.get(request.text, "")
        if answer == request.text and all(thing.target is None for thing in request.things):
            return source_pieces(request.items), 0
        try:
            return request.answer(answer, self._known)
        except UnplaceableError:
            return None

    def _missing(self, sentence: _Sentence, pieces: Sequence[Piece]) -> list[tuple[str, str]]:
        """The terms of a sentence that its translation uses less often than the source."""
        text = "".join(piece.text for piece in pieces if isinstance(piece, (New, Text)))
        missing = []
        for term, target in dict.fromkeys(sentence.targets):
            wanted = sentence.targets.count((term, target))
            missing += [(term, target)] * max(0, wanted - count_term(text, target))
        return missing

    def _count_terms(self, sentence: _Sentence, missing: Sequence[tuple[str, str]]) -> None:
        self._report.glossary_misses += len(missing)
        self._report.glossary_hits += len(sentence.targets) - len(missing)
        for term, _ in missing:
            self._report.missed_terms[term] = self._report.missed_terms.get(term, 0) + 1

    # Piece by piece

    def _pieces_to_ask(self, items: Sequence[Item]) -> list[str]:
        return [join_spaces(_core(run)[1]) for run in _runs(items) if is_words(run)]

    def _in_pieces(self, sentence: _Sentence, counted: bool = True) -> list[Piece]:
        """The text between things and tags translated alone; everything else stays in place."""
        if counted:
            self._report.fallbacks += any(isinstance(item, Thing) for item in sentence.items)
            self._report.unplaced_tags += sum(isinstance(item, Open) for item in sentence.items)
        self._count_terms(sentence, [])
        pieces: list[Piece] = []
        run: list[Text] = []
        for item in [*sentence.items, None]:
            if isinstance(item, Text):
                run.append(item)
                continue
            pieces += self._run(run)
            run = []
            if isinstance(item, Thing):
                pieces += item.pieces if item.target is None else [New(item.target)]
            elif item is not None:
                pieces.append(item)
        return pieces

    def _run(self, run: Sequence[Text]) -> list[Piece]:
        before, text, after = _core("".join(piece.text for piece in run))
        asked = join_spaces(text)
        answer = self._known.get(asked, "") if is_words(text) else asked
        if answer == asked:
            return list(run)
        if asked[-1:] not in _ENDS and answer[-1:] in ".!":
            # Models like to end what they are given; here the sentence goes on.
            answer = answer.rstrip(".!") or answer
        return [New(before + answer + after)]


def _core(run: str) -> tuple[str, str, str]:
    """A run without the spaces and marks at its edges, which belong to what is beside it."""
    start = len(run) - len(run.lstrip(_BEFORE))
    end = max(start, len(run.rstrip(_AFTER)))
    return run[:start], run[start:end], run[end:]


def checked_answers(texts: Sequence[str], answers: Sequence[str]) -> list[str]:
    """The translations of all texts, each on one line."""
    if len(answers) != len(texts):
        raise BothendsError(
            f"the translator answered {len(answers)} of {len(texts)} sentences: expected all"
        )
    # An object mark would be taken for something opaque.
    return [" ".join(answer.replace(OBJECT, "").split()) for answer in answers]


def _runs(items: Sequence[Item]) -> list[str]:
    """The text between things and tags."""
    runs = [""]
    for item in items:
        if isinstance(item, Text):
            runs[-1] += item.text
        elif isinstance(item, (Thing, Open, Close)):
            runs.append("")
    return runs
