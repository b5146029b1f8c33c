"""Options that take several values: `--source a b` means `--source a --source b`."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand


class SeveralValues(TyperCommand):
    """A command whose repeatable options may be followed by all their values at once.

    For commands without positional arguments, which could not be told from another value.
    """

    def parse_args(self, context: Any, arguments: list[str]) -> list[str]:
        repeatable = {
            spelling
            for parameter in self.params
            if getattr(parameter, "multiple", False)
            for spelling in parameter.opts
        }
        spelled_out: list[str] = []
        option, wants_value = None, False
        for argument in arguments:
            if argument.startswith("-"):
                name, equals, _ = argument.partition("=")
                option, wants_value = (name if name in repeatable else None), not equals
            elif option is not None:
                if not wants_value:
                    spelled_out.append(option)
                wants_value = False
            spelled_out.append(argument)
        return super().parse_args(context, spelled_out)
