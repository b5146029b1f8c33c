"""Metadata of an exported graph, and whether it belongs to the model beside it.

Every engine that reads `encoder.onnx` and `decoder.onnx` checks the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bothends.errors import BothendsError
from bothends.model.config import NOT_IN_GRAPHS
from bothends.model.directory import CONFIG, DECODER, ENCODER, Description

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
    # Dropout and frame are not in the graph, and may have been changed since.
    model = description.model.model_dump_json(exclude=NOT_IN_GRAPHS)
    if found.get("order") != str(description.order) or found.get("model") != model:
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
