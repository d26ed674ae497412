"""Regular expressions that are compiled when they are used first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any


class LazyPattern:
    """A regular expression with the methods of :class:`re.Pattern`, compiled when one of them is used first.

    To compile all of the program's patterns takes a fifth of a second, and a start needs few of them. After its first
    use, each method is the compiled pattern's own, so that a call costs no more.

    Args:
        pattern: The regular expression.
        flags: Those of :mod:`re`.
    """

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.pattern = pattern
        self._flags = flags

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The compiled pattern."""
        return re.compile(self.pattern, self._flags)

    @cached_property
    def match(self) -> Callable[..., re.Match[str] | None]:
        """See :meth:`re.Pattern.match`."""
        return self.compiled.match

    @cached_property
    def fullmatch(self) -> Callable[..., re.Match[str] | None]:
        """See :meth:`re.Pattern.fullmatch`."""
        return self.compiled.fullmatch

    @cached_property
    def search(self) -> Callable[..., re.Match[str] | None]:
        """See :meth:`re.Pattern.search`."""
        return self.compiled.search

    @cached_property
    def finditer(self) -> Callable[..., Iterator[re.Match[str]]]:
        """See :meth:`re.Pattern.finditer`."""
        return self.compiled.finditer

    @cached_property
    def findall(self) -> Callable[..., list[Any]]:
        """See :meth:`re.Pattern.findall`."""
        return self.compiled.findall

    @cached_property
    def split(self) -> Callable[..., list[Any]]:
        """See :meth:`re.Pattern.split`."""
        return self.compiled.split

    @cached_property
    def sub(self) -> Callable[..., str]:
        """See :meth:`re.Pattern.sub`."""
        return self.compiled.sub

    @cached_property
    def subn(self) -> Callable[..., tuple[str, int]]:
        """See :meth:`re.Pattern.subn`."""
        return self.compiled.subn
