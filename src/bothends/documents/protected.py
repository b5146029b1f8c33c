"""Spans that must not be translated: found here, masked and checked by `sentence_units`.

Each kind is a pattern. Where two match, the one that begins first wins, then the one that is
earlier in the table.
"""

# Marks of other scripts look like ours to the linter.
# ruff: noqa: RUF001, RUF003

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from typing import NamedTuple

from bothends.errors import UsageError, nearest
from bothends.text.sentences import OBJECT
from bothends.text.units import FRACTIONS, RAISED, SIGNS, UNITS

_NUMBER = r"\d+(?:[.,'\u00a0\u202f]\d{3})*(?:[.,]\d+)?"
_EXTENSIONS = (
    "py|pyi|md|rst|txt|json|jsonl|ya?ml|toml|ini|cfg|conf|csv|tsv|html?|css|jsx?|tsx?|xml|sql|sh|bat|"
    "ps1|exe|dll|so|c|h|cc|cpp|hpp|rs|go|java|rb|php|lua|ipynb|onnx|safetensors|pdf|docx?|xlsx?|pptx?"
    "|odt|png|jpe?g|gif|svg|webp|mp3|mp4|wav|zip|tar\\.gz|tgz|gz|bz2|xz|7z|whl|lock|log|env|bin|srt"
)
# What languages write in their own ways, so that it is left to models: dates, years from one to
# another, decimals, thousands with dots.
_NO_IDENTIFIER = (
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}"
    r"|(?:1\d|20)\d\d[-/](?:1\d|20)\d\d|\d{1,20}\.\d{1,20}|\d{1,3}(?:\.\d{3}){1,6})(?!\w|[./-]\w)"
)
_GAP = "[ \u00a0\u202f]"
_BETWEEN = "[ \u00a0\u202f./-]"
_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_HEX = "[0-9A-Fa-f]{1,4}"
_IDENTIFIERS = (
    r"(?<![\w&#])#\d{1,20}\b",
    # IBANs
    rf"\b[A-Z]{{2}}\d\d{_GAP}?[A-Z\d]{{4}}{_GAP}?\d[A-Z\d]{{3}}(?:{_GAP}?[A-Z\d]{{4}}){{1,6}}"
    rf"(?:{_GAP}?[A-Z\d]{{1,3}})?\b",
    # addresses of hosts, with a port or the size of a network
    rf"(?<![\w.,:-]){_OCTET}(?:\.{_OCTET}){{3}}(?:/\d{{1,2}}|:\d{{1,5}})?(?!\w|[.,:-]\w)",
    rf"(?<![\w.:])(?:(?:{_HEX}:){{3,7}}{_HEX}|(?:{_HEX}:){{1,6}}(?::{_HEX}){{1,6}})(?![\w:])",
    # versions: three parts, or two after a v; also behind a name, as in OpenSSL-1.1.1
    rf"(?:(?<![\w.,-])|(?<=[A-Za-z]-))(?!{_NO_IDENTIFIER})(?:v\d{{1,6}}|\d{{1,6}}\.\d{{1,6}})(?:\.\d{{1,6}}){{1,5}}"
    r"(?:[-+.]?[a-z]{1,8}[.-]?\d{0,4})?(?!\w|[.,-]\d)",
    # telephones, ISBNs, invoices: runs of seven digits or more in all
    rf"(?<![\w.,:/+-])(?=(?:\+|[A-Z]{{1,8}}-)?(?:[()]?{_BETWEEN}?[()]?\d){{7}})(?!{_NO_IDENTIFIER})"
    rf"(?:\+|[A-Z]{{1,8}}-)?(?:\(\d{{1,6}}\)|\d{{1,20}})"
    rf"(?:{_BETWEEN}?\(\d{{1,6}}\)|{_BETWEEN}\d{{1,20}}|(?<=\))\d{{1,20}}){{1,12}}(?:-X\b)?"
    r"(?!\w|[.,:/-]\d)",
    r"(?<![\w.,:/+-])(?:\+|[A-Z]{1,8}-?)?\d{5,40}(?!\w|[.,:]\d)",
)
_EMAIL = r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}"
_ESCAPES = r"(?:\\[nrt]){1,20}"
_COMPARISON = "(?:[<>=!]=|[<>=≤≥≠≈])"
# A number, or a name of one letter, perhaps with an index: words are translated.
_OPERAND = r"(?:-?v?\d{1,20}(?:[.,]\d{1,20}){0,6}%?|[A-Za-z]\d?)"
_REST = rf"[^\s<>\"'`{OBJECT}]"
# Full stops, commas and closing brackets after an address belong to the sentence.
_END = r"[^\s<>\"'`.,;:!?()\[\]{}" + OBJECT + "。、！？）」]"

