"""For whom a session calls models. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bot.llm.spender import Spender
from bot.memory.records.schedules import Schedule
from bot.memory.session.scope.identities import identity_at
from bot.tape.entries import TapeEntry


def turn_spender(session: str, turn: str, answered: Sequence[TapeEntry]) -> Spender:
    """Return for whom a turn calls models: the sender of the newest message that it answers.

    Args:
        session: Key of the session.
        turn: Id of the turn.
        answered: The messages, oldest first.
    """
    sender = _sender(_newest(answered))
    return Spender(
        identity_at(session, str(sender.get("id") or "")),
        session,
        "",
        sender.get("role") == "owner",
        turn,
    )


def task_spender(session: str, turn: str, schedule: Schedule) -> Spender:
    """Return for whom a scheduled task calls models: who set it."""
    # An id of another surface has its channel already.
    author = schedule.author.id
    identity = author if ":" in author else identity_at(session, author)
    return Spender(identity, session, "schedule", request=turn)


def background_spender(session: str, spoken: Sequence[TapeEntry]) -> Spender:
    """Return for whom background work calls models: the person of a private chat, else nobody.

    Args:
        session: Key of the session.
        spoken: Messages of the conversation, oldest first.
    """
    newest = _newest(spoken)
    sender = _sender(newest) if newest is not None and newest.meta.get("private") is True else {}
    return Spender(identity_at(session, str(sender.get("id") or "")), session)


def _newest(entries: Sequence[TapeEntry]) -> TapeEntry | None:
    """Return the newest message with a sender."""
    return next((entry for entry in reversed(entries) if _sender(entry)), None)


def _sender(entry: TapeEntry | None) -> dict[str, object]:
    sender = entry.meta.get("sender") if entry is not None and entry.kind == "message" else None
    return sender if isinstance(sender, dict) and sender.get("id") else {}
