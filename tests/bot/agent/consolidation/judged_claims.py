"""A claim in other words than were said, a judge that always rules the same, and the wait for it."""

from __future__ import annotations

import anyio

from bot.testing.host import Host
from bot.testing.scripted_model import Script, judgement_reply

HOME = "person:fake:7"
SAID = "Sis got herself a flat near the harbour in Porto."
CLAIM = "The user's sister bought an apartment by the docks of Porto."


def always(ruling: str) -> Script:
    return lambda request: judgement_reply(request, lambda _: ruling)


def refuting(claim: str) -> Script:
    """A judge that rules of one claim that the words do not say it, and of all others that they do."""
    return lambda request: judgement_reply(
        request, lambda one: "not_supported" if one["claim"] == claim else "supported"
    )


async def until_judged(host: Host, count: int = 1) -> None:
    with anyio.fail_after(20):
        while sum(one.data["author"] == "judge" for one in await facts(host)) < count:
            await anyio.sleep(0.01)


async def facts(host: Host) -> list[object]:
    return list(await host.events("memory.facts", HOME))
