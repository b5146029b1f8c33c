"""The settings of a Hugging Face model: `config.json` and its neighbours, read with care."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, cast, get_args

from bothends.errors import BothendsError
from bothends.storage.records import LARGEST_JSON, parse_json, read_bounded

#: Types of model that we know, by what they call themselves.
Family = Literal["bart", "m2m_100", "marian", "mbart", "pegasus"]
FAMILIES: tuple[Family, ...] = get_args(Family)
#: T5 and what was made of it.
_RELATIVE = ("longt5", "mt5", "switch_transformers", "t5", "udop", "umt5")
#: How architectures end that are made of the same layers, but do not write a text from a source.
_NO_GENERATORS = ("ForCausalLM", "ForSequenceClassification", "ForQuestionAnswering")
Activation = Literal["relu", "gelu", "gelu-tanh", "silu"]
_ACTIVATIONS: dict[str, Activation] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "silu": "silu",
    "swish": "silu",
}


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file."""
    try:
        content = parse_json(read_bounded(path, LARGEST_JSON))
    except FileNotFoundError:
        raise BothendsError(f"{path.parent}: {path.name} is missing") from None
    except OSError as error:
        raise BothendsError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise BothendsError(f"{path}: damaged, not JSON ({error})") from None
    if not isinstance(content, dict):
        raise BothendsError(f"{path}: damaged, expected an object")
    return content


class Settings:
    """The settings of one model, by the names that they have there."""

    def __init__(self, directory: Path) -> None:
        self.path = Path(directory) / "config.json"
        self._content = read_json(self.path)
        generation = Path(directory) / "generation_config.json"
        self._generation = read_json(generation) if generation.is_file() else {}

    @property
    def family(self) -> Family:
        found = self._content.get("model_type")
        if found in _RELATIVE:
            raise BothendsError(
                f"{self.path}: model type {found!r} cannot be converted: it knows words by their "
                "distance, which an order that writes from both ends does not have (docs/convert.md"
                f" says more); supported are {', '.join(FAMILIES)}"
            )
        if found not in FAMILIES:
            raise BothendsError(
                f"{self.path}: model type {found!r} cannot be converted; supported are encoder-"
                f"decoders of the types {', '.join(FAMILIES)} (NLLB is m2m_100), and CTranslate2's"
            )
        self._check_generates(cast(Family, found))
        return cast(Family, found)

    def _check_generates(self, family: Family) -> None:
        """Refuse a decoder alone, and a classifier: their type is that of the whole."""
        named = self._content.get("architectures")
        first = named[0] if isinstance(named, list) and named else None
        if self._content.get("is_encoder_decoder", True) is False:
            what = "is_encoder_decoder is false"
        elif isinstance(first, str) and first.endswith(_NO_GENERATORS):
            what = f"architecture {first}"
        else:
            return
        raise BothendsError(
            f"{self.path}: {what}, so this {family} cannot be converted; supported are encoder-"
            "decoders that generate"
        )

    def whole(self, *names: str, default: int | None = None) -> int:
        """A whole number that all these settings share."""
        value = self._content.get(names[0])
        if value is None and default is not None:
            return default
        if any(self._content.get(name) != value for name in names):
            raise BothendsError(
                f"{self.path}: {' and '.join(names)} differ, and our network has one size for both"
            )
        if type(value) is not int or value < 1:
            raise BothendsError(f"{self.path}: {names[0]} should be a whole number, not {value!r}")
        return value

    def token(self, name: str) -> int | None:
        """The id of a token, in either file; the one for generation counts more."""
        value = self._generation.get(name, self._content.get(name))
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if value is not None and (type(value) is not int or value < 0):
            raise BothendsError(f"{self.path}: {name} should be a token's id, not {value!r}")
        return value

    def required_token(self, name: str) -> int:
        value = self.token(name)
        if value is None:
            raise BothendsError(f"{self.path}: {name} is missing")
        return value

    def text(self, name: str) -> str | None:
        value = self._content.get(name)
        return value if isinstance(value, str) else None

    def flag(self, name: str, default: bool) -> bool:
        value = self._content.get(name, default)
        if type(value) is not bool:
            raise BothendsError(f"{self.path}: {name} should be true or false, not {value!r}")
        return value

    @property
    def activation(self) -> Activation:
        name = self._content.get("activation_function", "gelu")
        if not isinstance(name, str) or name not in _ACTIVATIONS:
            raise BothendsError(
                f"{self.path}: activation {name!r} is not supported; known are "
                f"{', '.join(_ACTIVATIONS)}"
            )
        return _ACTIVATIONS[name]

    @property
    def forbidden(self) -> list[int]:
        """Tokens that are never generated."""
        words = self._generation.get("bad_words_ids", self._content.get("bad_words_ids")) or []
        well_formed = isinstance(words, list) and all(
            isinstance(word, list) and all(type(token) is int and token >= 0 for token in word)
            for word in words
        )
        if not well_formed:
            raise BothendsError(f"{self.path}: bad_words_ids should be lists of token ids")
        return [word[0] for word in words if len(word) == 1]
