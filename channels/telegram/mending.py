"""Updates with something in them that this program does not know, made readable (pure).

Rule 1: what a message does not need is left out; who wrote what, where and when is never.
Rule 2: whose words they are is never forgotten: where it cannot be read who a forwarded message is
from, it is from somebody.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

Json = dict[str, Any]

_PLACES = (("message",), ("edited_message",), ("callback_query", "message"))
_NEEDED = frozenset(
    {
        "message_id",
        "message_thread_id",
        "is_topic_message",
        "from",
        "sender_chat",
        "is_automatic_forward",
        "chat",
        "date",
        "edit_date",
        "text",
        "migrate_to_chat_id",
        "migrate_from_chat_id",
    }
)
_STANDS_IN: dict[str, Json] = {
    "forward_origin": {"type": "hidden_user", "sender_user_name": "somebody", "date": 0},
    "via_bot": {"id": 0, "is_bot": True, "first_name": "a bot"},
}
_TARGET = "reply_to_message"


def mended(raw: Any, error: ValidationError) -> tuple[Json, set[str]] | None:
    """Return an update without what could not be read of its message, and the names of that.

    Args:
        raw: The update as it came; it stays as it is.
        error: What is wrong with it.

    Returns:
        None where nothing can be left out.
    """
    if not isinstance(raw, dict):
        return None
    for place in _PLACES:
        trail: list[Json] = [raw]
        for name in place:
            inner = trail[-1].get(name)
            trail.append(inner if isinstance(inner, dict) else {})
        message = trail.pop()
        if not message:
            continue
        wrong = [one["loc"][len(place) :] for one in _errors(error) if _below(one["loc"], place)]
        smaller, left_out = _without(message, wrong)
        if not left_out:
            return None
        for outer, name in zip(reversed(trail), reversed(place), strict=True):
            smaller = {**outer, name: smaller}
        return smaller, left_out
    return None


def _errors(error: ValidationError) -> Iterable[Any]:
    # Without the input: that may be a stranger's.
    return error.errors(include_url=False, include_context=False, include_input=False)


def _below(where: tuple[int | str, ...], place: tuple[str, ...]) -> bool:
    return where[: len(place)] == place


def _without(message: Json, wrong: list[tuple[int | str, ...]]) -> tuple[Json, set[str]]:
    kept, left_out = dict(message), set()
    for where in wrong:
        # The names of a union's members stand in between.
        name = next((str(one) for one in where if one in message), None)
        if name is None or name in _NEEDED:
            continue
        inner = _inside(message[name], where) if name == _TARGET else None
        if inner is not None and isinstance(kept.get(name), dict):
            # Most of what is answered can still be quoted.
            kept[name] = {one: value for one, value in kept[name].items() if one != inner}
            left_out.add(f"{name}.{inner}")
            continue
        kept.pop(name, None)
        if name in _STANDS_IN and message[name] != _STANDS_IN[name]:
            kept[name] = _STANDS_IN[name]
        left_out.add(name)
    return kept, left_out


def _inside(target: Any, where: tuple[int | str, ...]) -> str | None:
    """Return what of an answered message is left out; None where all of it must go."""
    if not isinstance(target, dict):
        return None
    below = where[where.index(_TARGET) + 1 :]
    name = next((str(one) for one in below if one in target), None)
    return None if name in _NEEDED else name
