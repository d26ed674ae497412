"""Telegram's rules for calls of bots: https://core.telegram.org/bots/api.

Rule 1: lengths and offsets are counted in UTF-16 code units.
Rule 2: error descriptions are those of the real server, since clients match on them.
Rule 3: nothing here does I/O or keeps state.
"""

from __future__ import annotations

import json
import re
from typing import Any

Json = dict[str, Any]

MAX_TEXT = 4096
MAX_CAPTION = 1024
MAX_UPLOAD = 50 * 1024 * 1024
MAX_ENTITIES = 100
MAX_TOAST = 200
_MAX_CALLBACK_DATA = 64
_ENTITIES = frozenset(
    "mention hashtag cashtag bot_command url email phone_number bold italic underline strikethrough "
    "spoiler blockquote expandable_blockquote code pre text_link text_mention custom_emoji "
    "date_time".split()
)
_BUTTON_KINDS = (
    "url callback_data web_app login_url switch_inline_query switch_inline_query_current_chat "
    "switch_inline_query_chosen_chat copy_text callback_game pay"
).split()
ACTIONS = frozenset(
    "typing upload_photo record_video upload_video record_voice upload_voice upload_document "
    "choose_sticker find_location record_video_note upload_video_note".split()
)
_FOUND = re.compile(
    r"(?P<bot_command>(?<![\w/])/[A-Za-z0-9_]{1,64}(?:@\w+)?)"
    r"|(?P<mention>(?<!\w)@[A-Za-z0-9_]{4,32}\b)"
    r"|(?P<url>https?://[^\s<>]+)"
)


class BotApiError(Exception):
    """An error response of the Bot API."""

    def __init__(self, status: int, description: str, parameters: Json | None = None) -> None:
        super().__init__(description)
        self.status = status
        self.description = description
        self.parameters = parameters or {}

    def as_json(self) -> Json:
        body: Json = {"ok": False, "error_code": self.status, "description": self.description}
        return body | ({"parameters": self.parameters} if self.parameters else {})


def bad(reason: str) -> BotApiError:
    """Return an error 400 with Telegram's prefix."""
    return BotApiError(400, f"Bad Request: {reason}")


def units(text: str) -> int:
    """Return the length in UTF-16 code units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


class Params:
    """The parameters of a call, from query or body; one that is absent is None, or an empty text."""

    def __init__(self, values: Json) -> None:
        self.values = values

    def text(self, name: str) -> str:
        value = self.values.get(name)
        return "" if value is None else str(value)

    def integer(self, name: str) -> int | None:
        value = self.values.get(name)
        if value is None or value == "":
            return None
        try:
            return int(value)
        except (TypeError, ValueError) as exc:
            raise bad(f'invalid {name} specified: "{value}"') from exc

    def boolean(self, name: str) -> bool:
        # Forms send it as text.
        return str(self.values.get(name, "")).lower() in {"true", "1", "yes"}

    def json(self, name: str) -> Any:
        value = self.values.get(name)
        if not isinstance(value, str):
            return value
        if not value:
            return None
        try:
            return json.loads(value)
        except ValueError as exc:
            raise bad(f"can't parse {name} JSON object") from exc


def detect(text: str) -> list[Json]:
    """Return the entities that Telegram detects in a person's text: commands, mentions, links."""
    found = []
    for match in _FOUND.finditer(text):
        offset, length = units(text[: match.start()]), units(match.group())
        found.append({"type": str(match.lastgroup), "offset": offset, "length": length})
    return found


def checked_text(params: Params, name: str, limit: int, too_long: str) -> tuple[str, list[Json]]:
    """Return the text and entities of a call as Telegram would show them."""
    raw = params.text(name)
    entities = params.json("caption_entities" if name == "caption" else "entities")
    text = raw.rstrip()
    if units(text) > limit:
        raise bad(too_long)
    if entities:
        _check_entities(raw, entities)
    kept = [one for one in entities or [] if one["offset"] < units(text)]
    return text, kept[:MAX_ENTITIES]


def _check_entities(text: str, entities: Any) -> None:
    if not isinstance(entities, list):
        raise bad("can't parse entities JSON object")
    encoded = text.encode("utf-16-le", "surrogatepass")
    for one in entities:
        start, length = one.get("offset", -1), one.get("length", 0)
        if one.get("type") not in _ENTITIES:
            raise bad(f"can't parse entities: unsupported type {one.get('type')!r}")
        if start < 0 or length <= 0 or 2 * (start + length) > len(encoded):
            raise bad("can't parse entities: entity out of text bounds")
        if one["type"] == "text_link" and not one.get("url"):
            raise bad("can't parse entities: text_link without URL")
        for edge in (start, start + length):
            if 0xDC <= encoded[2 * edge : 2 * edge + 2].ljust(2, b"\0")[1] <= 0xDF:
                raise bad(
                    "can't parse entities: Entity begins in a middle of a UTF-16 symbol "
                    f"at byte offset {edge}"
                )


def checked_buttons(markup: Any) -> tuple[tuple[Json, ...], ...]:
    """Return the rows of an inline keyboard; empty for other kinds of markup."""
    if not markup or not isinstance(markup, dict):
        return ()
    rows = markup.get("inline_keyboard") or []
    for button in (one for row in rows for one in row):
        if not button.get("text"):
            raise bad("can't parse inline keyboard button: Text buttons must be non-empty")
        if sum(button.get(kind) is not None for kind in _BUTTON_KINDS) != 1:
            raise bad(
                "can't parse inline keyboard button: "
                "exactly one of the optional fields must be used"
            )
        data = button.get("callback_data")
        if data is not None and not 1 <= len(str(data).encode()) <= _MAX_CALLBACK_DATA:
            raise bad("BUTTON_DATA_INVALID")
    return tuple(tuple(row) for row in rows)


def checked_commands(commands: Any) -> list[Json]:
    """Return the commands of a menu."""
    if not isinstance(commands, list) or len(commands) > 100:
        raise bad("BOT_COMMANDS_TOO_MUCH")
    for one in commands:
        if not re.fullmatch(r"[a-z0-9_]{1,32}", str(one.get("command", ""))):
            raise bad("BOT_COMMAND_INVALID")
        if not 1 <= units(str(one.get("description", ""))) <= 256:
            raise bad("BOT_COMMAND_DESCRIPTION_INVALID")
    return commands
