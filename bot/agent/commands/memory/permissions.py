"""Check who may change or remove facts; the package's docstring has the rules. Pure."""

from __future__ import annotations

from bot.agent.commands.parser import split_form
from bot.agent.commands.registry import CommandAuthor, CommandContext
from bot.core.i18n import N_
from bot.memory.records.fact import Fact

_OWNERS = frozenset(
    ("accept", "drop", "pause", "resume", "undo", "clear", "share", "unshare", "export")
)

OWNER_ONLY_TEXT = N_("Only an owner may do this: everyone who uses this bot sees it.")


def requires_owner(arguments: str) -> bool:
    """Return whether a form needs an owner in a group."""
    return split_form(arguments)[0] in _OWNERS


def may_edit(fact: Fact, asker: CommandAuthor, *, shared: bool) -> bool:
    """Return whether a person may change a fact's text."""
    if asker.role == "owner":
        return True
    if shared:
        return False
    return asker.private or is_own(fact, asker)


def is_own(fact: Fact, asker: CommandAuthor) -> bool:
    """Return whether a fact rests only on this person's words."""
    return bool(asker.id and fact.evidence) and all(
        evidence.sender == asker.id for evidence in fact.evidence
    )


def is_other_person(asker: str, context: CommandContext) -> bool:
    """Return whether the author is somebody other than the person whose memory it is.

    Args:
        asker: The author's id; one from another channel includes the channel's name.
        context: The command's context.
    """
    memory = context.memory
    return ":" in asker and asker not in memory.scopes.identities(memory.home.name)
