"""A person who counts, and what a consolidation learns of that."""

from __future__ import annotations

from bot.testing.host import Host, HostLimits
from bot.testing.scripted_model import consolidation_reply, fact_operation

SMALL = HostLimits(window=10)
COUNTS = fact_operation("The user counts number 1.", "I count number 1.")
LEARNED = consolidation_reply("[2026-02-10 10:00] Ada counted.", COUNTS)


async def talk(host: Host, turns: int, *, begin: int = 1) -> None:
    for number in range(begin, begin + turns):
        assert await host.channel.ask(f"I count number {number}.") == "ok"
