"""To whom the facts of a session belong, looked at again with each message."""

from __future__ import annotations

from bot.bus import Inbound
from bot.memory.long_term_memory import LongTermMemory
from bot.memory.scope_registry import changed_home, scope_entry
from bot.memory.session_fold import SessionFold


async def update_fact_scope(inbound: Inbound, memory: LongTermMemory, fold: SessionFold) -> None:
    """Note to whom the facts of a session belong from a message on.

    Whoever gives a command from elsewhere does not turn up in the chat by that.

    Args:
        inbound: The message.
        memory: The session's.
        fold: Its state.
    """
    await memory.read_new_facts()
    if inbound.via is not None:
        await memory.update_identities()
        return
    scopes, channel, sender = memory.scopes, inbound.address.channel, inbound.sender.id
    await memory.update_identities(sender)
    # Nothing is waited for between that and this: who was joined since would be a stranger here.
    while (
        home := changed_home(inbound, fold.home_scope, scopes.person_tape(channel, sender))
    ) is not None:
        await memory.set_home(scope_entry(home))
        await memory.update_identities(sender)
