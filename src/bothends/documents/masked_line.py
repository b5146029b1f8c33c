"""A line with placeholders for its protected spans, for whoever translates line by line.

`translate_document` asks its own questions; here somebody else translates the masked line, along
with others that have nothing to protect, and brings the answer back.
"""

from __future__ import annotations

from dataclasses import replace

from bothends.documents.cutting import FlowCutter
from bothends.documents.options import DocumentOptions, DocumentReport, FindSpans
from bothends.documents.pieces import Text
from bothends.documents.plain import write_text
from bothends.documents.protected import ALL_KINDS
from bothends.documents.sentence_units import (
    Item,
    SentenceRequest,
    Thing,
    has_words,
    is_words,
    source_pieces,
)

_OPTIONS = DocumentOptions()


class MaskedLine:
    """What a model is asked for a line, and the line that its answer makes."""

    def __init__(self, line: str, before: list[Item], items: list[Item], after: list[Item]) -> None:
        self.line = line
        self._around = before, after
        self._request = SentenceRequest(items, _OPTIONS.placeholders) if has_words(items) else None
        #: empty if there is nothing to ask
        self.text = self._request.text if self._request else ""

    def answer(self, translation: str) -> str | None:
        """The translated line; None if spans are lost or repeated."""
        if self._request is None:
            return self.line.strip()
        answer = self._request.answer(translation, {}) if self._request.possible else None
        if answer is None:
            return None
        before, after = map(source_pieces, self._around)
        return write_text([*before, *answer[0], *after]).strip()


def mask_line(line: str, unknown_words: FindSpans | None = None) -> MaskedLine | None:
    """The line with placeholders; None if it has words, and nothing to protect."""
    options = replace(_OPTIONS, unknown_words=unknown_words)
    cutter = FlowCutter(options, DocumentReport(), ALL_KINDS)
    before, *parts = cutter.cut([Text(line, line)], whole=True, counted=False)
    items, after = parts or ([], [])
    if is_words(line) and not any(isinstance(item, Thing) for item in (*before, *items, *after)):
        return None
    return MaskedLine(line, before, items, after)
