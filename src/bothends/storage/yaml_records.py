"""Values that come from YAML, which people write by hand. Apart from JSON, which every model has: a
translation should not wait for a parser that it does not need.
"""

from __future__ import annotations

from typing import Any

import yaml

from bothends.storage.records import DEEPEST, check_value

#: Bytes of a YAML file, which people write by hand, and values in it, aliases resolved.
LARGEST_YAML = 1 << 20
MOST_VALUES = 100_000
#: Keys that YAML's `<<` may bring into one mapping, and mappings that it may merge.
_MOST_MERGED_KEYS, _MOST_MERGED = 1000, 100


def parse_yaml(text: str) -> Any:
    """The value of a YAML text, or a ValueError or YAMLError."""
    try:
        value = yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError):
        raise
    except RecursionError:
        raise ValueError(f"more than {DEEPEST} levels deep") from None
    except Exception as error:  # such as an IndexError for `!!int ""`: PyYAML's tags are careless
        raise ValueError(f"a tag and its value do not fit ({error!r})") from None
    check_value(value, MOST_VALUES)
    return value


class _Loader(yaml.SafeLoader):
    """Refuses what is nested too deeply, and a key that is there twice.

    Of the latter YAML would take the last without a word.
    """

    _depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self._depth += 1
        if self._depth > DEEPEST:
            raise yaml.composer.ComposerError(
                problem=f"more than {DEEPEST} levels deep",
                problem_mark=self.peek_event().start_mark,  # type: ignore[no-untyped-call]
            )
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        for key, value in node.value:
            if (
                key.tag == "tag:yaml.org,2002:merge"
                and isinstance(value, yaml.SequenceNode)
                and len(value.value) > _MOST_MERGED
            ):
                raise _too_much(value)
        super().flatten_mapping(node)
        if len(node.value) > _MOST_MERGED_KEYS:
            raise _too_much(node)

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.composer.ComposerError(
                        problem=f"{key.value} is there twice", problem_mark=key.start_mark
                    )
                seen.add(key.value)
        return node


def _too_much(node: yaml.Node) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(
        problem="merges more than can be meant", problem_mark=node.start_mark
    )
