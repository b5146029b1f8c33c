"""Recipes in YAML files, and the `key=value` overrides of the command line.

`load_recipe("recipe.yaml", ["model.decoder_layers=2"])` returns a `Recipe`, or raises an error of
one line that names the file and the key.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from bothends.errors import UsageError, nearest
from bothends.storage.checked import Checked
from bothends.storage.records import read_bounded
from bothends.storage.schemas import first_problem
from bothends.storage.yaml_records import LARGEST_YAML, parse_yaml
from bothends.training.recipe import Recipe


def load_recipe(path: Path, overrides: Sequence[str] = ()) -> Recipe:
    """The recipe in a YAML file with `key=value` overrides, whose values are YAML too."""
    content = read_yaml(Path(path))
    places = dict.fromkeys(_leaves(content), str(path))
    for override in overrides:
        key, value = parse_override(override)
        _check_keys({key: None}, "override")
        set_key(content, key.split("."), value)
        places[key] = "override"
    _check_keys(content, str(path))
    try:
        recipe = Recipe.model_validate(content)
    except ValidationError as error:
        key = ".".join(str(part) for part in error.errors()[0]["loc"])
        place = next((places[known] for known in places if key.startswith(known)), str(path))
        value = error.errors()[0]["input"]
        came = "" if isinstance(value, (dict, BaseModel)) else f", not {reprlib.repr(value)}"
        raise UsageError(f"{place}: {first_problem(error)}{came}") from None
    if recipe.run is None:
        recipe = recipe.model_copy(update={"run": Path("runs") / f"{path.stem}-{recipe.order}"})
    return recipe


def parse_override(override: str) -> tuple[str, Any]:
    """Dotted key and value of `key=value`."""
    key, equals, text = override.partition("=")
    if not equals:
        raise UsageError(f"{override!r}: expected KEY=VALUE, such as model.decoder_layers=2")
    try:
        return key, parse_yaml(text)
    except (yaml.YAMLError, ValueError):  # the latter of a date that no calendar has
        raise UsageError(f"{override!r}: the value is not YAML") from None


def read_yaml(path: Path) -> dict[str, Any]:
    """The keys and values of a file, not checked yet."""
    try:
        content = parse_yaml(read_bounded(path, LARGEST_YAML).decode("utf-8-sig"))
    except FileNotFoundError:
        raise UsageError(f"{path}: no such recipe") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read ({error})") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}:" if mark else ""
        problem = getattr(error, "problem", None) or error
        raise UsageError(f"{path}:{line} not YAML: {problem}") from None
    except ValueError as error:
        raise UsageError(f"{path}: not YAML: {error}") from None
    if not isinstance(content, dict):
        raise UsageError(f"{path}: expected keys and values, as in `order: 2x1`")
    return content


def set_key(content: dict[str, Any], keys: list[str], value: Any) -> None:
    """Set a nested key, making the sections that it is in."""
    for key in keys[:-1]:
        inner = content.get(key)
        if not isinstance(inner, dict):
            inner = content[key] = {}
        content = inner
    content[keys[-1]] = value


def _leaves(content: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in content.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def _check_keys(content: dict[str, Any], place: str) -> None:
    """Refuse the first key, nested or dotted, that a recipe does not have."""
    known = set(known_keys())
    sections = {key.rsplit(".", depth)[0] for key in known for depth in (1, 2)}
    for key in _leaves(content):
        if key not in known | sections and not key.startswith(WHOLE):
            raise UsageError(f"{place}: unknown key {key!r}; {nearest(key, known)}")


#: A value that is a structure itself, and checked as a whole.
WHOLE = "data.prepared"


def known_keys(section: type[BaseModel] = Recipe, prefix: str = "") -> Iterator[str]:
    """Every dotted key of a recipe."""
    for name, field in section.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from known_keys(inner, f"{prefix}{name}.")
        elif isinstance(inner, type) and issubclass(inner, Checked):
            yield from (f"{prefix}{name}.{part.name}" for part in fields(inner))
        else:
            yield f"{prefix}{name}"
