"""Limits on the replies of model servers."""

from __future__ import annotations

MOST_BYTES = 32_000_000
"""Bytes of a reply; the longest that models write, streamed word by word, need a third of it."""

MOST_LINE = 4_000_000
"""Bytes of one line of a stream; a whole reply sent at once, with its calls, is shorter."""

MOST_TEXT = 100_000
"""Characters of a reply's text; the rest is cut off."""

MOST_CALLS = 64
"""Tool calls in one reply."""

MOST_ARGUMENTS = 500_000
"""Characters of the names, ids and arguments of all its tool calls."""
