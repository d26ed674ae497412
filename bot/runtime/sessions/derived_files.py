"""What an erasure or a reset needs of files and places other than tapes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Protocol

from bot.core.reasons import Reason
from bot.memory.erasure.text_matcher import TextMatcher

EraseResidualFiles = Callable[[TextMatcher, Collection[str]], Awaitable[int]]
"""Erases words, and blobs by name, from all places other than tapes; returns how many."""

BUSY = Reason("still_running")
"""Why something waits for a session's work to end."""


class DerivedFiles(Protocol):
    """Files that are derived from tapes."""

    def suspend(self, tapes: Collection[str]) -> AbstractAsyncContextManager[None]:
        """Remove the files derived from these tapes, and write none until the end.

        Raises:
            TapeWriteError: They could not be removed; nothing must be erased then.
        """
        ...


async def erase_no_files(words: TextMatcher, blobs: Collection[str]) -> int:
    """Erase nothing, for programs that keep words only on tapes."""
    del words, blobs
    return 0


def suspend_files(
    files: DerivedFiles | None, tapes: Collection[str]
) -> AbstractAsyncContextManager[None]:
    """Suspend derived files while entries are erased from these tapes; do nothing without files."""
    return nullcontext() if files is None else files.suspend(tapes)
