"""HTML: running text is translated in place; tags, scripts and code stay to the letter, and so do
attributes but for those that people see and the page's language (`html_attributes`).

A scanner finds the text with its offsets, since parsers that build a tree keep none; selectolax
(Lexbor) reads input and output as a browser does and judges that both have the same skeleton.
Not lxml: libxml2 builds the tree of HTML 4 and stops at a depth of 256, so that it would pass
pages that a browser reads otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from bothends.documents.flows import FlowTranslator
from bothends.documents.html_attributes import SEEN, AttributeTexts, in_language, is_kept
from bothends.documents.html_scanner import OPAQUE_NAMES, VOID_NAMES, HtmlToken, scan_html
from bothends.documents.html_text import text_pieces, write_html
from bothends.documents.options import DocumentOptions, DocumentReport
from bothends.documents.pieces import Atom, Close, Open, Piece
from bothends.documents.raised import with_raised_opaque

#: Elements that stand inside a sentence. All others end it.
_INLINE_LIST = (
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img input ins kbd label "
    "mark math meter output picture progress q rp rt ruby s samp small span strike strong sub "
    "sup svg time tt u var wbr "
)
_INLINE = frozenset(_INLINE_LIST.split())
#: Lexbor's time grows with the square of the depth. What is deeper is not judged: its tags are
#: never moved, since it is translated in pieces.
MAX_DEPTH = 500


def translate_html(
    text: str, translator: FlowTranslator, options: DocumentOptions, report: DocumentReport
) -> str:
    """Translate the running text of a page or of a fragment of one."""
    parts, depth = html_parts(text)
    judge = _Judge(text) if depth <= MAX_DEPTH else None
    pending = [part for part in parts if isinstance(part, HtmlRun)]
    texts = AttributeTexts()
    if options.attributes:
        for part in parts:
            texts.note_pieces(part.pieces) if isinstance(part, HtmlRun) else texts.note(part)
    flows = [*(run.pieces for run in pending), *texts.flows()]
    answers = translator.translate(flows, in_pieces=judge is None)
    texts.learn(answers[len(pending) :])
    for run, pieces in zip(pending, answers, strict=False):
        run.pieces = texts.written_pieces(run.pieces)
        run.new = write_html(texts.written_pieces(pieces))
    parts = [texts.written(part) if isinstance(part, str) else part for part in parts]
    if judge is None or judge.accepts(_joined(parts)):
        return _page(parts, options)
    # Which runs are to blame? Runs are independent, so halves can be tried apart.
    blamed = list(_blamed(pending, parts, judge))
    again = translator.translate([run.pieces for run in blamed], in_pieces=True)
    for run, pieces in zip(blamed, again, strict=True):
        run.new = write_html(pieces)
    if not judge.accepts(_joined(parts)):
        kept = list(_blamed(pending, parts, judge))
        report.kept_blocks += len(kept)
    if judge.accepts(_joined(parts)):
        return _page(parts, options)
    report.kept_blocks = len(pending)
    return text


@dataclass
class HtmlRun:
    """Inline content between the tags of blocks."""

    pieces: list[Piece] = field(default_factory=list)
    new: str = ""

    @property
    def source(self) -> str:
        return write_html(self.pieces)


def _page(parts: Sequence[str | HtmlRun], options: DocumentOptions) -> str:
    """The translation, which says what language it is in."""
    language, target = options.language, options.target_language
    return _joined(
        [in_language(part, language, target) if isinstance(part, str) else part for part in parts]
    )


def _joined(parts: Sequence[str | HtmlRun]) -> str:
    return "".join(part if isinstance(part, str) else part.new for part in parts)


def _blamed(
    runs: list[HtmlRun], parts: Sequence[str | HtmlRun], judge: _Judge
) -> Iterator[HtmlRun]:
    """Set back the runs that change the skeleton, found by halves; at most some hundred trials."""
    trials = 200
    good = {id(run): run.new for run in runs}
    for run in runs:
        run.new = run.source
    stack = [runs]
    while stack:
        group = stack.pop()
        for run in group:
            run.new = good[id(run)]
        trials -= 1
        if trials >= 0 and judge.accepts(_joined(parts)):
            continue
        for run in group:
            run.new = run.source
        if len(group) == 1 or trials < 0:
            yield from group
        else:
            middle = len(group) // 2
            stack += [group[middle:], group[:middle]]


# Cutting a page into source and runs


def html_parts(text: str) -> tuple[list[str | HtmlRun], int]:
    """Literal source and runs, in order, and how deep elements nest."""
    parts: list[str | HtmlRun] = []
    run: list[tuple[HtmlToken, list[Piece]]] = []
    depth = deepest = 0
    for token in _with_opaque(scan_html(text)):
        if token.kind == "open" and token.name not in VOID_NAMES:
            depth += 1
            deepest = max(deepest, depth)
        elif token.kind == "close":
            depth = max(0, depth - 1)
        inline = token.kind in ("text", "comment") or token.name in _INLINE or token.name == "br"
        if inline:
            run.append((token, _pieces(token)))
            continue
        parts += [*_balanced(run), token.raw]
        run = []
    return [*parts, *_balanced(run)], deepest


def _with_opaque(tokens: Iterator[HtmlToken]) -> Iterator[HtmlToken]:
    """The tokens with each opaque element as one token: inline code is a word of its sentence."""
    for token in tokens:
        opaque = token.kind == "open" and (
            token.name in OPAQUE_NAMES or (is_kept(token.raw) and token.name not in VOID_NAMES)
        )
        if not opaque or token.raw.endswith("/>"):
            yield token
            continue
        raw = [token.raw]
        depth = 1
        for other in tokens:
            raw.append(other.raw)
            if other.name == token.name and other.kind in ("open", "close"):
                depth += 1 if other.kind == "open" else -1
            if depth == 0:
                break
        if token.name in _INLINE:
            yield HtmlToken("raw", "".join(raw), token.name)
        else:
            yield HtmlToken("doctype", "".join(raw))


def _pieces(token: HtmlToken) -> list[Piece]:
    if token.kind == "text":
        return text_pieces(token.raw)
    if token.kind == "open" and token.name not in VOID_NAMES:
        return [Open(token.raw)]
    if token.kind == "close":
        return [Close(token.raw)]
    if token.name == "br":
        return [Atom(token.raw, "break")]
    return [Atom(token.raw, "word" if token.kind == "raw" else "void")]


def _balanced(tokens: Sequence[tuple[HtmlToken, list[Piece]]]) -> list[str | HtmlRun]:
    """Runs in which every tag has its other end; a tag without one stands between runs."""
    partner: dict[int, int] = {}
    stack: list[tuple[str, int]] = []
    for index, (token, _) in enumerate(tokens):
        if token.kind == "open" and token.name not in VOID_NAMES:
            stack.append((token.name, index))
        elif token.kind == "close" and stack and stack[-1][0] == token.name:
            _, start = stack.pop()
            partner[start], partner[index] = index, start
    # A tag that is closed late or never is a boundary; what is open around it cannot be one tag.
    alone = [
        index
        for index, (token, _) in enumerate(tokens)
        if (token.kind == "close" or (token.kind == "open" and token.name not in VOID_NAMES))
        and index not in partner
    ]
    boundaries = set(alone)
    around: list[int] = []
    pending = iter([*alone, len(tokens)])
    following = next(pending)
    for index, (token, _) in enumerate(tokens):
        if index == following:
            boundaries.update(around)
            boundaries.update(partner[start] for start in around)
            around = []
            following = next(pending)
        elif index in partner and index not in boundaries:
            if token.kind == "open":
                around.append(index)
            elif around:
                around.pop()
    parts: list[str | HtmlRun] = []
    run = HtmlRun()
    for index, (token, pieces) in enumerate(tokens):
        if index in boundaries:
            parts += [run, token.raw]
            run = HtmlRun()
        else:
            run.pieces += pieces
    parts.append(run)
    for part in parts:
        if isinstance(part, HtmlRun):
            part.pieces = with_raised_opaque(part.pieces)
    return parts


# Judging


def html_skeleton(text: str) -> list[Any]:
    """What a browser makes of a page, but for words and the order of inline neighbours."""
    from selectolax.lexbor import LexborHTMLParser

    root = LexborHTMLParser(text).root
    if root is None:
        return []
    nodes: list[Any] = []
    path: dict[int, tuple[Any, ...]] = {}
    pending: list[Any] = []  # inline nodes since the last block, which may change places

    def flush() -> None:
        nodes.extend(sorted(pending, key=repr))
        pending.clear()

    for node in root.traverse(include_text=True):
        tag = node.tag or ""
        parent = node.parent
        above = path.get(parent.mem_id, ()) if parent is not None else ()
        if tag == "-text":
            # Text in scripts and code must not change; elsewhere only where there is some counts.
            if above and above[-1][0] in OPAQUE_NAMES:
                pending.append((above[-1], node.text_content))
            continue
        attributes: tuple[Any, ...] = ()
        if tag == "-comment":
            attributes = (node.comment_content,)
        elif not tag.startswith("-"):
            attributes = tuple(
                (key, "" if key in SEEN else value) for key, value in node.attributes.items()
            )
        here = (tag, attributes)
        # The chain of inline elements above tells where this one is nested.
        chain = above if above and above[-1][0] in _INLINE else above[-1:]
        if tag in _INLINE or tag in ("-comment", "br"):
            pending.append((*chain[-8:], here))
        else:
            flush()
            nodes.append((len(chain), *chain[-1:], here))
        path[node.mem_id] = (*chain[-8:], here)
    flush()
    return nodes


class _Judge:
    """Knows the skeleton of the source."""

    def __init__(self, text: str) -> None:
        self._skeleton = html_skeleton(text)

    def accepts(self, text: str) -> bool:
        return html_skeleton(text) == self._skeleton
