"""Limits on a message, and on the messages that wait in a session.

Rule 1: commands have a reserve, so that a person can still stop what fills the session.
Rule 2: overheard messages leave room for messages that expect an answer.
"""

from __future__ import annotations

from bot.bus.messages import Inbound
from bot.core.errors import MessageTooLong, SessionFull
from bot.core.i18n import _, format_number, ngettext

LONGEST_MESSAGE = 400_000
"""Characters of a message with all that it quotes: about 100,000 tokens. It fits into an entry of a tape,
however it is encoded."""

HELD_REPORTS = 2
"""Reports that a worker may not have handled: it handles one, and one more is on its way to it."""

_RESERVE = 10


def check_length(inbound: Inbound) -> None:
    """Check that a message is no longer than a turn can use.

    Raises:
        MessageTooLong: It is; the text is for its sender.
    """
    client = inbound.client
    texts = [inbound.text, inbound.quote or ""]
    if client is not None:
        texts += [client.system, *(text for result in client.results for text in result)]
    if (number := sum(map(len, texts))) > LONGEST_MESSAGE:
        raise MessageTooLong(too_long_text(number, LONGEST_MESSAGE))


def too_long_text(number: int, most: int) -> str:
    """Return why a message of so many characters is refused, and what to do."""
    return _(
        "This message has {number} characters; at most {most} are allowed. Send it in parts, or as a file.",
        number=format_number(number),
        most=format_number(most),
    )


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
