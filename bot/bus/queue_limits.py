"""How many messages a session may have waiting.

Rule 1: commands have a reserve, so that a person can still stop what fills the session.
Rule 2: what is only overheard leaves room for what is asked.
"""

from __future__ import annotations

from bot.bus.messages import Inbound
from bot.core.errors import SessionFull

_RESERVE = 10


def queue_limit(inbound: Inbound, limit: int) -> int:
    """Return how many may wait before this message is refused."""
    room = limit if inbound.expects_answer else limit // 2
    return room + (_RESERVE if inbound.expects_answer and inbound.text.startswith("/") else 0)


def session_full_error(waiting: int) -> SessionFull:
    """Return the refusal of a message behind so many."""
    return SessionFull(
        f"{waiting} messages already wait here, which is the most allowed: "
        "this one was not taken, please send it again later"
    )
