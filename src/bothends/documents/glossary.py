"""A glossary: terms of the source with the words that their translation must use.

One entry a line, `source<TAB>target`; empty lines and lines that begin with `#` are comments. A
term matches whole words, longer terms first. A term in small letters matches any case, because it
may begin a sentence; one with capitals matches as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from bothends.errors import BothendsError


class TermMatch(NamedTuple):
    """A term of the glossary in a text."""

    start: int
    end: int
    source: str
    #: as the translation should write it here
    target: str


@dataclass(frozen=True)
class Glossary:
    """Terms and their translations."""

    terms: Mapping[str, str]

    @classmethod
    def load(cls, path: Path | str) -> Glossary:
        """Read a file; what is wrong with it is said with its line."""
        path = Path(path)
        try:
            content = path.read_bytes()
        except OSError as error:
            reason = "no such file" if isinstance(error, FileNotFoundError) else error.strerror
            raise BothendsError(f"{path}: {reason}") from None
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise BothendsError(f"{path}, line {line}: not valid UTF-8; convert the file") from None
        return cls.parse(text.split("\n"), str(path))

    @classmethod
    def parse(cls, lines: Iterable[str], name: str = "glossary") -> Glossary:
        terms: dict[str, str] = {}
        for number, line in enumerate(lines, start=1):
            if not line.strip() or line.startswith("#"):
                continue
            where = f"{name}, line {number}"
            columns = [column.strip() for column in line.split("\t")]
            if len(columns) != 2:
                raise BothendsError(
                    f"{where}: expected source<TAB>target, but there are {len(columns) - 1} tabs"
                )
            source, target = (" ".join(column.split()) for column in columns)
            if not source or not target:
                side = "source" if not source else "target"
                raise BothendsError(f"{where}: the {side} is empty; fill it in or remove the line")
            if terms.setdefault(source, target) != target:
                raise BothendsError(
                    f"{where}: {source!r} has another translation above ({terms[source]!r})"
                )
        return cls(terms)

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        if not self.terms:
            return None
        alternatives = []
        for term in sorted(self.terms, key=lambda term: (-len(term), term)):
            words = r"\s+".join(map(re.escape, term.split()))
            alternatives.append(f"(?i:{words})" if term == term.lower() else words)
        # A boundary is needed only beside a letter of a spaced script.
        wide = "\u3040-\u30ff\u3400-\u9fff"
        before, after = rf"(?<![^\W_{wide}])", rf"(?![^\W_{wide}])"
        wide_or = rf"(?:(?<=[{wide}])|{after})"
        return re.compile(f"(?:{before}|(?=[{wide}]))(?:{'|'.join(alternatives)}){wide_or}")

    @cached_property
    def _small(self) -> dict[str, str]:
        return {term: target for term, target in self.terms.items() if term == term.lower()}

    def find(self, text: str) -> list[TermMatch]:
        """The terms in a text, from left to right, the longest at each place."""
        if self._pattern is None:
            return []
        found = []
        for match in self._pattern.finditer(text):
            words = " ".join(match[0].split())
            source = words if words in self.terms else words.lower()
            target = self.terms.get(source)
            if target is not None:
                found.append(
                    TermMatch(match.start(), match.end(), source, _cased(words, source, target))
                )
        return found


def _cased(words: str, source: str, target: str) -> str:
    """The target with a capital where the text has one and the glossary has none."""
    if words == source or source != source.lower():
        return target
    if len(words) > 1 and words.isupper():
        return target.upper()
    return target[0].upper() + target[1:] if words[0].isupper() else target


def count_term(text: str, target: str) -> int:
    """How often a translation uses the words of a target, in any case."""
    words = r"\s+".join(map(re.escape, target.split()))
    return len(re.findall(rf"(?<!\w){words}(?!\w)|{words}(?=[\u3040-\u9fff])", text, re.IGNORECASE))
