"""Who may do what to facts, and in whose name; see the package. Pure."""

from __future__ import annotations

from bot.agent.commands.registry import CommandAuthor, CommandContext
from bot.memory.facts.fact import Fact

_OWNERS = frozenset(
    ("accept", "drop", "pause", "resume", "undo", "clear", "share", "unshare", "export")
)

OWNER_ONLY_TEXT = "Only an owner may do this: everybody who talks to this bot reads it."


def requires_owner(arguments: str) -> bool:
    """Say whether a form is the owner's in a group."""
    form = arguments.split(maxsplit=1)[:1]
    return bool(form) and form[0].lower() in _OWNERS


def may_edit(fact: Fact, asker: CommandAuthor, *, shared: bool) -> bool:
    """Say whether somebody may change a fact's words."""
    if asker.role == "owner":
        return True
    if shared:
        return False
    return asker.private or is_own(fact, asker)


def is_own(fact: Fact, asker: CommandAuthor) -> bool:
    """Say whether a fact rests on somebody's words alone."""
    return bool(asker.id and fact.evidence) and all(one.sender == asker.id for one in fact.evidence)


def is_other_person(asker: str, context: CommandContext) -> bool:
    """Say whether somebody gave a command from elsewhere who is not the person whose memory it is.

    Args:
        asker: Their id: whoever is elsewhere is known by the channel, too.
        context: Of the conversation.
    """
    memory = context.memory
    return ":" in asker and asker not in memory.scopes.identities(memory.home.name)
