"""Markup that CommonMark does not know and sites do: formulas, attributes, wiki links, admonitions.

To CommonMark they are text, which a model would translate. These rules make each an opaque token.
The indented body of an admonition of MkDocs is Markdown, which CommonMark takes for code.
"""

from __future__ import annotations

import re
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

#: The name of the inline rule, and of its tokens.
OPAQUE = "opaque"

_ATTRIBUTE = (
    r"(?:[#.][\w:.-]{1,80}|[\w-]{1,40}=(?:\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'|[\w./:%-]{1,80}))"
)
_INLINE = {
    "$": re.compile(
        r"\$\$(?:\\[\s\S]|[^$\\]){1,5000}\$\$"
        # No space inside its dollars; not $5 and 6$, nor $HOME/$USER.
        r"|(?<![\w$])\$(?![\s$]|\d[\d.,]{0,20}[kKmMbB]?[,;:.)]{0,2}\s+\(?[^\W\d_]{2})"
        r"(?:\\[\s\S]|[^$\\]){1,500}(?<!\s)\$(?![\w$])"
    ),
    # Brackets are escaped in ordinary text, too: there must be something of a formula in them.
    "\\": re.compile(
        r"\\\([\s\S]{1,1000}?\\\)"
        r"|\\\[(?=[^\]]{0,500}?(?:[\^_=+<>]|\\[A-Za-z]))(?:(?!\\[\[\]])[\s\S]){1,5000}\\\]"
    ),
    "{": re.compile(
        rf"\{{:?\s*{_ATTRIBUTE}(?:\s+{_ATTRIBUTE}){{0,10}}\s*\}}|\{{::?[^{{}}\n]{{1,200}}\}}"
    ),
    "[": re.compile(r"\[\[(?!\^)([^\[\]\n]{1,200})\]\](?![(\[])"),
    "!": re.compile(r"!\[\[([^\[\]\n]{1,200})\]\]"),
}
#: Lines of a formula that stands alone.
_LONGEST_FORMULA = 500
_ADMONITION = re.compile(
    r"(?:!!!|\?\?\?\+?) ?[\w-]+(?: +[\w-]+)*(?: +\"[^\"\n]*\")?\s*|===[+!]? +\"[^\"\n]*\"\s*"
)
#: How far MkDocs wants the body indented.
_INDENT = 4


def role_of(raw: str) -> Literal["word", "void"]:
    """A formula or link is a word of its sentence; attributes and embedded pages are not."""
    return "void" if raw.startswith(("{", "!")) else "word"


def add_inline_rule(parser: ParserInline) -> None:
    parser.ruler.before("escape", OPAQUE, _opaque_inline)


def add_block_rules(parser: MarkdownIt) -> None:
    options = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    parser.block.ruler.before("fence", "opaque_block", _opaque_block, options)  # type: ignore[arg-type]
    parser.block.ruler.before("fence", "admonition", _admonition, options)  # type: ignore[arg-type]


def _opaque_inline(state: StateInline, silent: bool) -> bool:
    pattern = _INLINE.get(state.src[state.pos])
    match = pattern.match(state.src, state.pos, state.posMax) if pattern else None
    if match is None:
        return False
    # A reference in brackets is a link of CommonMark.
    if match.lastindex and normalizeReference(match[1]) in state.env.get("references", {}):
        return False
    if not silent:
        state.push(OPAQUE, "", 0).content = match[0]
    state.pos = match.end()
    return True


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]].rstrip()


def _opaque_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A formula on lines of its own, or the first or last line of a container."""
    if state.is_code_block(start):
        return False
    line = _line(state, start)
    if line.startswith(":::"):
        after: int | None = start + 1
    elif line.startswith("$$"):
        after = start + 1 if len(line) > 4 and line.find("$$", 2) == len(line) - 2 else None
        if after is None and "$$" not in line[2:]:
            after = _end_of_formula(state, start, end, "$$")
    else:
        after = _end_of_formula(state, start, end, "\\]") if line == "\\[" else None
    if after is None:
        return False
    if not silent:
        token = state.push("opaque_block", "", 0)
        token.content = state.getLines(start, after, state.blkIndent, keepLastLF=False)
        token.map = [start, after]
        state.line = after
    return True


def _end_of_formula(state: StateBlock, start: int, end: int, mark: str) -> int | None:
    for line in range(start + 1, min(end, start + _LONGEST_FORMULA)):
        if state.isEmpty(line) or state.sCount[line] < state.blkIndent:
            return None
        if _line(state, line).endswith(mark):
            return line + 1
    return None


def _admonition(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A line such as `!!! note "Title"` with its indented body."""
    if state.is_code_block(start) or not _ADMONITION.fullmatch(_line(state, start)):
        return False
    if silent:
        return True
    after = start + 1
    while after < end and (
        state.isEmpty(after) or state.sCount[after] - state.blkIndent >= _INDENT
    ):
        after += 1
    opening = state.push("admonition_open", "", 1)
    opening.content, opening.map = _line(state, start), [start, after]
    before = state.blkIndent, state.lineMax, state.parentType
    state.blkIndent, state.lineMax, state.parentType = before[0] + _INDENT, after, "admonition"
    state.md.block.tokenize(state, start + 1, after)
    state.blkIndent, state.lineMax, state.parentType = before
    state.push("admonition_close", "", -1)
    state.line = after
    return True
