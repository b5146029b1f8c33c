"""Markdown: running text is translated in place; all the rest stays to the letter.

markdown-it finds the blocks; a block's text is replaced in its lines. What a translation must not
change is checked by parsing: a block whose inline markup would differ is translated in pieces, and
if that does not help, kept. Finally the whole document must parse to the same skeleton.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from markdown_it.token import Token

from bothends.documents.flows import FlowTranslator
from bothends.documents.html import MAX_DEPTH, html_parts, html_skeleton
from bothends.documents.html_attributes import respell_attributes
from bothends.documents.html_text import write_html
from bothends.documents.markdown_attributes import ImageAndLinkTexts
from bothends.documents.markdown_inline import inline_pieces, make_parser
from bothends.documents.markdown_writing import write_markdown
from bothends.documents.options import DocumentOptions, DocumentReport
from bothends.documents.pieces import Atom, Flow, New, Piece, Text, merge_new

_FRONT_MATTER = re.compile(
    r"\A\ufeff?(?:---[ \t]*\r?\n(?:(?!---)[^\n]*\n){0,1000}?(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)"
    r"|\+\+\+[ \t]*\r?\n(?:(?!\+\+\+)[^\n]*\n){0,1000}?\+\+\+[ \t]*(?:\r?\n|\Z))"
)
_LINE_END = re.compile(r"(\r\n|\r|\n)")
#: How often a document whose blocks changed is mended block by block, before all is kept.
_REPAIRS = 20


@dataclass
class _Block:
    """A block's text, and the stretches of the lines that spell it."""

    content: str
    env: dict[str, Any]
    flow: list[Piece]
    #: line, first column and end column of each line of the content
    places: list[tuple[int, int, int]]
    kind: Literal["text", "cell", "html"]
    new: str | None = None


def translate_markdown(
    text: str, translator: FlowTranslator, options: DocumentOptions, report: DocumentReport
) -> str:
    """Translate the running text of a Markdown document."""
    front = _FRONT_MATTER.match(text)
    head = front[0] if front else ""
    document = _Document(text[len(head) :], report)
    texts = ImageAndLinkTexts()
    if options.attributes:
        for block in document.blocks:
            texts.note(block.flow)
    flows = [*(block.flow for block in document.blocks), *texts.flows()]
    translated = translator.translate(flows)
    texts.learn(translated[len(document.blocks) :])
    pending = document.write_all(document.blocks, translated, texts)
    translated = translator.translate([block.flow for block in pending], in_pieces=True)
    pending = document.write_all(pending, translated, texts)
    for block in pending:
        block.new = block.content
    report.kept_blocks += len(pending)
    return head + document.finish()


