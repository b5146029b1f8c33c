"""The card of a model: Markdown under a front matter that the Hub reads.

What the user has written stays: the text of a README.md, and the keys of its front matter. What is
missing is added from the model's description and from the JSON of `bothends evaluate`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bothends.errors import BothendsError, UsageError
from bothends.model.directory import CARD, FILES, WEIGHTS, Description
from bothends.model.graph_files import DECODER, stored_graph
from bothends.model.hub import PREFIX, HubName, is_hub_name
from bothends.publishing.scores import Scores
from bothends.storage.records import read_bounded
from bothends.storage.yaml_records import LARGEST_YAML, parse_yaml

LIBRARY = "bothends"
#: Tasks that the Hub knows by these names.
PIPELINES = ("translation", "summarization")
_FRONT = re.compile(
    r"\A---[ \t]*\r?\n(?P<front>.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
_LANGUAGE = re.compile(r"[a-z]{2,3}")


@dataclass(frozen=True)
class Card:
    """A front matter and the text below it."""

    front: dict[str, Any]
    body: str

    def __str__(self) -> str:
        front = yaml.safe_dump(self.front, sort_keys=False, allow_unicode=True, width=100)
        return f"---\n{front}---\n\n{self.body.lstrip()}"


def read_card(path: Path) -> Card | None:
    """The card that a user has written, or None if there is none."""
    try:
        text = read_bounded(path, LARGEST_YAML).decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise BothendsError(f"{path}: cannot be read as text ({error})") from None
    match = _FRONT.match(text)
    if match is None:
        return Card({}, text)
    try:
        front = parse_yaml(match["front"])
    except (yaml.YAMLError, ValueError) as error:
        raise BothendsError(f"{path}: its front matter is not YAML ({error})") from None
    if front is not None and not isinstance(front, dict):
        raise BothendsError(f"{path}: its front matter should be keys and values")
    return Card(front or {}, text[match.end() :])


def make_card(
    directory: Path,
    description: Description,
    repository: str,
    license_: str | None = None,
    scores: Sequence[Scores] = (),
) -> Card:
    """The card that a model is published with."""
    written = read_card(directory / CARD) or Card({}, "")
    front = {**_known_front(directory, description), **written.front}
    if license_ is not None:
        front["license"] = license_
    if "license" not in front:
        raise UsageError(
            f"{directory}: no licence; give --license ID, such as apache-2.0, or write it "
            f"into the front matter of its {CARD}"
        )
    tags = front.get("tags", [])
    if not isinstance(tags, list):
        raise BothendsError(f"{directory / CARD}: tags in its front matter should be a list")
    front["tags"] = list(dict.fromkeys([*tags, LIBRARY, f"order-{description.order}"]))
    if scores:
        front["model-index"] = [_model_index(repository, description, scores)]
    body = written.body
    if not body.strip():
        body = _body(directory, description, repository, scores)
    order = ["language", "license", "library_name", "pipeline_tag", "base_model", "tags"]
    first = {key: front[key] for key in order if key in front}
    return Card({**first, **front}, body)


def _known_front(directory: Path, description: Description) -> dict[str, Any]:
    """What the model says of itself."""
    front: dict[str, Any] = {"library_name": LIBRARY}
    languages = [
        code
        for language in (description.source_language, description.target_language)
        # `eng_Latn` and `en_XX` are eng and en to the Hub.
        if language and _LANGUAGE.fullmatch(code := language.split("_")[0].split("-")[0].lower())
    ]
    if languages:
        front["language"] = list(dict.fromkeys(languages))
    if description.task in PIPELINES:
        front["pipeline_tag"] = description.task
    converted = description.provenance.get("converted_from")
    parent = converted.get("repository") if isinstance(converted, dict) else None
    parent = description.provenance.get("began_with", parent)
    if isinstance(parent, str) and is_hub_name(parent):
        front["base_model"] = HubName.parse(parent).repository
    return front


def _model_index(
    repository: str, description: Description, scores: Sequence[Scores]
) -> dict[str, Any]:
    task = description.task if description.task in PIPELINES else "text2text-generation"
    return {
        "name": repository.rpartition("/")[2],
        "results": [
            {
                "task": {"type": task, "name": task.capitalize()},
                "dataset": {"type": each.dataset_type, "name": each.dataset},
                "metrics": [
                    {
                        "type": metric.name,
                        "name": metric.name,
                        "value": round(metric.score, 2),
                        "args": {"signature": metric.signature, "settings": each.settings},
                    }
                    for metric in each.metrics
                ],
            }
            for each in scores
        ],
    }


def _body(
    directory: Path, description: Description, repository: str, scores: Sequence[Scores]
) -> str:
    """A text for a model whose owner has written none."""
    model = description.model
    words = f"{model.vocabulary_size:,} words"
    if model.target_size != model.vocabulary_size:
        words = f"{model.vocabulary_size:,} source and {model.target_size:,} target words"
    languages = " to ".join(
        each for each in (description.source_language, description.target_language) if each
    )
    what = f"{description.task.capitalize()}{f', {languages}' if languages else ''}"
    size = sum((directory / name).stat().st_size for name in _there(directory))
    kinds = [
        kind
        for kind, path in (
            ("graphs", stored_graph(directory, DECODER)),
            ("weights", directory / WEIGHTS),
        )
        if path.is_file()
    ]
    command = "summarize" if description.task == "summarization" else "translate"
    lines = [
        f"# {repository.rpartition('/')[2]}",
        "",
        f"{what}. A model of [bothends](https://github.com/bothends/bothends), which generates "
        f"text in the order `{description.order}`.",
        "",
        "```sh",
        "pip install 'bothends[hub]'",
        f'echo "..." | bothends {command} --model {PREFIX}{repository}',
        "```",
        "",
        "| | |",
        "|---|---|",
        f"| network | Transformer, {model.encoder_layers} + {model.decoder_layers} layers, width "
        f"{model.width}, {words} |",
        f"| order | `{description.order}` |",
        f"| files | {' and '.join(kinds) or 'no network'}, {size / 1e6:,.0f} MB |",
    ]
    for each in scores:
        lines += ["", f"## Quality on {each.dataset}", "", each.settings, ""]
        lines += ["| metric | score (95 %) |", "|---|---|"]
        lines += (f"| {metric.name} | {metric.shown} |" for metric in each.metrics)
        lines += ["", "Signatures:", ""]
        lines += (f"- {metric.name}: `{metric.signature}`" for metric in each.metrics)
    return "\n".join(lines) + "\n"


def _there(directory: Path) -> list[str]:
    return [name for name in FILES if (directory / name).is_file()]
