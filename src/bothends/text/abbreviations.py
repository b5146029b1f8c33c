"""Abbreviations, by language: which full stops end no sentence.

A full stop before a small letter ends nothing in any language with capitals, so that most
abbreviations need no entry here. Listed are those that stand before a capital or a number:

- `before_names`: titles and the like, never the end of a sentence (Mr. Smith, z. B. Berlin);
- `before_numbers`: the end of nothing where a number follows (No. 5, Abs. 2);
- `starters`: words that show that a sentence begins after an abbreviation that may end one
  ("He moved to the U.S. It was cold.").
"""

# Marks of other scripts look like ours to the linter.
# ruff: noqa: RUF001

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from bothends.text.languages import short_code


@dataclass(frozen=True)
class Abbreviations:
    """What a full stop may follow without ending a sentence; all in small letters."""

    before_names: frozenset[str]
    before_numbers: frozenset[str]
    starters: frozenset[str]
    #: a number with a full stop is an ordinal: "am 3. Oktober"
    ordinals: bool = False


_NAMES = {
    "": "st dr prof mt vs cf ph.d",
    "en": "mr mrs ms messrs mmes gen col maj capt cpt lt sgt cpl adm cmdr rev fr hon pres gov sen "
    "rep atty supt det insp ald ft e.g i.e viz approx esp incl resp",
    "de": "hr fr frl hrn dipl ing med phil jur rer nat z.b d.h u.a v.a i.d.r s.o s.u o.ä o.g z.t "
    "bzw ca evtl ggf inkl exkl zzgl abzgl sog vgl insb bspw gem lt str bzgl usf zw einschl jew max "
    "min mio mrd tsd geb gest i.a z bd hrsg tel",
    "fr": "m mm mme mmes mlle mlles me mgr pr dr st ste av bd éd ex env p.ex c.-à-d cap cdt col",
    "es": "sr sra srta sres dña d dr dra dres prof profa ing lic arq av avda c pza ud uds vd vds "
    "ee gral cnel cap tte sto sta p.ej ej aprox atte",
    "pt": "sr sra srta srs sras dr dra drs profa eng arq av al pça r d exmo exma ilmo ilma v.exa "
    "exa sto sta cel cap ten gen p.ex ex aprox tel",
    "it": "sig sigg sig.ra sig.na dott dott.ssa dr prof prof.ssa avv ing arch geom rag on sen "
    "mons p.es es v.le p.zza ca",
    "ro": "dl dna d-na dvs dra dr prof ing av str bd bld jud com aprox ex p.ex gen col lt sf",
    "ru": "г гг гр им ул пр пл пер д кв тов св акад проф доц напр т.е т.н т.к ок",
    "nl": "dhr mw mevr mej drs ir mr ing bijv bv nl d.w.z o.a m.n ca resp",
    "pl": "prof dr hab mgr inż ks św ul al pl np tzn tzw im gen płk",
    "cs": "p pí mgr ing bc mudr judr ul nám např tzv tj",
    "sv": "hr fr dr prof bl.a t.ex d.v.s s.k ca",
    "da": "hr fr dr prof bl.a f.eks dvs ca",
    "tr": "dr prof doç av sn bay cad sok mah örn",
}
_NUMBERS = {
    "": "no nos nr p pp vol fig figs tab eq art ch sec cap pag pag",
    "en": "jan feb mar apr jun jul aug sep sept oct nov dec para paras ver ed chap sect ca c fl "
    "approx est max min tel ext rev",
    "de": "abs s abb kap ziff rn §§ anm aufl bd jan feb apr aug sept okt nov dez art max min tel",
    "fr": "n art fig chap éd env vol tél",
    "es": "n núm núms pág págs fig cap art tel tfno vol aprox",
    "pt": "n núm pág págs fig cap art tel séc vol aprox inc",
    "it": "n pag pagg fig cap art tel sec vol",
    "ro": "pag fig cap art tel sec vol lit alin",
    "ru": "с стр рис табл гл ст п пп т тт ч тел см ок",
    "nl": "blz art nr hfst tel",
    "pl": "s str rys tab art ust pkt tel ok",
}
_STARTERS = {
    "en": "the a an it he she we they you i this that these those there here in on at but and or "
    "so if when while after before as for with from however then what why who how where my his "
    "her our their its no yes not one some many most all both each",
    "de": "der die das ein eine er sie es wir ihr ich dies diese dieser dieses dann da hier dort "
    "aber und oder wenn als nach vor für mit von in im am auf bei zu was warum wer wie wo sein "
    "seine ihre unser nicht kein keine doch auch so",
    "fr": "le la les un une des il elle ils elles nous vous je tu ce cet cette ces mais et ou si "
    "quand après avant pour avec dans en on que qui son sa ses leur puis alors c'est ils",
    "es": "el la los las un una él ella ellos nosotros yo tú este esta estos esto ese pero y o si "
    "cuando después antes para con en que quien su sus luego entonces no sí",
    "pt": "o a os as um uma ele ela eles elas nós eu você este esta isto esse essa isso mas e ou "
    "se quando depois antes para com em no na que quem seu sua então não sim",
    "it": "il lo la i gli le un una uno egli lui lei loro noi io questo questa ma e o se quando "
    "dopo prima per con in che chi suo sua poi allora non",
    "ro": "el ea ei ele noi eu acest această acesta dar și sau dacă când după pentru cu în ce cine "
    "apoi nu",
    "ru": "он она оно они мы я ты вы это этот эта эти но и или если когда после для с в на что "
    "кто как где его её их потом там тут не да нет",
}
#: German months and nouns have capitals; elsewhere what follows an ordinal is small.
_ORDINALS = frozenset({"de"})


@cache
def abbreviations(language: str | None) -> Abbreviations:
    """The lists of a language (`de`, `pt-BR`, `deu_Latn`), or of all if it is unknown here."""
    code = short_code(language) if language else None
    if code not in _NAMES | _NUMBERS | _STARTERS:
        code = None

    def words(table: dict[str, str]) -> frozenset[str]:
        codes = table if code is None else ("", code)
        return frozenset(word for name in codes for word in table.get(name, "").split())

    return Abbreviations(
        words(_NAMES), words(_NUMBERS), words(_STARTERS), code is None or code in _ORDINALS
    )
