"""Limits on the messages that wait in a session.

Rule 1: commands have a reserve, so that a person can still stop what fills the session.
Rule 2: overheard messages leave room for messages that expect an answer.
"""

from __future__ import annotations

from bot.bus.messages import Inbound
from bot.core.errors import SessionFull
from bot.core.i18n import ngettext

HELD_REPORTS = 2
"""Reports that a worker may not have handled: it handles one, and one more is on its way to it."""

_RESERVE = 10


def queue_limit(inbound: Inbound, limit: int) -> int:
    """Return the number of waiting messages at which this one is refused."""
    room = limit if inbound.expects_answer else limit // 2
    return room + (_RESERVE if inbound.expects_answer and inbound.text.startswith("/") else 0)


def session_full_error(waiting: int) -> SessionFull:
    """Return the error for a message that is refused because so many wait."""
    return SessionFull(waiting_text(waiting))


def waiting_text(waiting: int) -> str:
    """Return why a message is refused where so many wait, and what to do."""
    return ngettext(
        "{n} message already waits here, which is the maximum. This one was not accepted; please "
        "send it again later",
        "{n} messages already wait here, which is the maximum. This one was not accepted; please "
        "send it again later",
        waiting,
    )
