"""Which language a text is in: one of those that the models of a server name, or surely none.

py3langid does it: naive Bayes over byte n-grams, 5 MB, nothing but NumPy. It is read when it is
first asked. A few words can be too little to tell; the confidence says so.

Among all the languages of the world a few words look like many. So a text is taken to be in one of
the languages of the models, unless it is surely in another: German is not English with 90 %.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any

from bothends.errors import BothendsError
from bothends.text.languages import short_code

#: Percent of confidence from which on a detected language is taken for granted.
SURE = 80.0
#: Languages that are written alike, and the one of them that stands for all: where no model names
#: a language, one that names another of its kind is as good.
_KINDS = {
    alike: kind
    for kind, others in {
        "ar": "arz ary",
        "hr": "bs sr",
        "id": "ms",
        "no": "nb nn",
        "zh": "wuu yue",
    }.items()
    for alike in others.split()
}
#: What py3langid calls text that is in no language.
_NO_LANGUAGE = "zxx"
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
        """The languages that it may be, the likeliest first; none if there is nothing to tell.

        They are those of the models, and before them another if it is surely that.
        """
        if not self.available:
            raise DetectionUnavailableError(
                "this server detects no languages: name the source, or install py3langid there"
            )
        sample = text[:LONGEST_SAMPLE]
        if not self._owners or not any(map(str.isalpha, sample)):
            return []
        ours = dict.fromkeys(self._owners.values(), 0.0)
        others = {}
        for language, share in self._identifier.rank(sample):
            if owner := self._owners.get(language):
                ours[owner] = max(ours[owner], share)  # alike ones are no more likely together
            elif language != _NO_LANGUAGE:
                others[language] = share
        other, most = next(iter(others.items()), ("", 0.0))
        if self._knows_all and 100 * most >= SURE:
            return [Detected(other, _percent(most)), *_ranked(ours, 1.0)]
        return _ranked(ours, sum(ours.values()) or 1.0)

    @cached_property
    def _owners(self) -> dict[str, str]:
        """The models' code for each language that can be told, if they name it or one like it."""
        alike: dict[str, str] = {}
        for language, code in self._codes.items():
            alike.setdefault(_kind(language), code)
        found = {
            label: self._codes.get(label) or alike.get(_kind(label))
            for label in self._identifier.labels
        }
        return {label: code for label, code in found.items() if code is not None}

    @cached_property
    def _knows_all(self) -> bool:
        """Whether all languages of the models can be told. A text in any other would be taken for
        yet another language."""
        return set(self._owners.values()) == set(self._codes.values())

    @cached_property
    def _identifier(self) -> Any:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def _kind(language: str) -> str:
    return _KINDS.get(language, language)


def _ranked(shares: Mapping[str, float], total: float) -> list[Detected]:
    found = [Detected(code, _percent(share / total)) for code, share in shares.items()]
    return sorted(found, key=lambda each: -each.confidence)


def _percent(share: float) -> float:
    return round(100 * share, 1)
