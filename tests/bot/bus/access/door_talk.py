"""How the door's tests open it, knock, and read the code that they are given."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from door_host import at

from bot.bus import AccessDecision, AccessRequest, Address, Sender
from bot.bus.access.control import open_access_control
from bot.testing.manual_clock import ManualClock

OWNER = "telegram:1"
SILENCE = AccessDecision(None)


def private(text: str | None = "hello", user="9", channel="telegram"):
    return AccessRequest(
        Address(channel, user), Sender(user, "Eve"), private=True, chat_ids=(user,), text=text
    )


def group(user="9", chat="-100", text=None):
    return AccessRequest(
        Address("telegram", chat), Sender(user, "Eve"), private=False, chat_ids=(chat,), text=text
    )


def code_in(verdict: AccessDecision) -> str:
    assert verdict.role is None
    found = re.search(r"pair (\S+)", verdict.reply or "")
    assert found is not None
    return found[1]


@asynccontextmanager
async def opened(home: Path | str, *, clock=None, tell=None, owners=(OWNER,), allow=()):
    how = {"owners": owners, "allow": allow, "clock": clock or ManualClock(), "send_notice": tell}
    with anyio.fail_after(60):
        async with at(home) as place, open_access_control(place, **how) as access_control:
            yield access_control
