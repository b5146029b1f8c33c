"""Dataclasses that check their values: what they take, what they refuse, and in which words."""

from __future__ import annotations

import json
import math
from dataclasses import FrozenInstanceError, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, ValidationError

from bothends.order import GenerationOrder
from bothends.storage.checked import Bounds, Checked, CheckError, Pattern
from bothends.storage.schemas import Strict, first_problem

Name = Annotated[str, Pattern("^[a-z]+$")]


@dataclass(frozen=True, kw_only=True)
class Inner(Checked):
    share: Annotated[float, Bounds(least=0, below=1)] = 0.5
    many: Annotated[float, Bounds(above=0)] = 1.0


@dataclass(frozen=True, kw_only=True)
class Everything(Checked):
    count: Annotated[int, Bounds(least=1, most=9)]
    ratio: float = 1.0
    flag: bool = False
    name: str = "a"
    code: Name = "a"
    kind: Literal["x", "y", "z"] = "x"
    inner: Inner = Inner()
    order: GenerationOrder = field(default_factory=GenerationOrder)
    limit: Annotated[int, Bounds(least=0)] | None = None
    numbers: tuple[int, ...] = ()
    words: tuple[str, ...] | None = None
    inners: dict[Name, Inner] = field(default_factory=dict)
    anything: dict[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        if self.count in self.numbers:
            raise CheckError(f"count {self.count} is one of the numbers")


CHANGES: dict[str, Any] = {
    "count": 9,
    "ratio": -0.25,
    "flag": True,
    "name": "",
    "code": "bc",
    "kind": "z",
    "inner": {"share": 0.0, "many": 2.0},
    "order": "2x2+vanilla-mask",
    "limit": 0,
    "numbers": [3, -1],
    "words": [],
    "inners": {"b": {"share": 0.25, "many": 1.0}},
    "anything": {"deep": [1, {"x": None}]},
}


@pytest.mark.parametrize("content", [{"count": 1}, CHANGES])
def test_what_is_read_is_written_again(content: dict[str, Any]) -> None:
    record = Everything.read(content)
    dump = record.dump()
    assert {name: dump[name] for name in content} == content
    assert list(dump) == list(CHANGES)
    assert Everything.read(json.loads(json.dumps(dump))) == record


def test_anything_is_written_as_json_can_hold_it() -> None:
    anything = {"path": Path("a"), "loss": math.nan, "pairs": [(1, math.inf)], "flag": True}
    dump = Everything(count=1, anything=anything).dump()["anything"]
    assert dump == {"path": "a", "loss": None, "pairs": [[1, None]], "flag": True}


def test_values_have_the_types_of_their_fields() -> None:
    record = Everything.read({**CHANGES, "ratio": 2})
    assert (record.ratio, type(record.ratio)) == (2.0, float)
    assert record.inner == Inner(share=0, many=2)
    assert record.order == GenerationOrder(2, 2, vanilla_mask=True)
    assert record.numbers == (3, -1)
    assert record.inners == {"b": Inner(share=0.25)}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (dict(depth=3), "depth: Extra inputs are not permitted"),
        (dict(inner={"depth": 3}), "inner.depth: Extra inputs are not permitted"),
        (dict(count=0), "count: Input should be greater than or equal to 1"),
        (dict(count=10), "count: Input should be less than or equal to 9"),
        (dict(count=True), "count: Input should be a valid integer"),
        (dict(count="1"), "count: Input should be a valid integer"),
        (dict(count=1.0), "count: Input should be a valid integer"),
        (dict(count=None), "count: Input should be a valid integer"),
        (dict(ratio="1"), "ratio: Input should be a valid number"),
        (dict(ratio=True), "ratio: Input should be a valid number"),
        (dict(ratio=math.nan), "ratio: Input should be a finite number"),
        (dict(ratio=-math.inf), "ratio: Input should be a finite number"),
        (dict(flag=1), "flag: Input should be a valid boolean"),
        (dict(flag="yes"), "flag: Input should be a valid boolean"),
        (dict(name=1), "name: Input should be a valid string"),
        (dict(code="a\n"), "code: String should match pattern '^[a-z]+$'"),
        (dict(kind="w"), "kind: Input should be 'x', 'y' or 'z'"),
        (dict(kind=["x"]), "kind: Input should be 'x', 'y' or 'z'"),
        (dict(inner=3), "inner: Input should be a valid dictionary"),
        (dict(inner={"share": 1}), "inner.share: Input should be less than 1"),
        (dict(inner={"many": 0}), "inner.many: Input should be greater than 0"),
        (dict(order=2), "order: Input should be a valid string"),
        (
            dict(order="2x1+vanila-mask"),
            "order: bad generation order '2x1+vanila-mask': unknown variant 'vanila-mask'; "
            "did you mean vanilla-mask?",
        ),
        (dict(limit=-1), "limit: Input should be greater than or equal to 0"),
        (dict(limit="none"), "limit: Input should be a valid integer"),
        (dict(numbers=3), "numbers: Input should be a valid tuple"),
        (dict(numbers="34"), "numbers: Input should be a valid tuple"),
        (dict(numbers=[3, True]), "numbers.1: Input should be a valid integer"),
        (dict(words=["a", "b", None]), "words.2: Input should be a valid string"),
        (dict(inners=[]), "inners: Input should be a valid dictionary"),
        (dict(inners={"a": {"many": 0}}), "inners.a.many: Input should be greater than 0"),
        (dict(inners={"..": {}}), "inners....[key]: String should match pattern '^[a-z]+$'"),
        (dict(anything=[]), "anything: Input should be a valid dictionary"),
        (dict(numbers=[1]), "count 1 is one of the numbers"),
    ],
)
def test_a_mistake_is_one_line_that_says_where(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(CheckError) as refusal:
        Everything.read({"count": 1, **change})
    assert str(refusal.value) == complaint


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ({}, "count: Field required"),
        ([], "Input should be a valid dictionary"),
        (None, "Input should be a valid dictionary"),
    ],
)
def test_what_is_not_such_an_object(content: Any, complaint: str) -> None:
    with pytest.raises(CheckError) as refusal:
        Everything.read(content)
    assert str(refusal.value) == complaint


