"""Models by name: a path, a bundled model (part of the installed package), or one on the Hub.

Little is imported here: a translation begins by finding its model.
"""

from __future__ import annotations

from pathlib import Path

from bothends.errors import BothendsError, UsageError
from bothends.model.hub import HubName, download, is_hub_name

#: Their directory.
BUNDLED = Path(__file__).parents[1] / "models"
#: Default model.
DEFAULT_MODEL = "en-pt-1x1"


def bundled_models() -> list[str]:
    """The names of all bundled models."""
    return sorted(path.name for path in BUNDLED.glob("*") if path.is_dir())


def find_model(model: Path | str | None = None, *, weights: bool = False) -> Path:
    """The directory of a model: a path, a bundled model, one on the Hub, or the default one.

    A directory of the user's comes before a bundled model of the same name. `weights` asks for
    those of a model on the Hub, too, which are not downloaded otherwise: they are four times as
    large as its int8 graphs.
    """
    if model is None:
        directory = BUNDLED / DEFAULT_MODEL
        if not directory.is_dir():
            raise BothendsError(
                "this installation has no bundled model: name a model directory "
                "(--model DIR, or Translator.load(directory))"
            )
        return directory
    if is_hub_name(model):
        return _download_model(HubName.parse(str(model)), weights)
    if str(model) in bundled_models() and not Path(model).is_dir():
        return BUNDLED / model
    if not Path(model).is_dir():
        raise BothendsError(
            f"{model}: no such model directory, nor a bundled model "
            f"({', '.join(bundled_models()) or 'there is none'}); models of the Hub are hf:org/name"
        )
    return Path(model)


def find_trainable(model: Path | str) -> Path:
    """The directory of a model whose weights are wanted, which bundled ones do not have."""
    if is_hub_name(model):
        return find_model(model, weights=True)
    if str(model) in bundled_models() and not Path(model).is_dir():
        raise BothendsError(
            f"{model}: a bundled model can only translate, its weights are not in the package; "
            "name a model directory of yours"
        )
    return Path(model)


def find_if_named(model: Path, *, weights: bool = False) -> Path:
    """The directory of a bundled model or one on the Hub; any other path unchanged."""
    named = str(model) in bundled_models() or is_hub_name(model)
    return find_model(model, weights=weights) if named else model


def refuse_to_write(model: Path | str, instead: str) -> None:
    """Complain about a command that would change a model in the Hub's cache."""
    if is_hub_name(model):
        raise UsageError(f"{model}: nothing is written to the Hub's cache; {instead}")


def refuse_to_change(model: Path | str, instead: str) -> None:
    """Complain about a command that would change a model which is not the user's own."""
    refuse_to_write(model, instead)
    if str(model) in bundled_models() and not Path(model).is_dir():
        raise UsageError(f"{model}: a bundled model stays as it is in the package; {instead}")


def _download_model(name: HubName, weights: bool) -> Path:
    from bothends.model.directory import CARD, CONFIG, FILES, WEIGHTS
    from bothends.storage.digests import DIGESTS

    # First the one file that tells whose model it is: others are gigabytes, and called the same.
    directory = download(name, [CONFIG])
    if not _is_ours(directory / CONFIG):
        raise BothendsError(
            f"{name}: not a model of bothends; `bothends convert {name} --output DIR` makes one of "
            "it if it can, then use DIR"
        )
    wanted = [file for file in (*FILES, DIGESTS, CARD) if weights or file != WEIGHTS]
    # By its commit: the branch may move in between.
    return download(HubName(name.repository, directory.name), wanted)


def _is_ours(config: Path) -> bool:
    """Whether it was written here, as far as one can tell; whoever reads it says what is wrong."""
    from bothends.storage.records import LARGEST_JSON, parse_json, read_bounded

    if not config.is_file():
        return False
    try:
        content = parse_json(read_bounded(config, LARGEST_JSON))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and "format_version" in content
