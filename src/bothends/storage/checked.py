"""Dataclasses that check their values, for what every translation reads.

    @dataclass(frozen=True, kw_only=True)
    class Dropout(Checked):
        residual: Annotated[float, Bounds(least=0, below=1)] = 0.1

    Dropout.read({"residual": 2})  # residual: Input should be less than 1

Pydantic can do far more, but to import it takes longer than a small model takes to load. Complaints
are in its words, so that a recipe and a model say the same of the same mistake. Its models may have
a `Checked` as a field, or inherit the fields of a dataclass, bounds included.
"""

from __future__ import annotations

import math
import re
from dataclasses import MISSING, dataclass, fields
from functools import cache
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from bothends.errors import BothendsError

if TYPE_CHECKING:
    from typing_extensions import Self


class CheckError(ValueError):
    """What is wrong with a value, in one line that begins with where it stands."""

    def __init__(self, problem: str, *where: object) -> None:
        place = ".".join(map(str, where))
        super().__init__(f"{place}: {problem}" if place else problem)
        self.problem, self.where = problem, where

    def inside(self, name: object) -> CheckError:
        """The same, said by the whole that has the value in its part `name`."""
        return CheckError(self.problem, name, *self.where)


@dataclass(frozen=True)
class Bounds:
    """What a number may be, as in `Annotated[int, Bounds(least=1)]`."""

    least: int | None = None
    above: int | None = None
    most: int | None = None
    below: int | None = None

    def check(self, value: float) -> None:
        if self.least is not None and value < self.least:
            raise CheckError(f"Input should be greater than or equal to {self.least}")
        if self.above is not None and value <= self.above:
            raise CheckError(f"Input should be greater than {self.above}")
        if self.most is not None and value > self.most:
            raise CheckError(f"Input should be less than or equal to {self.most}")
        if self.below is not None and value >= self.below:
            raise CheckError(f"Input should be less than {self.below}")

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        bounds = {"ge": self.least, "gt": self.above, "le": self.most, "lt": self.below}
        return handler(source) | {name: x for name, x in bounds.items() if x is not None}


@dataclass(frozen=True)
class Pattern:
    """What a text as a whole may be, as in `Annotated[str, Pattern("^[0-9]+$")]`."""

    expression: str

    def check(self, value: str) -> None:
        if not re.fullmatch(self.expression, value):
            raise CheckError(f"String should match pattern '{self.expression}'")

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return handler(source) | {"pattern": self.expression}


@dataclass(frozen=True, kw_only=True)
class Checked:
    """A value object whose fields are what their annotations say, however it was made.

    A field is a number, a truth value, a text, one of some words, another `Checked`, an object of a
    class with a method `parse`, which is written as text, or `Any`; a tuple or a dictionary of
    these; or `None` where that is allowed. A list becomes a tuple, a dictionary a `Checked`, and a
    whole number a `float`. Nothing else is converted: a text is no number, and `True` is not 1.
    """

    #: what pydantic does where one of its models has this as a field
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    def __post_init__(self) -> None:
        own: type = type(self)
        for name, kind in _kinds(own).items():
            object.__setattr__(self, name, _part(name, kind, getattr(self, name)))
        self.check()

    def check(self) -> None:
        """Raise a `CheckError` if the fields do not go together."""

    @classmethod
    def read(cls, content: Any) -> Self:
        """The object that plain data describes, or a `CheckError`. The reverse of `dump`."""
        if not isinstance(content, dict):
            raise CheckError("Input should be a valid dictionary")
        known = {field.name: field for field in fields(cls)}
        for name, field in known.items():
            if name not in content and field.default is field.default_factory is MISSING:
                raise CheckError("Field required", name)
        for name in content:
            if name not in known:
                raise CheckError("Extra inputs are not permitted", name)
        return cls(**content)

    def dump(self) -> dict[str, Any]:
        """Plain data, as JSON can hold it."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}


@cache
def _kinds(record: type) -> dict[str, Any]:
    """The types of the fields, by name."""
    kinds = get_type_hints(record, include_extras=True)
    return {field.name: kinds[field.name] for field in fields(record)}


def _part(name: object, kind: Any, value: Any) -> Any:
    """`value`, the part `name` of some whole, as a value of type `kind`."""
    try:
        return _as(kind, value)
    except CheckError as error:
        raise error.inside(name) from None


def _as(kind: Any, value: Any) -> Any:
    """`value` as a value of type `kind`, or a `CheckError`."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is None:
        return _as_class(kind, value)
    if origin is Annotated:
        value = _as(arguments[0], value)
        for rule in arguments[1:]:
            rule.check(value)
        return value
    if origin in (Union, UnionType):
        (some,) = (each for each in arguments if each is not NoneType)
        return None if value is None else _as(some, value)
    if origin is Literal:
        return _as_word(arguments, value)
    if origin is tuple:
        return _as_tuple(arguments[0], value)
    assert origin is dict, kind
    return _as_dictionary(arguments, value)


def _as_class(kind: Any, value: Any) -> Any:
    if kind is Any:
        return value
    if kind is bool:
        return _instance(bool, value, "boolean")
    if kind is str:
        return _instance(str, value, "string")
    if kind is int:
        return _instance(int, value, "integer")
    if kind is float:
        if not math.isfinite(_instance((int, float), value, "number")):
            raise CheckError("Input should be a finite number")
        return float(value)
    if isinstance(value, kind):
        return value
    if issubclass(kind, Checked):
        return kind.read(value)
    try:
        return kind.parse(_instance(str, value, "string"))
    except BothendsError as error:
        raise CheckError(str(error)) from None


def _instance(kind: type | tuple[type, ...], value: Any, name: str) -> Any:
    # Truth values are whole numbers to Python, but nobody means them so.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise CheckError(f"Input should be a valid {name}")
    return value


def _as_word(words: tuple[str, ...], value: Any) -> str:
    if not isinstance(value, str) or value not in words:
        *others, last = map(repr, words)
        raise CheckError(f"Input should be {', '.join(others)} or {last}")
    return value


def _as_tuple(kind: Any, value: Any) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise CheckError("Input should be a valid tuple")
    if {kind} == set(map(type, value)):  # at once, as a vocabulary has tens of thousands
        return tuple(value)
    return tuple(_part(number, kind, item) for number, item in enumerate(value))


def _as_dictionary(kinds: tuple[Any, ...], value: Any) -> dict[Any, Any]:
    key, kind = kinds
    if not isinstance(value, dict):
        raise CheckError("Input should be a valid dictionary")
    for name in value:
        try:
            _part("[key]", key, name)
        except CheckError as error:
            raise error.inside(name) from None
    return {name: _part(name, kind, item) for name, item in value.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Checked):
        return value.dump()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, float):  # inside of `Any` it may be infinite, which JSON has no word for
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (str, int)) else str(value)