#: What each kind looks like. All repetitions are bounded or cannot overlap: no pattern backtracks
#: more than a line's length.
KINDS: dict[str, str] = {
    # Line breaks and tabs as messages of programs spell them. \name is a command, or a directory.
    "escape": rf"(?:(?<=\w[.!?:,;])|(?<!\\)(?!{_ESCAPES}[a-z])){_ESCAPES}",
    "code": r"(?<!`)(`+)(?!`)[^`\n]{1,500}(?<!`)\1(?!`)",
    "tag": r"</?[A-Za-z][\w:.-]{0,60}(?:\s[^<>]{0,500})?/?>",
    # in angles, too: Ann <ann@a.org>
    "url": rf"<(?:https?|ftp)://[^\s<>{OBJECT}]{{1,2000}}>"
    rf"|\b(?:https?|ftp|file|wss?)://{_REST}{{0,2000}}{_END}"
    rf"|\bwww\.[\w-]{{1,63}}\.{_REST}{{0,500}}{_END}"
    rf"|\b(?:mailto|tel|urn|doi):{_REST}{{0,200}}{_END}",
    "email": rf"<{_EMAIL}>|(?<![\w.+-]){_EMAIL}",
    # with messages of ICU, which have texts in braces, and what template languages compute
    "placeholder": r"<%[^\n]{0,200}?%>|<\?[^\n]{0,200}?\?>|\[\[[^\[\]\n]{1,200}\]\]|"
    r"\{\w{1,40}, ?(?:plural|select(?:ordinal)?|number|date|time)\b"
    r"(?:[^{}\n]|\{(?:[^{}\n]|\{[^{}\n]{0,80}\}){0,500}\}){0,500}\}"
    r"|\{?\{\{[^{}\n]{0,200}\}\}\}?|[$#%@]\{[^{}\n]{1,200}\}|\{%[^%\n]{0,200}%\}"
    r"|\{[\w.\[\]!:$<>=^,+|?*-]{0,80}\}|\{ \$?[\w.-]{1,80} \}|\$\([\w.]{1,80}\)"
    r"|\{[\w.\[\]<>]{1,40}(?: \| [\w.\[\]<>]{1,40}){1,20}\}"
    r"|%\([\w.]{1,80}\)[#0 +-]{0,3}[\d.]{0,6}[diouxXeEfFgGcrsa]"
    r"|(?<![\w%])%(?:\d{1,2}\$)?[#0+-]{0,3}\d{0,3}(?:\.\d{1,2})?[diouxXeEfFgGcrs@](?![\w%])"
    r"|(?<![\w%])(?:%[A-Za-z_][\w.]{1,60}%|%%[A-Za-z_][\w.]{1,60}%%)(?![\w%])"
    r"|(?<!\w)__[A-Z][A-Z0-9_]{0,60}__(?!\w)|(?<![\w:]):[a-z0-9_+-]{1,40}:(?![\w:])"
    r"|(?<![^\s\"'(]):[a-z]\w{1,60}(?![\w:]|[./-]\w)"
    r"|(?<![\w$])\$(?:[A-Z_][A-Z0-9_]{1,60}|[a-z_]\w{1,60})\b",
    "path": r"(?<![\w/.~\\-])(?:~|\.{1,2})?/(?:[\w.@+-]{1,100}/){0,30}"
    r"\.?[\w@+-][\w.@+-]{0,100}(?<!\.)/?"
    r"|\b[A-Za-z]:\\(?:[\w .@+-]{1,100}\\){0,30}[\w.@+-]{0,100}(?<!\.)"
    r"|(?<![\w/.-])[\w.@+-]{1,100}/(?:[\w.@+-]{1,100}/){0,30}[\w@+-]{1,100}"
    rf"\.(?:{_EXTENSIONS})\b"
    r"|(?<![\w/.-])(?:[\w.@+-]{1,100}/){2,30}(?:[\w@+-][\w.@+-]{0,100}(?<!\.))?"
    rf"|(?<![\w/.@-])[\w-]{{1,100}}(?:\.[\w-]{{1,100}}){{0,5}}\.(?:{_EXTENSIONS})\b",
    "number": rf"(?<![\w.,])(?:(?:\d{{1,9}}{_GAP}?)?[{FRACTIONS}]|\d{{1,9}}\u2044\d{{1,9}})"
    rf"(?:{_GAP}?(?:{UNITS})(?![\w²³/]))?"
    rf"|(?:US\$|R\$|[$€£¥₽])\s?{_NUMBER}"
    rf"|(?<![\w.,]){_NUMBER}[ \u00a0\u202f]?(?:{UNITS})(?![\w²³/])",
    # Whatever names something by its digits: with one that is wrong it names something else.
    "identifier": f"(?=[\\dA-Za-fv#+(])(?:{'|'.join(_IDENTIFIERS)})",
    # some_name; C#, C++, Acme®; x^2; 3×4, §5, ±5; x < 5, p >= 0.05, a = b
    "notation": r"(?<!\w)\w{0,60}[^\W_]_{1,3}[^\W_]\w{0,60}(?!\w)"
    r"|(?<![\w.])[A-Za-z][\w-]{0,40}[®™]|(?<![\w.])[A-Za-z]{1,3}(?:\+\+|#)(?![\w+#])"
    rf"|(?<![\w.])\w{{1,20}}\^(?:\w{{1,20}}|\{{[^{{}}\n]{{1,40}}\}}|\([^()\n]{{1,40}}\))"
    r"|(?<![\w.])\d[\d.,]{0,20} ?[×÷] ?\d{1,20}(?:[.,]\d{1,20})?(?!\w)|©\d{4}(?!\w)"
    r"|(?<!\w)[§±≈]{1,2} ?\d{1,20}(?:[.,]\d{1,20}){0,6}[a-z]?(?!\w|[.,]\d)"
    rf"|(?:(?<![\w.]){_OPERAND} ?|(?<=\S\s)|(?<=\()){_COMPARISON} ?{_OPERAND}(?!\w|[.,]\d)"
    # alone; at the beginning it would be the mark of a quote
    rf"|(?<=\S\s){_COMPARISON}(?=\s)"
    rf"|(?<![\w.,])(?:[A-Za-z]{{1,3}}|\d[\d.,]{{0,20}})[{RAISED}]{{1,20}}(?!\w)",
    # Emoji with what joins them, notes of songs, ©, →: few vocabularies have them. The mark¹ of a
    # note.
    "symbol": f"(?:[{SIGNS}][\ufe0e\ufe0f\u200d\U000e0020-\U000e007f]*)+|[{RAISED}]{{1,20}}",
    "handle": r"(?<![\w@/.])@[A-Za-z_][\w-]{0,60}(?:/[\w.-]{1,60}\w)?\b"
    r"|(?<![\w&#/])#[^\W\d_]\w{0,60}\b",
}
ALL_KINDS = frozenset(KINDS)


