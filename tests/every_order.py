"""Every order of up to eight directions and eight tokens each, with every set of variants."""

from __future__ import annotations

from itertools import product

from bothends.errors import UsageError
from bothends.order import VARIANTS, GenerationOrder


def _every_order() -> list[GenerationOrder]:
    orders = []
    for h, c in product((1, 2, 4, 6, 8), range(1, 9)):
        for switches in product((False, True), repeat=len(VARIANTS)):
            try:
                orders.append(GenerationOrder(h, c, *switches))
            except UsageError:
                continue
    return orders


EVERY_ORDER = _every_order()
