"""A figure of matplotlib as a file, which is there whole or not at all.

Matplotlib itself writes into the file that it is given: a full disk, or a kill, would leave half a
picture where a good one was.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

from bothends.files import write_output


def write_figure(figure: Any, path: Path, dpi: int | None = None) -> None:
    """Write a figure in the format that its name ends in, `.svg` or `.png`.

    The same figure gives the same bytes: a picture of vectors would have the date in it.
    """
    kind = path.suffix.removeprefix(".")
    picture = BytesIO()
    figure.savefig(
        picture,
        format=kind,
        dpi="figure" if dpi is None else dpi,
        metadata={"Date": None} if kind == "svg" else None,
    )
    write_output(path, picture.getvalue())
