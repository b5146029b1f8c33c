"""Pydantic models of what files, recipes and requests say, with errors of one line.

What every translation reads is `checked` instead: it should not wait for pydantic.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, ValidationError


class Strict(BaseModel):
    """A value object: frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def first_problem(error: ValidationError) -> str:
    """The first complaint of a pydantic validation, in one line."""
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"])
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "path_type":  # pydantic names a class of Python
        message = "expected a path"
    if problem["type"] == "too_short":  # pydantic tells how it came to know
        least = problem["ctx"]["min_length"]
        message = f"expected at least {least} item{'' if least == 1 else 's'}"
    if problem["type"] == "unexpected_keyword_argument":  # of a dataclass
        message = "Extra inputs are not permitted"
    return f"{where}: {message}" if where else message
