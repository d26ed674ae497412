"""Keep the garbage collector away from what lives as long as the process, and have it look at the rest often."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_MIDDLE_BEFORE_OLDEST = 3
"""How many collections of the middle generation go before one of the oldest, instead of ten.

A session's parts refer to each other, so only a collection of the oldest generation frees a session that was unloaded.
Between two of them hundreds of such sessions would pile up. Without the modules one costs little.
"""


@contextmanager
def loading_modules() -> Iterator[None]:
    """Load modules without collections; later ones leave out what that made, and look at the rest more often.

    Hundreds of thousands of objects would be searched for garbage again and again: a tenth of a start's time, and
    pauses later.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(*gc.get_threshold()[:2], _MIDDLE_BEFORE_OLDEST)
        gc.enable()
