"""The text side of a Hugging Face model: its tokenizer, and the tokens around a text.

Marian and M2M-100 come with SentencePiece models and a list of entries; the others with
`tokenizer.json`. Multilingual models are converted for one pair of languages.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bothends.convert.huggingface_config import Settings, read_json
from bothends.convert.options import ConvertOptions
from bothends.errors import BothendsError, UsageError, nearest
from bothends.model.config import ModelConfig
from bothends.storage.records import read_foreign_json
from bothends.text.foreign import (
    ForeignVocabulary,
    Kind,
    VocabularyContent,
    load_sentencepiece,
    load_tokenizer,
)
from bothends.text.vocabulary import Side, Vocabularies

TOKENIZER = "tokenizer.json"
#: The languages of M2M-100 in the order of their ids, which follow those of the entries.
_M2M_LANGUAGES = (
    "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu "
    "ha he hi hr ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr "
    "ms my ne nl no ns oc or pa pl ps pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk "
    "ur uz vi wo xh yi yo zh zu "
).split()


@dataclass(frozen=True)
class SideText:
    """How one side's text is cut."""

    path: Path
    kind: Kind
    file: bytes
    entries: tuple[str, ...]
    silent: tuple[int, ...]
    unknown: int
    language_marks: bool = False


@dataclass(frozen=True)
class ForeignText:
    """All that surrounds the network."""

    source: SideText
    target: SideText
    start: int
    source_prefix: tuple[int, ...] = ()
    #: `None` is the end symbol
    source_suffix: tuple[int, ...] | None = None
    prompt: tuple[int, ...] = ()
    source_language: str | None = None
    target_language: str | None = None

    @property
    def unknown(self) -> int:
        return self.target.unknown

    def vocabularies(self, config: ModelConfig) -> Vocabularies:
        if self.source == self.target and config.vocabulary_size == config.target_size:
            joint = _vocabulary(self.source, config, config.target_size)
            return Vocabularies(joint, joint)
        return Vocabularies(
            _vocabulary(self.source, config, config.vocabulary_size),
            _vocabulary(self.target, config, config.target_size),
        )


def _vocabulary(side: SideText, config: ModelConfig, size: int) -> ForeignVocabulary:
    if len(side.entries) > size:
        raise BothendsError(
            f"{side.path}: {len(side.entries)} entries, but the model has {size} words: "
            "it is the vocabulary of another model"
        )
    content = VocabularyContent(
        kind=side.kind,
        special=replace(config.special, unknown=side.unknown),
        size=size,
        entries=side.entries,
        silent=side.silent,
        language_marks=side.language_marks,
    )
    return ForeignVocabulary(side.path, content, side.file)


def read_text(directory: Path, settings: Settings, options: ConvertOptions) -> ForeignText:
    """The tokenizer in `directory`, and what stands around a text."""
    match settings.family:
        case "marian":
            return _marian(directory, settings)
        case "m2m_100" if (directory / "sentencepiece.bpe.model").is_file() and (
            directory / "vocab.json"
        ).is_file():
            return _m2m(directory, settings, options)
        case _:
            return _from_tokenizer(directory, settings, options)


def _marian(directory: Path, settings: Settings) -> ForeignText:
    sides = []
    for side, spm, vocabulary in _marian_files(directory):
        entries = _entries(vocabulary)
        unknown = _find(entries, "<unk>", vocabulary)
        silent = [_find(entries, name, vocabulary) for name in ("</s>", "<unk>", "<pad>")]
        sides.append(
            SideText(
                path=spm,
                kind="pieces",
                file=_sentencepiece(spm),
                entries=entries,
                silent=tuple(sorted(silent)),
                unknown=unknown,
                language_marks=side == "source",
            )
        )
    source, target = sides
    return ForeignText(source, target, start=settings.required_token("decoder_start_token_id"))


def _marian_files(directory: Path) -> list[tuple[Side, Path, Path]]:
    target = directory / "target_vocab.json"
    joint = directory / "vocab.json"
    return [
        ("source", directory / "source.spm", joint),
        ("target", directory / "target.spm", target if target.is_file() else joint),
    ]


def _m2m(directory: Path, settings: Settings, options: ConvertOptions) -> ForeignText:
    spm, vocabulary = directory / "sentencepiece.bpe.model", directory / "vocab.json"
    entries = list(_entries(vocabulary))
    tokenizer_config = _tokenizer_config(directory)
    languages = _added_tokens(directory, tokenizer_config, len(entries))
    words = settings.whole("vocab_size")
    for token in sorted(languages):
        if token >= words:
            raise BothendsError(
                f"{directory}: the tokenizer has a token {token}, but the model has {words} words"
            )
        entries.extend([""] * (token + 1 - len(entries)))
        entries[token] = languages[token]
    codes = {
        content.strip("_"): token
        for token, content in languages.items()
        if content.startswith("__") and content.endswith("__")
    }
    source, target = _languages(directory, codes, tokenizer_config, options)
    ends = [_find(tuple(entries), name, vocabulary) for name in ("<s>", "<pad>", "</s>", "<unk>")]
    side = SideText(
        path=spm,
        kind="pieces",
        file=_sentencepiece(spm),
        entries=tuple(entries),
        silent=tuple(sorted({*ends, *codes.values()})),
        unknown=_find(tuple(entries), "<unk>", vocabulary),
    )
    return ForeignText(
        side,
        side,
        start=settings.required_token("decoder_start_token_id"),
        source_prefix=(codes[source],),
        prompt=(codes[target],),
        source_language=source,
        target_language=target,
    )


