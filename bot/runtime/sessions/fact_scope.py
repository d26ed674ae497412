"""Update the scope that a session's facts go to, on each message."""

from __future__ import annotations

from bot.bus import PERSON, Inbound
from bot.memory.session.linking.scope_registry import changed_home, scope_entry
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.state.session_fold import SessionFold


async def update_fact_scope(inbound: Inbound, memory: LongTermMemory, fold: SessionFold) -> None:
    """Record the scope that a session's facts go to from a message on.

    A command from another surface does not make its author a participant of the chat, and nothing
    but a person is one.

    Args:
        inbound: The message.
        memory: The session's long-term memory.
        fold: The session's state.
    """
    await memory.read_new_facts()
    if inbound.answer_to is not None or inbound.cause != PERSON:
        await memory.update_identities()
        return
    scopes, channel, sender = memory.scopes, inbound.address.channel, inbound.sender.id
    await memory.update_identities(sender)
    # No await between the two: an identity linked meanwhile would count as another person.
    while (
        home := changed_home(inbound, fold.home_scope, scopes.person_tape(channel, sender))
    ) is not None:
        await memory.set_home(scope_entry(home, scopes.parting(home)))
        await memory.update_identities(sender)
