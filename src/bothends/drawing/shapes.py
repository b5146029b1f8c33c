"""What all pictures have in common: the document, its colours in light and dark, text, panels."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

#: A hue per strand or row, those of facing ones far apart; white text is readable on all of them.
HUES = ("#2f6fde", "#d9480f", "#0b7f5f", "#b02a7a", "#6741d9", "#8a5a00", "#0b7285", "#c92a2a")

# The picture brings its own ground, so it can be read even where the page's scheme is not known.
_STYLE = """
text { font: 14px ui-sans-serif, system-ui, 'Helvetica Neue', Arial, sans-serif; }
.title { font-size: 22px; font-weight: 700; }
.heading { font-weight: 600; }
.small { font-size: 12px; }
.centre { text-anchor: middle; }
.ground { fill: #ffffff; stroke: #d0d7de; }
.ink { fill: #1f2328; }
.quiet { fill: #656d76; }
.on { fill: #ffffff; font-weight: 600; }
.line { fill: none; stroke: #8c959f; stroke-dasharray: 4 3; }
.faint { fill: none; stroke: #c4cbd3; stroke-dasharray: 3 3; }
.dot { fill: #c4cbd3; }
.old { fill-opacity: 0.2; }
.end { fill: #656d76; }
"""
_DARK = """
.ground { fill: #0d1117; stroke: #30363d; }
.ink { fill: #e6edf3; }
.quiet { fill: #9198a1; }
.line { stroke: #7d8590; }
.faint { stroke: #4d555e; }
.dot { fill: #4d555e; }
.old { fill-opacity: 0.5; }
"""


def svg_document(size: tuple[int, int], title: str, body: Sequence[str]) -> str:
    width, height = size
    hues = "".join(f".s{i} {{ fill: {hue}; }}\n" for i, hue in enumerate(HUES))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img">',
            f"<title>{title}</title>",
            f"<style>{_STYLE}{hues}@media (prefers-color-scheme: dark) {{{_DARK}}}</style>",
            f'<rect class="ground" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" '
            'rx="12"/>',
            *body,
            "</svg>\n",
        ]
    )


class Panel:
    """Shapes with their own origin and the space that they take."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.shapes: list[str] = []

    def at(self, x: int, y: int) -> str:
        return "\n".join([f'<g transform="translate({x} {y})">', *self.shapes, "</g>"])


def svg_text(x: int, y: int, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{escape(text)}</text>'
