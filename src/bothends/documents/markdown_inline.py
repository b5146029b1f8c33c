"""The inline content of Markdown as pieces, each with the characters that spell it.

markdown-it tells what inline markup there is, but not where. So its own rules are wrapped: each
reports the stretch that it consumed. Pieces then cover the content without a gap, and a document
can be changed in place instead of being written anew.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline, RuleFuncInlineType
from markdown_it.rules_inline import fragments_join
from markdown_it.rules_inline.state_inline import StateInline
from markdown_it.token import Token

from bothends.documents.html_scanner import OPAQUE_NAMES, VOID_NAMES
from bothends.documents.markdown_extensions import (
    OPAQUE,
    add_block_rules,
    add_inline_rule,
    role_of,
)
from bothends.documents.pieces import Atom, Close, New, Open, Piece, Text
from bothends.documents.raised import with_raised_opaque

#: Marks that GitHub and others know beyond CommonMark: footnotes, task boxes, alerts, emoji names.
_EXTENSIONS = re.compile(r"(\[\^[^\]\s]+\]:?|^\[[ xX]\](?=\s)|^\[![A-Z]+\]|:[a-z0-9_+-]+:)")
_TAG_NAME = re.compile(r"</?([A-Za-z][\w-]*)")
#: Blocks and tags deeper than this are text to the parser: it recurses.
_MAX_NESTING = 60


@dataclass
class _Event:
    """A stretch that a rule consumed, and its tokens; delimiters learn later what they are."""

    rule: str
    start: int
    end: int = 0
    #: what is inside a link's brackets
    label: tuple[int, int] | None = None
    tokens: list[Token] = field(default_factory=list)


class _RecordingParser(ParserInline):
    """The inline parser, with rules that report to the state's recorder, if it has one."""

    def __init__(self) -> None:
        super().__init__()
        add_inline_rule(self)
        for rule in self.ruler.get_all_rules():
            self.ruler.at(rule, self._reporting(rule))

    def _reporting(self, name: str) -> RuleFuncInlineType:
        index = self.ruler.get_all_rules().index(name)
        original = self.ruler.__rules__[index].fn

        def rule(state: StateInline, silent: bool) -> bool:
            events: list[_Event] | None = getattr(state, "events", None)
            if silent or events is None:
                return original(state, silent)
            count, before = len(events), len(state.tokens)
            event = _Event(name, state.pos)
            events.append(event)
            if not original(state, silent):
                del events[count:]
                return False
            event.end = state.pos
            event.tokens = state.tokens[before:] if name != "link" else []
            return True

        return rule

    def tokenize(self, state: StateInline) -> None:
        events: list[_Event] | None = getattr(state, "events", None)
        if events and events[-1].rule == "link" and events[-1].label is None:
            events[-1].label = (state.pos, state.posMax)
        super().tokenize(state)


def make_parser() -> MarkdownIt:
    """CommonMark with GitHub's tables and strikethrough, and extensions as opaque things."""
    parser = MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING})
    parser.inline = _RecordingParser()
    rules = ["text", "newline", "escape", "backticks", "strikethrough", "emphasis", "link", "image"]
    parser.inline.ruler.enableOnly([*rules, "autolink", "html_inline", "entity", OPAQUE])
    parser.enable(["table"])
    add_block_rules(parser)
    return parser


def inline_pieces(parser: MarkdownIt, content: str, env: dict[str, Any]) -> list[Piece]:
    """The pieces of an inline content; their raw texts concatenated are the content, but for
    references, whose label is spelled out so that their text may change."""
    state = StateInline(content, parser, env, [])
    events: list[_Event] = []
    state.events = events  # type: ignore[attr-defined]
    parser.inline.tokenize(state)
    for rule in parser.inline.ruler2.getRules(""):
        # Joining neighbours would overwrite which delimiters were used.
        if rule is not fragments_join:
            rule(state)
    pieces = _split_extensions(_Builder(content).build(events))
    return with_raised_opaque(_pair_html(pieces))


