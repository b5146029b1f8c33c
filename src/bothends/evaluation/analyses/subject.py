"""Where the subject of a German verb stands: a guess, for contrastive pairs that do not say.

A pair differs in one verb, which has the number of its subject in one sentence and the other number
in the other. The guess needs no parser, only closed classes of words and capitals:

- The verb's clause begins after the last punctuation before it. The subject is the last pronoun
  there that can only be a subject, or else the first noun or pronoun that can be nominative in the
  right number: not after a preposition, not with an article of another case or number. If there is
  none, it is the first such word after the verb.
- A verb right behind a relative clause has the subject that the clause is about.
- The head of a noun phrase is the last capital word in a row. The first word of a sentence is a
  noun unless some sentence has it without its capital.

`docs/analysis.md` says how often that was right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PREPOSITIONS = _words(
    """ab abseits als am an angesichts ans anstatt auf aufgrund aufs aus außer außerhalb bei beim
    bis dank durch entlang fürs für gegen gegenüber gemäß hinter im in infolge innerhalb ins laut
    mangels mit mithilfe nach nahe neben ob ohne per pro seit statt trotz um ums unter unterhalb
    via vom von vor wegen wie zu zufolge zum zur zwischen über"""
)
_POSSESSIVES = _words("mein dein sein ihr unser euer eur kein ein")
#: Articles, and words like them, that a nominative may have; and those of other cases.
_SINGULAR_ARTICLES = _words(
    """der das die dieser diese dieses jeder jede jedes jener jene jenes mancher manches welcher
    welches"""
) | {stem + end for stem in _POSSESSIVES for end in ("", "e")}
_PLURAL_ARTICLES = _words(
    """die diese jene welche alle viele einige mehrere manche beide solche wenige zahlreiche
    verschiedene zwei drei vier fünf sechs sieben acht neun zehn"""
) | {f"{stem}e" for stem in _POSSESSIVES if stem not in ("ein", "euer")}
_OTHER_ARTICLES = (
    _words("den dem des deren dessen allen aller vielen vieler einigen einiger")
    | {stem + end for stem in _POSSESSIVES for end in ("en", "em", "er", "es")}
    | {stem + end for stem in ("dies", "jed", "jen", "welch") for end in ("en", "em", "es", "er")}
)
_ARTICLES = _SINGULAR_ARTICLES | _PLURAL_ARTICLES | _OTHER_ARTICLES
_SINGULAR_PRONOUNS = _words(
    """ich du er sie es man wer was das der die dies dieser diese dieses jeder jede jedes niemand
    jemand nichts alles etwas keiner keine einer eine welcher welche welches"""
)
_PLURAL_PRONOUNS = _words("wir sie die diese jene alle viele einige beide manche welche")
#: Never anything but a subject.
_NOMINATIVES = _words("ich du er wir man wer")
_RELATIVE_PRONOUNS = _words("der die das welcher welche welches")
_PUNCTUATION = ',;:.!?–()"“”„»«'  # noqa: RUF001 (a dash is meant)
_CLAUSE_ENDS = tuple(_PUNCTUATION)
_QUOTES = f"{_PUNCTUATION}[]'‚‘’"  # noqa: RUF001 (quotes are meant)


def changed_word(correct: Sequence[str], incorrect: Sequence[str]) -> int | None:
    """The index of the one word in which two sentences differ; None if they differ otherwise."""
    if len(correct) != len(incorrect):
        return None
    changed = [
        n for n, pair in enumerate(zip(correct, incorrect, strict=True)) if pair[0] != pair[1]
    ]
    return changed[0] if len(changed) == 1 else None


def lowercase_words(sentences: Iterable[Sequence[str]]) -> frozenset[str]:
    """Words that stand somewhere without a capital: no nouns, even where they begin a sentence."""
    return frozenset(
        bare for words in sentences for word in words if (bare := word.strip(_QUOTES)).islower()
    )


def subject_distance(
    correct: Sequence[str], incorrect: Sequence[str], lowercase: frozenset[str]
) -> int | None:
    """Words from the subject to its verb, 1 for neighbours; None where no subject is found."""
    verb = changed_word(correct, incorrect)
    if verb is None:
        return None
    form, other = (words[verb].strip(_QUOTES) for words in (correct, incorrect))
    # Of two forms of one verb, the plural is the one with n: haben and hat, kamen and kam; or sind.
    plural = form == "sind" or (form.endswith("n") and not other.endswith("n"))
    begin, end = _clause(correct, verb)
    if begin == end:
        # Right after punctuation. Behind a relative clause, the subject is what that is about.
        relative, _ = _clause(correct, verb - 1)
        if relative and correct[relative] in _RELATIVE_PRONOUNS:
            begin, end = _clause(correct, relative - 1)[0], relative
    subject = _last_pronoun(correct, begin, end, plural)
    if subject is None:
        subject = _first_nominative(correct, begin, end, plural, lowercase)
    if subject is None:
        subject = _first_nominative(correct, verb + 1, len(correct), plural, lowercase)
    return None if subject is None else abs(verb - subject)


def _clause(words: Sequence[str], end: int) -> tuple[int, int]:
    """The words between the last punctuation before `end` and `end`."""
    return next((n + 1 for n in range(end - 1, -1, -1) if words[n].endswith(_CLAUSE_ENDS)), 0), end


def _last_pronoun(words: Sequence[str], begin: int, end: int, plural: bool) -> int | None:
    """The last pronoun in `words[begin:end]` that can be nothing but the subject."""
    pronouns = _NOMINATIVES & (_PLURAL_PRONOUNS if plural else _SINGULAR_PRONOUNS)
    places = range(end - 1, begin - 1, -1)
    return next((n for n in places if words[n].strip(_QUOTES).lower() in pronouns), None)


def _first_nominative(
    words: Sequence[str], begin: int, end: int, plural: bool, lowercase: frozenset[str]
) -> int | None:
    """The first head in `words[begin:end]` that can be the subject."""
    articles = _PLURAL_ARTICLES if plural else _SINGULAR_ARTICLES
    pronouns = _PLURAL_PRONOUNS if plural else _SINGULAR_PRONOUNS
    place, possible = begin, True
    while place < end:
        word = words[place].strip(_QUOTES)
        small = word.lower()
        head = _head(words, place, end, lowercase)
        if small in _PREPOSITIONS and (word == small or place == begin):
            possible = False  # until the noun that the preposition governs
        elif small in _ARTICLES and (noun := _noun_after(words, place, end, lowercase)) is not None:
            if possible and small in articles:
                return noun
            place, possible = noun, True
        elif small in pronouns or (plural and word == "Sie"):
            return place
        elif head is not None:
            if possible:
                return head
            place, possible = head, True
        place += 1
    return None


def _noun_after(
    words: Sequence[str], article: int, end: int, lowercase: frozenset[str]
) -> int | None:
    """The head of the phrase that an article begins; None if it stands alone, as a pronoun."""
    for place in range(article + 1, end):
        if words[place - 1].endswith(_CLAUSE_ENDS) and place - 1 > article:
            return None
        if (head := _head(words, place, end, lowercase)) is not None:
            return head
        word = words[place].strip(_QUOTES)
        # What may stand between: adjectives and numbers, and adverbs before those.
        if not (word.endswith(("e", "en", "er", "es", "em")) or word[:1].isdigit()):
            return None
        if word in _ARTICLES or word in _PREPOSITIONS:
            return None
    return None


def _head(words: Sequence[str], place: int, end: int, lowercase: frozenset[str]) -> int | None:
    """The last of the capital words in a row that begins here; None if none does."""
    head = None
    while place < end:
        word = words[place].strip(_QUOTES)
        if not word[:1].isupper() or word.lower() in _ARTICLES | _SINGULAR_PRONOUNS | {
            "sie",
            "wir",
        }:
            break
        if (place == 0 or words[place - 1].endswith((":", "."))) and word.lower() in lowercase:
            break
        head = place
        if words[place].endswith(_CLAUSE_ENDS):
            break
        place += 1
    return head
