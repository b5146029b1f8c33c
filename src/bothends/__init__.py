"""bothends: fast sequence-to-sequence generation that writes from both ends at once.

Importing the package is cheap: names are looked up on first use, so that neither a script that
wants one NumPy module nor `bothends --help` pays for an engine.
"""

from __future__ import annotations

# Type checkers know the name. `typing` itself takes longer to import than all of this, and an
# interrupt meanwhile would end in a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bothends.errors import BothendsError, UsageError
    from bothends.order import GenerationOrder
    from bothends.translating.translation import Translation, TranslationOptions
    from bothends.translator import Translator

__version__ = "0.2.0"

_HOMES = {
    "BothendsError": "bothends.errors",
    "GenerationOrder": "bothends.order",
    "Translation": "bothends.translating.translation",
    "TranslationOptions": "bothends.translating.translation",
    "Translator": "bothends.translator",
    "UsageError": "bothends.errors",
}

__all__ = [
    "BothendsError",
    "GenerationOrder",
    "Translation",
    "TranslationOptions",
    "Translator",
    "UsageError",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