def _from_tokenizer(directory: Path, settings: Settings, options: ConvertOptions) -> ForeignText:
    path = directory / TOKENIZER
    try:
        file = path.read_bytes()
    except FileNotFoundError:
        raise BothendsError(
            f"{directory}: no tokenizer, {TOKENIZER} is missing; write it with transformers: "
            "AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)"
        ) from None
    tokenizer = load_tokenizer(file, path)
    tokenizer_config = _tokenizer_config(directory)
    added = tokenizer.get_added_tokens_decoder()
    special = {token: str(each) for token, each in added.items() if each.special}
    unknown = tokenizer.token_to_id("<unk>")
    if unknown is None:
        unknown = settings.token("unk_token_id") or settings.required_token("pad_token_id")
    side = SideText(
        path=path,
        kind="tokenizer",
        file=file,
        entries=(),
        silent=tuple(sorted(special)),
        unknown=unknown,
    )
    end = settings.required_token("eos_token_id")
    start = settings.token("decoder_start_token_id")
    forced = settings.token("forced_bos_token_id")
    if settings.family in ("mbart", "m2m_100"):
        codes = {content: token for token, content in special.items() if "_" in content}
        source, target = _languages(directory, codes, tokenizer_config, options)
        behind = settings.family == "mbart" and "50" not in str(
            tokenizer_config.get("tokenizer_class", "")
        )
        if behind:  # mBART of 25 languages: `text </s> source`, and the target is the start
            return ForeignText(
                side,
                side,
                start=codes[target],
                source_suffix=(end, codes[source]),
                source_language=source,
                target_language=target,
            )
        return ForeignText(
            side,
            side,
            start=end if start is None else start,
            source_prefix=(codes[source],),
            prompt=(codes[target],),
            source_language=source,
            target_language=target,
        )
    prefix = () if settings.family == "pegasus" else (settings.required_token("bos_token_id"),)
    return ForeignText(
        side,
        side,
        start=settings.required_token("decoder_start_token_id"),
        source_prefix=prefix,
        prompt=() if forced is None else (forced,),
    )


def _tokenizer_config(directory: Path) -> dict[str, Any]:
    path = directory / "tokenizer_config.json"
    return read_json(path) if path.is_file() else {}


def _added_tokens(directory: Path, config: dict[str, Any], first: int) -> dict[int, str]:
    """Tokens beyond the list of entries, by id."""
    added = config.get("added_tokens_decoder")
    if isinstance(added, dict):
        found = {
            int(token): str(each["content"])
            for token, each in added.items()
            if isinstance(each, dict) and str(token).isdigit() and "content" in each
        }
        if any(token >= first for token in found):
            return {token: content for token, content in found.items() if token >= first}
    path = directory / "special_tokens_map.json"
    named = read_json(path) if path.is_file() else config
    languages = named.get("additional_special_tokens")
    if not isinstance(languages, list) or not languages:
        if config.get("language_codes", "m2m100") != "m2m100":
            raise BothendsError(f"{directory}/tokenizer_config.json: it names no languages")
        languages = [f"__{code}__" for code in _M2M_LANGUAGES]
    return {first + number: str(content) for number, content in enumerate(languages)}


def _languages(
    directory: Path, codes: dict[str, int], config: dict[str, Any], options: ConvertOptions
) -> tuple[str, str]:
    """The pair of languages that the model is converted for."""
    chosen = []
    for option, wanted, default in (
        ("--source-language", options.source_language, config.get("src_lang")),
        ("--target-language", options.target_language, config.get("tgt_lang")),
    ):
        language = wanted or default
        if not isinstance(language, str):
            some = ", ".join(list(codes)[:5])
            raise UsageError(f"{directory}: a multilingual model, add {option} ({some}, ...)")
        if not isinstance(language, str) or language not in codes:
            raise UsageError(
                f"{directory}: {option} {language!r} is not one of its {len(codes)} languages; "
                f"{nearest(str(language), list(codes))}"
            )
        chosen.append(language)
    return chosen[0], chosen[1]


def _entries(path: Path) -> tuple[str, ...]:
    """The entries of `vocab.json` by their ids, which count from 0."""
    try:
        content = read_foreign_json(path)
        entries = sorted(content, key=content.__getitem__)
        numbers = [content[entry] for entry in entries]
    except FileNotFoundError:
        raise BothendsError(f"{path.parent}: no tokenizer, {path.name} is missing") from None
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise BothendsError(f"{path}: damaged, not a vocabulary ({error})") from None
    if numbers != list(range(len(entries))):
        raise BothendsError(f"{path}: ids should count from 0 to {len(entries) - 1}")
    return tuple(entries)


def _find(entries: tuple[str, ...], entry: str, path: Path) -> int:
    if entry not in entries:
        raise BothendsError(f"{path}: there is no entry {entry}")
    return entries.index(entry)


def _sentencepiece(path: Path) -> bytes:
    try:
        model = path.read_bytes()
    except FileNotFoundError:
        raise BothendsError(f"{path.parent}: no tokenizer, {path.name} is missing") from None
    except OSError as error:
        raise BothendsError(f"{path}: cannot be read ({error.strerror})") from None
    load_sentencepiece(model, path)
    return model
