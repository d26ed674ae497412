"""Keep the garbage collector away from what lives as long as the process."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading_modules() -> Iterator[None]:
    """Load modules without collections meanwhile, and have later collections leave out what they made.

    Hundreds of thousands of objects would be searched for garbage again and again: a tenth of a start's time, and
    pauses later.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
