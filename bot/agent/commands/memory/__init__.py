"""``/memory``: show facts and their evidence, and all commands that change memory.

Permissions:

Rule 1: in a private chat a person may do everything with their own memory.
Rule 2: in a group anybody may read (list, why, pending, search, history) and add; what removes
    memory or decides for everybody (accept, drop, pause, resume, undo, clear, share, export) needs
    an owner.
Rule 3: in a group a fact is edited by an owner, or by the only person who said it. ``forget`` has
    its own rules.
Rule 4: facts shared with all chats need an owner: share, unshare, edit wN. The evidence of shared
    facts is shown only to owners in private.
"""

from bot.agent.commands.memory.command import MEMORY_COMMAND

__all__ = [
    "MEMORY_COMMAND",
    "fact_numbers",
    "fact_text",
]