class _Document:
    """The lines of a document, its blocks, and the parser that judges them."""

    def __init__(self, text: str, report: DocumentReport) -> None:
        parts = _LINE_END.split(text)
        self.lines, self.ends = parts[::2], [*parts[1::2], ""]
        self.report = report
        self.parser = make_parser()
        self.env: dict[str, Any] = {}
        self.tokens = self._parse("\n".join(self.lines), self.env)
        self.blocks: list[_Block] = []
        row: tuple[int, int] = (-1, 0)  # line of the last cell, and the column where it ended
        for index, token in enumerate(self.tokens):
            if token.type == "html_block":
                self.blocks += self._html_runs(token)
            if token.type != "inline" or token.map is None or not token.content.strip():
                continue
            is_cell = self.tokens[index - 1].type in ("th_open", "td_open")
            if is_cell:
                line = token.map[0]
                places = self._cell(line, token.content, row[1] if row[0] == line else 0)
                row = (line, places[0][2] if places else row[1])
            else:
                places = self._lines_of(token)
            if not places:
                self.report.kept_blocks += 1
                continue
            flow = inline_pieces(self.parser, token.content, self.env)
            kind: Literal["text", "cell"] = "cell" if is_cell else "text"
            self.blocks.append(_Block(token.content, self.env, flow, places, kind))

    def _parse(self, text: str, env: dict[str, Any]) -> list[Token]:
        return self.parser.parse(text, env)

    def _lines_of(self, token: Token) -> list[tuple[int, int, int]]:
        """Where each line of the content stands in the source; nothing if it cannot be told."""
        places = []
        first = (token.map or [0])[0]
        for number, line in enumerate(token.content.split("\n"), start=first):
            source = self.lines[number] if number < len(self.lines) else ""
            start = source.rfind(line)
            if start < 0 or not re.fullmatch(r"\s*#*\s*", source[start + len(line) :]):
                return []
            places.append((number, start, start + len(line)))
        return places

    def _html_runs(self, token: Token) -> list[_Block]:
        """The running text of an HTML block that stands in no list or quote."""
        first, end = token.map or [0, 0]
        content = token.content.removesuffix("\n")
        if self.lines[first:end][: content.count("\n") + 1] != content.split("\n"):
            return []
        parts, depth = html_parts(content)
        if depth > MAX_DEPTH:  # too deep to be judged
            return []
        blocks = []
        line, column = first, 0
        for part in parts:
            source = part if isinstance(part, str) else part.source
            places = []
            for number, text in enumerate(source.split("\n")):
                line, column = (line + 1, 0) if number else (line, column)
                places.append((line, column, column + len(text)))
                column += len(text)
            if not isinstance(part, str):
                blocks.append(_Block(source, self.env, part.pieces, places, "html"))
        return blocks

    def _cell(self, line: int, content: str, after: int) -> list[tuple[int, int, int]]:
        source = self.lines[line]
        spelled = content.replace("|", "\\|")
        pattern = re.compile(rf"(?:(?<=[\s|])|^){re.escape(spelled)}(?=\s*(?:\||$))")
        match = pattern.search(source, after)
        return [(line, match.start(), match.end())] if match else []

    def write_all(
        self,
        blocks: Sequence[_Block],
        translated: Sequence[Sequence[Piece]],
        texts: ImageAndLinkTexts,
    ) -> list[_Block]:
        """Set the new content of blocks, and return those that would not parse as before."""
        for block, pieces in zip(blocks, translated, strict=False):
            # A title that does not fit is no reason to leave the text as it is.
            block.new = self.write(block, texts.written(pieces)) or self.write(block, pieces)
        return [block for block in blocks if block.new is None]

    def write(self, block: _Block, pieces: Sequence[Piece]) -> str | None:
        """The content with its translation; None if it would not parse as before."""
        if _is_same(block.flow, pieces):
            return block.content
        merged = merge_new(pieces)
        if block.kind == "html":
            return write_html(merged)  # the whole document is judged in the end
        content = write_markdown(merged)
        if content.count("\n") >= len(block.places):
            return None
        tokens = self.parser.parseInline(content, block.env)[0].children or []
        old = self.parser.parseInline(block.content, block.env)[0].children or []
        same = _canonical(tokens) == _canonical(old)
        return content if same and _visible(tokens) == self._text_of(merged) else None

    def _text_of(self, pieces: Sequence[Piece]) -> str:
        """The characters that a parser should find in these pieces."""
        parts = []
        for piece in pieces:
            if isinstance(piece, (New, Text)):
                parts.append(piece.text)
            elif isinstance(piece, Atom):
                inside = self.parser.parseInline(piece.raw, self.env)[0].children or []
                parts.append(_visible(inside))
        return "".join("".join(parts).split())

    def finish(self) -> str:
        """The document with all blocks replaced, if it still has its skeleton."""
        for _ in range(_REPAIRS):
            text = self._assembled()
            line = self._first_difference(text)
            if line is None:
                return self._with_ends(text)
            culprit = self._changed_near(line)
            if culprit is None:
                break
            culprit.new = culprit.content
            self.report.kept_blocks += 1
        for block in self.blocks:
            self.report.kept_blocks += block.new != block.content
            block.new = block.content
        return self._with_ends(self._assembled())

    def _assembled(self) -> list[str | None]:
        """The lines with what replaces them; None where a line is no longer needed."""
        lines: list[str | None] = list(self.lines)
        # From right to left, so that columns hold for several cells of a line.
        for block in reversed(self.blocks):
            if block.new is None or block.new == block.content:
                continue
            new = block.new.split("\n")
            for number, (line, start, end) in enumerate(block.places):
                source = lines[line] or ""
                written = new[number] if number < len(new) else ""
                if block.kind == "cell":
                    written = written.replace("|", "\\|")
                lines[line] = source[:start] + written + source[end:]
                # What else is on a line of text is only its indentation and quote marks; on one
                # of HTML there may be tags.
                if number >= len(new) and (block.kind != "html" or not (lines[line] or "").strip()):
                    lines[line] = None
        return lines

    def _with_ends(self, lines: Sequence[str | None]) -> str:
        kept = [(line, end) for line, end in zip(lines, self.ends, strict=True) if line is not None]
        return "".join(line + end for line, end in kept)

    def _first_difference(self, lines: Sequence[str | None]) -> int | None:
        """The source line where the skeleton first differs."""
        env: dict[str, Any] = {}
        new = self._parse("\n".join(line for line in lines if line is not None), env)
        line = 0
        for old, other in zip(self.tokens, new, strict=False):
            line = old.map[0] if old.map else line
            if _signature(old) != _signature(other):
                return line
        return None if len(self.tokens) == len(new) else line

    def _changed_near(self, line: int) -> _Block | None:
        changed = [block for block in self.blocks if block.new != block.content]
        return min(changed, key=lambda block: abs(block.places[0][0] - line), default=None)