def test_an_object_is_checked_however_it_is_made() -> None:
    record = Everything(count=1)
    with pytest.raises(FrozenInstanceError):
        record.count = 2  # type: ignore[misc]
    with pytest.raises(CheckError, match="count: Input should be less"):
        replace(record, count=10)
    with pytest.raises(CheckError, match="count 1 is one of the numbers"):
        replace(record, numbers=(1,))
    assert hash(Inner(share=0)) == hash(Inner(share=0.0))


class Model(Strict):
    """A pydantic model with such a field, as manifests and recipes have."""

    inner: Inner = Inner()
    names: dict[Name, Inner] = Field(default_factory=dict)


@pytest.mark.parametrize(
    "content",
    [
        {"inner": {"share": 1}},
        {"inner": {"share": -1}},
        {"inner": {"many": 0}},
        {"inner": {"depth": 3}},
        {"names": {"..": {}}},
        {"names": {"a": {"share": 1}}},
    ],
)
def test_pydantic_says_the_same(content: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as theirs:
        Model.model_validate(content)
    with pytest.raises(CheckError) as ours:
        Same.read(content)
    assert first_problem(theirs.value) == str(ours.value)


@dataclass(frozen=True, kw_only=True)
class Same(Checked):
    """The fields of `Model`, without pydantic."""

    inner: Inner = Inner()
    names: dict[Name, Inner] = field(default_factory=dict)


def test_a_pydantic_model_reads_and_writes_such_a_field() -> None:
    content = {"inner": {"share": 0.25, "many": 2.0}, "names": {"a": {"share": 0.0, "many": 1.0}}}
    model = Model.model_validate(content)
    assert model.inner == Inner(share=0.25, many=2)
    assert model.model_dump(mode="json") == content
