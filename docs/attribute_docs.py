"""Shows each attribute once on the API page: an extension of Griffe, which reads the docstrings.

A class describes its attributes in the section `Attributes:` of its docstring. Without this, the
page has them in that section, and again, without the description, among the members.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Alias, Class, Docstring, DocstringSectionAttributes, Extension, Module

_SECTION = re.compile(r"\n*^Attributes:\n(?:    .*\n?|\n)*", re.M)


class AttributeDocs(Extension):
    """Moves the descriptions of a class's attributes to the attributes themselves."""

    def on_package(self, *, pkg: Module, **kwargs: Any) -> None:
        for described in _classes(pkg):
            _move_descriptions(described)


def _classes(module: Module) -> list[Class]:
    own = [each for each in module.classes.values() if not each.is_alias]
    modules = [each for each in module.modules.values() if not each.is_alias]
    return own + [found for each in modules for found in _classes(each)]


def _move_descriptions(described: Class) -> None:
    if described.docstring is None:
        return
    for section in described.docstring.parse("google"):
        if isinstance(section, DocstringSectionAttributes):
            for item in section.value:
                member = described.all_members.get(item.name)
                if isinstance(member, Alias):  # inherited
                    member = member.final_target
                if member is not None and member.docstring is None:
                    member.docstring = Docstring(item.description, parent=member)
    described.docstring.value = _SECTION.sub("\n", described.docstring.value).rstrip()
