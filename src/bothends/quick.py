"""`bothends translate` with the plainest options, without the parser of all commands and options.

Who translates one line waits for the program to start, and loading that parser takes longer than
loading a small model. Whatever is not plain, a mistake above all, is left to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

#: Options with a value that are understood here, and the values that some of them have.
_OPTIONS: dict[str, tuple[str, ...] | None] = {
    "--model": None,
    "--beam": None,
    "--engine": ("native", "onnx"),
}


def plain_translation(arguments: Sequence[str]) -> Callable[[], None] | None:
    """The translation that a command line asks for, or None if it is not a plain one."""
    if not arguments or arguments[0] != "translate":
        return None
    given: dict[str, str] = {}
    files: list[str] = []
    words = iter(arguments[1:])
    for word in words:
        if not word.startswith("-"):
            files.append(word)
            continue
        name, equals, value = word.partition("=")
        if name not in _OPTIONS or name in given:
            return None
        given[name] = value if equals else next(words, "-")
        known = _OPTIONS[name]
        if given[name][:1] in ("", "-") or (known is not None and given[name] not in known):
            return None
    beam = given.get("--beam", "1")  # any number stands for the default
    # A name that tells a format, or holds a pattern, takes more thought.
    plain = all(word and not Path(word).suffix and not set("*?[") & set(word) for word in files)
    number = beam.isascii() and beam.isdecimal() and len(beam) < 10 and int(beam) > 0
    if not plain or not number:
        return None
    return lambda: _translate(files, given)


def _translate(files: Sequence[str], given: dict[str, str]) -> None:
    model, engine = given.get("--model"), given.get("--engine")
    _unpack(model)

    from bothends.translating.load_options import LoadOptions
    from bothends.translating.request import TranslationRequest, carry_out
    from bothends.translating.translation import TranslationOptions

    options = TranslationOptions()
    if "--beam" in given:
        options = TranslationOptions(beam=int(given["--beam"]))
    carry_out(
        TranslationRequest(
            [Path(file) for file in files],
            model=Path(model) if model else None,
            loading=LoadOptions(engine),  # type: ignore[arg-type]  # one of its names
            options=options,
        )
    )


def _unpack(model: str | None) -> None:
    """Let a compressed model unpack while all else is imported; a mistake is reported later."""
    from bothends.errors import BothendsError
    from bothends.model.bundled import find_model
    from bothends.model.graph_files import unpack_ahead
    from bothends.model.hub import is_hub_name

    if model is None or not is_hub_name(model):
        with suppress(BothendsError):
            unpack_ahead(find_model(model))
