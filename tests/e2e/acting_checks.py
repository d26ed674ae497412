"""What must hold of tapes on which calls waited for a yes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from bot.memory.records.pending_calls import TOOL_DECIDED, TOOL_PENDING, TOOL_RESULT
from bot.tape.entries import TapeEntry


def acted_once(
    tapes: Iterable[list[TapeEntry]], written: str, orders: Iterable[str]
) -> Counter[str]:
    """Count the calls of all sessions by what became of them.

    No order was carried out twice, none without a yes, and each yes has one result.

    Args:
        tapes: The sessions.
        written: What the tool that acts has written.
        orders: What it was told to write.
    """
    found: Counter[str] = Counter()
    asked: set[int] = set()
    for entries in tapes:
        numbers = {}
        for name in (TOOL_PENDING, TOOL_DECIDED, TOOL_RESULT):
            named = [entry for entry in entries if entry.name == name]
            numbers[name] = {entry.data["number"]: entry.data for entry in named}
            assert len(numbers[name]) == len(named), f"twice: {name}"
        decided, results = numbers[TOOL_DECIDED], numbers[TOOL_RESULT]
        yes = {number for number, data in decided.items() if data["decision"] == "yes"}
        assert set(results) == yes
        assert not asked & set(numbers[TOOL_PENDING]), "two sessions gave one number"
        asked |= set(numbers[TOOL_PENDING])
        for number, data in numbers[TOOL_PENDING].items():
            [word] = re.findall(r"k[0-9a-f]{6}", data["arguments"])
            status = results[number]["status"] if number in yes else "no"
            most = {"ok": (1,), "no": (0,)}.get(status, (0, 1))
            assert written.count(word) in most, (word, status)
            found[status] += 1
    assert all(written.count(word) <= 1 for word in orders)
    return found
