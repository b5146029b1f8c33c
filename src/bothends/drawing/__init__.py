"""Pictures of a generation order, as text and as SVG. Only NumPy is needed.

Both show the same three things: the text as it fills up, step by step; the slots in generation
order, with what each is fed, its position and its direction; and which slots may attend to which.
`timeline` is of another kind: who worked at what, and when.
"""

from bothends.drawing.svg import draw_gap_svg, draw_svg
from bothends.drawing.text import draw_steps, draw_text, in_ascii

__all__ = ["draw_gap_svg", "draw_steps", "draw_svg", "draw_text", "in_ascii"]
