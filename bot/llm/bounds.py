"""What an answer of a model server may cost at most."""

from __future__ import annotations

MOST_BYTES = 32_000_000
"""Of one answer: the longest that models write, a fragment for each word, takes a third of it."""

MOST_LINE = 4_000_000
"""Bytes of one line of a stream: an answer sent at once, with all its calls, is shorter."""

MOST_TEXT = 100_000
"""Characters of an answer; what a server sends beyond them is not read."""

MOST_CALLS = 64
"""Tool calls in one answer."""

MOST_ARGUMENTS = 500_000
"""Characters of all their names, ids and arguments."""
