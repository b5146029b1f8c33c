"""Which language a text is in, of those that the models of a server name.

py3langid does it: naive Bayes over byte n-grams, 5 MB, nothing but NumPy. It is read when it is
first asked. A few words can be too little to tell; the confidence says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any

from bothends.errors import BothendsError
from bothends.text.languages import short_code

#: Characters that are looked at: more of them change nothing.
LONGEST_SAMPLE = 1_000


class DetectionUnavailableError(BothendsError):
    """This server cannot tell languages."""


@dataclass(frozen=True)
class Detected:
    """A language's code, and how sure it is in percent."""

    language: str
    confidence: float


class Detector:
    """Tells the languages of some models apart. Any thread may use it."""

    def __init__(self, languages: Iterable[str]) -> None:
        """Languages are codes (`pt`, `pt-BR`, `por_Latn`); the first of equal ones counts."""
        self._codes: dict[str, str] = {}
        for code in languages:
            self._codes.setdefault(short_code(code), code)

    @property
    def available(self) -> bool:
        return find_spec("py3langid") is not None

    def detect(self, text: str) -> list[Detected]:
        """The languages that it may be, the likeliest first; none if there is nothing to tell."""
        if not self.available:
            raise DetectionUnavailableError(
                "this server detects no languages: name the source, or install py3langid there"
            )
        sample = text[:LONGEST_SAMPLE]
        if self._identifier is None or not any(map(str.isalpha, sample)):
            return []
        return [
            Detected(self._codes[language], round(100 * share, 1))
            for language, share in self._identifier.rank(sample)
        ]

    @cached_property
    def _identifier(self) -> Any:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        known = set(identifier.labels) & set(self._codes)
        if not known:
            return None
        identifier.set_languages(known)
        return identifier
