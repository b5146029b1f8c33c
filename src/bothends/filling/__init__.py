"""Fill the gap between a given beginning and end of a translation, from text to text."""

from __future__ import annotations

from bothends.filling.alternatives import find_alternatives
from bothends.filling.filler import Filler
from bothends.filling.options import Filling, FillOptions

__all__ = ["FillOptions", "Filler", "Filling", "find_alternatives"]
