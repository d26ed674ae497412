"""How deep JSON is nested, counted without recursion: not every Python can read or write any depth."""

from __future__ import annotations

from typing import Any


def nesting_levels(value: Any) -> int:
    """Return how deep lists and objects are nested; 0 for a value that is neither."""
    levels, level = 0, [value]
    while level := [one for one in level if isinstance(one, (dict, list))]:
        levels += 1
        level = [part for one in level for part in (one.values() if isinstance(one, dict) else one)]
    return levels
