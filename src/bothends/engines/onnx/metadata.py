"""Metadata of an exported graph, and whether it belongs to the model beside it.

Every engine that reads `encoder.onnx` and `decoder.onnx` checks the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bothends.errors import BothendsError
from bothends.model.directory import CONFIG, Description
from bothends.model.graph_files import DECODER, ENCODER
from bothends.storage.records import parse_json

#: Version of the graphs' inputs and outputs; graphs of another version are refused.
GRAPH_VERSION = 1


def check_metadata(path: Path, found: Mapping[str, str], description: Description) -> None:
    """Complain about a graph of another version or another model."""
    again = f"`bothends export {path.parent}` writes it anew"
    if found.get("graph_version") != str(GRAPH_VERSION):
        raise BothendsError(
            f"{path}: graph version {found.get('graph_version', 'unknown')}, but this bothends "
            f"runs {GRAPH_VERSION}; {again}"
        )
    model = description.model.dump_for_graphs()
    if found.get("order") != str(description.order) or _read(found.get("model", "")) != model:
        raise BothendsError(f"{path}: exported from another model than {CONFIG} describes; {again}")


def check_same_export(
    directory: Path, encoder: Mapping[str, str], decoder: Mapping[str, str]
) -> None:
    """Two graphs of one export: a step of one must not follow another's encoder."""
    if encoder.get("weights") != decoder.get("weights"):
        raise BothendsError(
            f"{directory}: {ENCODER} and {DECODER} were exported from different weights; "
            f"`bothends export {directory}` writes them anew"
        )


def _read(text: str) -> Any:
    """The settings in a graph: as values, since versions differ in how they spell 1e-06."""
    try:
        return parse_json(text.encode())
    except ValueError:
        return None
