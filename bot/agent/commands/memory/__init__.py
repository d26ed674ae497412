"""``/memory``: what is believed, why, and every way in which people change it.

Who may do what:

Rule 1: in a private chat a person may do all to what is remembered of them.
Rule 2: in a group anybody may look (list, why, pending, search, history) and add; what takes from everybody or
    decides for everybody (accept, drop, pause, resume, undo, clear, share, export) is an owner's.
Rule 3: in a group a fact is edited by an owner, or by whoever alone said it. What may be forgotten, ``forget``
    itself says.
Rule 4: what everybody reads, whatever the chat, is an owner's: share, unshare, edit wN. Whose words it rests on
    is shown to owners in private.
"""

from bot.agent.commands.memory.command import MEMORY_COMMAND

__all__ = ["MEMORY_COMMAND"]
