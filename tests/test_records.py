"""JSON and YAML that were written to bring a reader down."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from bothends.errors import BothendsError
from bothends.storage.records import DEEPEST, parse_json, read_bounded
from bothends.storage.yaml_records import parse_yaml


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


def aliases(levels: int) -> str:
    """Each line stands for nine times the values of the line before."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    for level in range(1, levels):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]")
    return "\n".join(lines)


def merges(levels: int) -> str:
    lines = ["a0: &a0 {k: 1, l: 2}"]
    for level in range(1, levels):
        lines.append(f"a{level}: &a{level} {{<<: [*a{level - 1}, *a{level - 1}]}}")
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (nested(100_000), "levels deep"),
        (nested(DEEPEST + 2), "levels deep"),
        ('{"a":' * 500 + "1" + "}" * 500, "levels deep"),
        ('["\\ud800"]', "surrogate pair"),
        ('["\\u0000"]', "NUL"),
        ("1" * 100, "128 bits"),
        ("1" * 10_000, "digits"),
        ("\xff", "byte 0 is not utf-8"),
    ],
)
def test_json_that_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse_json(text.encode("latin-1"))


@pytest.mark.parametrize(
    "value", [[], {}, {"a": [1, 2.5, None, True, "ä"]}, 2**64, json.loads(nested(DEEPEST))]
)
def test_json_that_is_taken(value: Any) -> None:
    assert parse_json(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (nested(100_000), "levels deep"),
        ("{a: " * 100_000, "levels deep"),
        ("- " * 50_000, "levels deep"),
        ("a: &a [*a]", "levels deep"),
        ("&a {b: *a}", "levels deep"),
        (aliases(12), "more than 100,000 values"),
        (merges(40), "merges more"),
        (f"a: &a {{k: 1}}\nb: {{<<: [{'*a, ' * 50_000}]}}", "merges more"),
        ("a: 1\na: 2", "a is there twice"),
        ('a: "\\0"', "NUL|special characters"),
        (":".join(["59"] * 3000), "128 bits"),
        ('!!int ""', "do not fit"),
        ("!!bool maybe", "do not fit"),
        ("!!timestamp x", "do not fit"),
        ("!!float ''", "do not fit|could not convert"),
        ("2024-13-45", "month must be in"),
        ("!!python/object:os.system x", "could not determine a constructor"),
        ("? {a: b}\n: c", "unhashable"),
    ],
)
def test_yaml_that_is_refused(text: str, complaint: str) -> None:
    started = time.process_time()
    with pytest.raises((ValueError, yaml.YAMLError), match=complaint):
        parse_yaml(text)
    assert time.process_time() - started < 5


def test_yaml_that_is_taken() -> None:
    text = "a: &a {x: 1, y: [1, 2]}\nb: &b {<<: *a, x: 2}\nc: *a\nd: {<<: *b, z: 3}\n"
    a = {"x": 1, "y": [1, 2]}
    b = {**a, "x": 2}
    assert parse_yaml(text) == {"a": a, "b": b, "c": a, "d": {**b, "z": 3}}


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_bounded(path, 5) == b"12345"
    with pytest.raises(BothendsError, match="file: more than 4 bytes"):
        read_bounded(path, 4)