class _Builder:
    def __init__(self, content: str) -> None:
        self.content = content
        self.pieces: list[Piece] = []
        self.position = 0
        #: those that are open, each with how many pieces are before its text
        self.links: list[tuple[_Event, int]] = []

    def build(self, events: Sequence[_Event]) -> list[Piece]:
        for event in events:
            if event.start < self.position:  # inside a footnote's mark
                continue
            self._close_links(event.start)
            self._text(event.start)
            self._event(event)
        self._close_links(len(self.content) + 1)
        self._text(len(self.content))
        return self.pieces

    def _text(self, end: int) -> None:
        """Plain characters up to here, joined with those before."""
        text = self.content[self.position : end]
        self.position = max(end, self.position)
        if not text:
            return
        last = self.pieces[-1] if self.pieces else None
        if isinstance(last, Text) and last.text == last.raw:
            self.pieces[-1] = Text(last.text + text, last.raw + text)
        else:
            self.pieces.append(Text(text, text))

    def _close_links(self, position: int) -> None:
        while self.links and position >= self.links[-1][0].end:
            link, first = self.links.pop()
            start, end = link.label or (link.start + 1, link.end - 1)
            self._text(end)
            raw = self.content[end : link.end]
            stays = all(isinstance(piece, Atom) for piece in self.pieces[first:])
            if raw in ("]", "][]") and not stays:
                # The text is the link's name, which its translation would not be.
                raw = f"][{' '.join(self.content[start:end].split())}]"
            self.pieces.append(Close(raw))
            self.position = link.end

    def _event(self, event: _Event) -> None:
        raw = self.content[event.start : event.end]
        kinds = {token.type for token in event.tokens}
        if event.rule == "link" and raw.startswith("[^"):
            # A footnote whose text is a single word reads as a link in CommonMark.
            self.pieces.append(Atom(raw, "void"))
            self.position = event.end
            return
        if event.rule == "link":
            self.pieces.append(Open("["))
            self.links.append((event, len(self.pieces)))
            self.position = event.label[0] if event.label else event.start + 1
            return
        if event.rule in ("emphasis", "strikethrough"):
            self._delimiters(event)
            return
        if event.rule == "image":
            piece: Piece = Atom(raw, "void")
        elif "hardbreak" in kinds:
            piece = Atom(raw, "break")
        elif event.rule in ("entity", "escape"):
            piece = Text(event.tokens[-1].content, raw)
        elif event.rule == "html_inline":
            piece = Atom(raw, "break" if raw.lower().startswith("<br") else "void")
        elif event.rule == OPAQUE:
            piece = Atom(raw, role_of(raw))
        elif "code_inline" in kinds or event.rule == "autolink":
            piece = Atom(raw)
        else:  # text, a line break, or backticks that close nothing
            self._text(event.end)
            return
        self.pieces.append(piece)
        self.position = event.end

    def _delimiters(self, event: _Event) -> None:
        """Runs of `*`, `_` and `~`: each is text, or begins or ends a tag, or is half of `**`."""
        tokens: list[Token] = []
        width = 0
        for token in reversed(event.tokens):
            size = (
                2 if event.rule == "strikethrough" and width + 2 <= event.end - event.start else 1
            )
            if width + size > event.end - event.start:
                break
            tokens.insert(0, token)
            width += size
        half = ""
        for token in tokens:
            size = 2 if event.rule == "strikethrough" and token.tag == "s" else 1
            raw = self.content[self.position : self.position + size]
            if token.nesting == 1:
                self.pieces.append(Open(half + raw))
                half = ""
            elif token.nesting == -1:
                self.pieces.append(Close(raw))
            elif token.type == "text" and token.content == "":
                last = self.pieces[-1] if self.pieces else None
                if (
                    not half
                    and isinstance(last, Close)
                    and last.raw == raw
                    and not _odd(tokens, token)
                ):
                    self.pieces[-1] = Close(last.raw + raw)
                else:
                    half += raw
            else:
                self._text(self.position + size)
                continue
            self.position += size
        self._text(event.end)


def _odd(tokens: Sequence[Token], token: Token) -> bool:
    """Whether the half belongs to an opening that follows."""
    index = next(number for number, other in enumerate(tokens) if other is token)
    previous = tokens[index - 1] if index else None
    return previous is None or previous.type != "strong_close"


def _split_extensions(pieces: Sequence[Piece]) -> list[Piece]:
    split: list[Piece] = []
    for piece in pieces:
        if (
            not isinstance(piece, Text)
            or piece.raw != piece.text
            or not _EXTENSIONS.search(piece.text)
        ):
            split.append(piece)
            continue
        for number, part in enumerate(_EXTENSIONS.split(piece.text)):
            if part:
                split.append(Atom(part, "void") if number % 2 else Text(part, part))
    return split


def _pair_html(pieces: Sequence[Piece]) -> list[Piece]:
    """HTML tags that open and close properly nested become tags, code becomes opaque."""
    paired = list(pieces)
    stack: list[tuple[int, str]] = []  # index of an opening piece; name, or nothing for Markdown's
    for index, piece in enumerate(pieces):
        if isinstance(piece, Open):
            stack.append((index, ""))
        elif isinstance(piece, Close):
            while stack and stack[-1][1]:
                stack.pop()
            if stack:
                stack.pop()
        elif isinstance(piece, Atom) and (name := _TAG_NAME.match(piece.raw)):
            lower = name[1].lower()
            if piece.raw.startswith("</"):
                depth = len(stack)
                while depth and stack[depth - 1][1] and stack[depth - 1][1] != lower:
                    depth -= 1
                if depth and stack[depth - 1][1] == lower:
                    start = stack[depth - 1][0]
                    del stack[depth - 1 :]
                    paired[start], paired[index] = Open(pieces[start].raw), Close(piece.raw)  # type: ignore[union-attr]
            elif lower not in VOID_NAMES and not piece.raw.endswith("/>") and piece.role == "void":
                stack.append((index, lower))
    return _opaque_html(paired)


def _opaque_html(pieces: Sequence[Piece]) -> list[Piece]:
    kept: list[Piece] = []
    hidden: list[str] = []
    depth = 0
    for piece in pieces:
        if not depth:
            name = _TAG_NAME.match(piece.raw) if isinstance(piece, Open) else None
            if name is None or name[1].lower() not in OPAQUE_NAMES:
                kept.append(piece)
                continue
        depth += isinstance(piece, Open) - isinstance(piece, Close)
        hidden.append(piece.text if isinstance(piece, New) else piece.raw)
        if not depth:
            kept.append(Atom("".join(hidden)))
            hidden = []
    return kept
