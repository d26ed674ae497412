"""To whom the facts of a session belong, looked at again with each message."""

from __future__ import annotations

from bot.bus import Inbound
from bot.memory.fold import SessionFold
from bot.memory.longterm import LongTermMemory
from bot.memory.scopes import new_home, scope_entry


async def find_home(inbound: Inbound, memory: LongTermMemory, fold: SessionFold) -> None:
    """Note to whom the facts of a session belong from a message on.

    Whoever gives a command from elsewhere does not turn up in the chat by that.

    Args:
        inbound: The message.
        memory: The session's.
        fold: Its state.
    """
    await memory.look()
    if inbound.via is not None:
        await memory.settle_person()
        return
    scopes, channel, sender = memory.scopes, inbound.address.channel, inbound.sender.id
    await memory.settle_person(sender)
    # Nothing is waited for between that and this: who was joined since would be a stranger here.
    while (home := new_home(inbound, fold.home, scopes.person_of(channel, sender))) is not None:
        await memory.settle(scope_entry(home))
        await memory.settle_person(sender)
