"""Languages by one short code, however a model spells them: `pt`, `pt-BR`, `pt_XX`, `por_Latn`.

Models name their languages in their own way, and tables of ours have two letters. ISO 639-3 has
three; those of all languages that a table here or a detector knows are listed.
"""

from __future__ import annotations

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


def short_code(language: str) -> str:
    """The two letters of a language's code, or the first part of one that has none: `ast`."""
    first = language.replace("_", "-").split("-")[0].lower()
    return _TWO_LETTERS.get(first, first)