class ProtectedSpan(NamedTuple):
    """Half-open offsets, and which kind matched."""

    start: int
    end: int
    kind: str


def find_protected(text: str, kinds: Collection[str] = ALL_KINDS) -> list[ProtectedSpan]:
    """The spans of these kinds, in order, none overlapping."""
    if not kinds:
        return []
    return [
        ProtectedSpan(match.start(), match.end(), match.lastgroup or "")
        for match in _pattern(frozenset(kinds)).finditer(text)
        if match.end() > match.start()
    ]


def check_kinds(kinds: Collection[str]) -> frozenset[str]:
    """These kinds, if there are such."""
    for kind in kinds:
        if kind not in KINDS:
            raise UsageError(f"unknown kind of protected span {kind!r}; {nearest(kind, KINDS)}")
    return frozenset(kinds)


@cache
def _pattern(kinds: frozenset[str]) -> re.Pattern[str]:
    # The one group inside a kind is the run of backticks, named so that lastgroup is the kind.
    chosen = {name: pattern for name, pattern in KINDS.items() if name in check_kinds(kinds)}
    if "code" in chosen:
        chosen["code"] = (
            chosen["code"].replace("(`+)", "(?P<ticks>`+)").replace(r"\1", "(?P=ticks)")
        )
    return re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in chosen.items()))
