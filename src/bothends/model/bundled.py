"""Bundled models: model directories that are part of the installed package, by name."""

from __future__ import annotations

from pathlib import Path

from bothends.errors import BothendsError

#: Their directory.
BUNDLED = Path(__file__).parents[1] / "models"
#: Default model.
DEFAULT_MODEL = "en-de-2x1"


def bundled_models() -> list[str]:
    """The names of all bundled models."""
    return sorted(path.name for path in BUNDLED.glob("*") if path.is_dir())


def find_model(model: Path | str | None = None) -> Path:
    """The directory of a model: a path, the name of a bundled model, or the default one.

    A directory of the user's comes before a bundled model of the same name.
    """
    if model is None:
        directory = BUNDLED / DEFAULT_MODEL
        if not directory.is_dir():
            raise BothendsError(
                "this installation has no bundled model: name a model directory "
                "(--model DIR, or Translator.load(directory))"
            )
        return directory
    if str(model) in bundled_models() and not Path(model).is_dir():
        return BUNDLED / model
    if not Path(model).is_dir():
        raise BothendsError(
            f"{model}: no such model directory, nor a bundled model "
            f"({', '.join(bundled_models()) or 'there is none'})"
        )
    return Path(model)


def find_trainable(model: Path | str) -> Path:
    """The directory of a model whose weights are wanted, which bundled ones do not have."""
    if str(model) in bundled_models() and not Path(model).is_dir():
        raise BothendsError(
            f"{model}: a bundled model can only translate, its weights are not in the package; "
            "name a model directory of yours"
        )
    return Path(model)