def _is_same(flow: Flow, pieces: Sequence[Piece]) -> bool:
    """Whether nothing was translated; sentences are cut from a flow, so that pieces differ."""
    return not any(isinstance(piece, New) for piece in pieces) and (
        write_markdown(pieces) == write_markdown(flow)
    )


def _signature(token: Token) -> Any:
    if token.type == "inline":
        return _canonical(token.children or [])
    attributes = tuple(sorted(token.attrs.items()))
    content: Any = token.content
    if token.type == "html_block" and html_parts(content)[1] <= MAX_DEPTH:
        content = html_skeleton(content)
    return (token.type, token.tag, token.markup, token.info, attributes, content)


def _canonical(tokens: Sequence[Token]) -> tuple[Any, ...]:
    """The tree of inline markup; order among neighbours does not count, for words move."""
    stack: list[tuple[Any, list[Any]]] = [(None, [])]
    for token in tokens:
        if token.type in ("text", "text_special", "softbreak"):
            continue
        attributes = tuple(
            sorted(
                (key, "" if key == "title" else str(value)) for key, value in token.attrs.items()
            )
        )
        content = "" if token.type == "image" else token.content
        if token.type == "html_inline":
            content = respell_attributes(content, _blank)
        node = (token.type, attributes, content)
        if token.nesting == 1:
            stack.append((node, []))
        elif token.nesting == -1 and len(stack) > 1:
            opened, children = stack.pop()
            stack[-1][1].append((opened, tuple(sorted(children, key=repr))))
        else:
            stack[-1][1].append((node, ()))
    return tuple(sorted(stack[0][1], key=repr))


def _blank(value: str, quote: str) -> str:
    return "" if quote else '""'


def _visible(tokens: Sequence[Token]) -> str:
    """The characters of the text, without white space; an address in angles is opaque."""
    parts = []
    address = False
    for token in tokens:
        if token.type in ("link_open", "link_close"):
            address = token.type == "link_open" and token.info == "auto"
        elif token.type in ("text", "text_special") and not address:
            parts.append(token.content)
    return "".join("".join(parts).split())
