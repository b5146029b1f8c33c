"""Translators that need no model: from one that changes nothing to those that break everything."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from bothends.documents import Translate


def each(change: Callable[[str], str]) -> Translate:
    def translate(sentences: Sequence[str]) -> list[str]:
        return [change(sentence) for sentence in sentences]

    return translate


identity = each(lambda sentence: sentence)
upper = each(str.upper)
reverse = each(lambda sentence: " ".join(reversed(sentence.split())))
#: loses every placeholder, and every word with a digit
forget = each(lambda sentence: " ".join(w for w in sentence.split() if not re.search(r"\d", w)))
repeat = each(lambda sentence: f"{sentence} {sentence}")
garbage = each(lambda _: "*]# <b> | &amp; `x` - 1. X1 X2 {y}")
silence = each(lambda _: "")
wide = each(lambda sentence: "。".join("訳" * len(word) for word in sentence.split()))

EVERY: dict[str, Translate] = {
    "identity": identity,
    "upper": upper,
    "reverse": reverse,
    "forget": forget,
    "repeat": repeat,
    "garbage": garbage,
    "silence": silence,
    "wide": wide,
}
