"""Languages by one short code, however a model spells them: `pt`, `pt-BR`, `pt_XX`, `por_Latn`.

Models name their languages in their own way, and tables of ours have two letters. ISO 639-3 has
three; those of all languages that a table here or a detector knows are listed. People ask for a
language in yet another way: `distance` tells whether a model's language is what they mean.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_TWO_LETTERS = dict(
    pair.split(":")
    for pair in (
        "afr:af amh:am ara:ar arg:an asm:as aze:az bak:ba bel:be ben:bn bos:bs bre:br bul:bg "
        "cat:ca ces:cs cym:cy dan:da deu:de dzo:dz ell:el eng:en epo:eo est:et eus:eu fao:fo "
        "fas:fa fin:fi fra:fr fry:fy gla:gd gle:ga glg:gl guj:gu hat:ht hau:ha heb:he hin:hi "
        "hrv:hr hun:hu hye:hy ibo:ig ind:id isl:is ita:it jav:jv jpn:ja kan:kn kat:ka kaz:kk "
        "khm:km kin:rw kir:ky kor:ko kur:ku lao:lo lat:la lav:lv lin:ln lit:lt ltz:lb lug:lg "
        "mal:ml mar:mr mkd:mk mlg:mg mlt:mt mon:mn msa:ms mya:my nep:ne nld:nl nno:nn nob:nb "
        "nor:no oci:oc ori:or orm:om pan:pa pol:pl por:pt pus:ps que:qu ron:ro rus:ru san:sa "
        "sin:si slk:sk slv:sl sme:se sna:sn som:so sot:st spa:es sqi:sq srp:sr swa:sw swe:sv "
        "tam:ta tat:tt tel:te tgk:tg tgl:tl tha:th tuk:tk tur:tr uig:ug ukr:uk urd:ur uzb:uz "
        "vie:vi vol:vo wln:wa xho:xh yor:yo zho:zh zul:zu "
        # The usual member of a group of languages, which NLLB names instead of the group.
        "als:sq arb:ar azj:az cmn:zh ekk:et gaz:om khk:mn kmr:ku lvs:lv npi:ne ory:or pbt:ps "
        "pes:fa plt:mg quy:qu swh:sw uzn:uz zsm:ms"
    ).split()
)


_REGION = re.compile(r"(?!XX)[A-Z]{2}|\d{3}")
#: What LibreTranslate calls Brazilian Portuguese and traditional Chinese.
_LIBRETRANSLATE = {"pb": "pt-BR", "zt": "zh-Hant"}
#: In which script Chinese is written where; simplified where nothing is said.
_CHINESE = {"TW": "Hant", "HK": "Hant", "MO": "Hant"}


class LanguageParts(NamedTuple):
    """What a code says; an empty part says nothing."""

    base: str
    script: str = ""
    region: str = ""


def short_code(language: str) -> str:
    """The two letters of a language's code, or the first part of one that has none: `ast`."""
    return language_parts(language).base


def web_code(language: str) -> str:
    """A code as pages spell it: `pt`, `pt-BR`, `zh-Hant`."""
    parts = language_parts(language)
    script = parts.script if parts.base == "zh" else ""  # others are written in one, mostly
    return "-".join(part for part in (parts.base, script, parts.region) if part)


@lru_cache(1024)  # a server is asked for the same few with every request
def language_parts(code: str) -> LanguageParts:
    """The parts of a code, however it is spelled."""
    code = _LIBRETRANSLATE.get(code.lower(), code)
    first, *rest = code.replace("_", "-").split("-")
    script = next((part.title() for part in rest if len(part) == 4 and part.isalpha()), "")
    # XX is any region: mBART has the codes of all its languages end so.
    region = next((part for part in map(str.upper, rest) if _REGION.fullmatch(part)), "")
    base = _TWO_LETTERS.get(first.lower(), first.lower())
    if base == "zh" and not script:
        script = _CHINESE.get(region, "Hans")
    return LanguageParts(base, script, region)


def distance(asked: str, own: str) -> int | None:
    """How far a model's own language is from the one that is asked for; None: it is another.

    `pt-BR` is `pt_BR` (0), `pt` serves it (1), and `pt-BR` serves `pt` (2), but not `pt-PT`.
    """
    ours, theirs = language_parts(own), language_parts(asked)
    if asked == own or ours == theirs:
        return 0
    if ours.base != theirs.base:
        return None
    if any(one and other and one != other for one, other in zip(ours, theirs, strict=True)):
        return None
    more = any(one and not other for one, other in zip(ours, theirs, strict=True))
    return 2 if more else 1
