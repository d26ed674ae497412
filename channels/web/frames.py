"""What pages and the channel say to each other, as JSON. Pure.

Rule 1: a page's frame is refused where it is not exactly one of these; it never breaks anything.
Rule 2: HTML is only what the site made of an answer; all else is text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from bot.bus import Button, WebUser
from channels.base import MenuCommand
from channels.text import clean_text

MAX_MESSAGE_CHARACTERS = 32_000
"""Characters of a message."""

MAX_FILES = 10
"""Files of a message."""

_Id = Annotated[str, Field(pattern=r"^[0-9A-Za-z_-]{8,64}$")]


class _Frame(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class SayFrame(_Frame):
    """A message; repeated with the same id until it is accepted or refused.

    Attributes:
        id: Of the message, made by the page.
        text: The person's words.
        files: Ids of uploads.
    """

    type: Literal["say"]
    id: _Id
    text: str = Field(default="", max_length=MAX_MESSAGE_CHARACTERS)
    files: list[_Id] = Field(default=[], max_length=MAX_FILES)


class PressFrame(_Frame):
    """A button that was pressed: its command, given below an answer.

    Attributes:
        id: Of the message that this is.
        command: The button's.
        message: Id of the answer.
    """

    type: Literal["press"]
    id: _Id
    command: str = Field(pattern=r"^/[A-Za-z]", max_length=MAX_MESSAGE_CHARACTERS)
    message: str = Field(min_length=1, max_length=200)


class OlderFrame(_Frame):
    """A wish for older lines.

    Attributes:
        before: The position of the oldest that is shown.
    """

    type: Literal["older"]
    before: int = Field(ge=1, le=999_999_999_999_999)


PageFrame = SayFrame | PressFrame | OlderFrame

_WORDS = frozenset({"text", "command", "message"})
"""Of a frame, what comes to the tape."""

_FRAMES: TypeAdapter[PageFrame] = TypeAdapter(Annotated[PageFrame, Field(discriminator="type")])


class InvalidFrame(Exception):
    """A page said what is none of these.

    Attributes:
        id: The message's, where that could be read.
    """

    def __init__(self, why: str, message: str | None = None) -> None:
        super().__init__(why)
        self.id = message


def read_frame(text: str) -> PageFrame:
    """Return what a page says.

    Raises:
        BadFrame: It cannot be understood; its text is for the person.
    """
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise InvalidFrame(
            "This page and the bot do not understand each other; load it anew."
        ) from exc
    message = raw.get("id") if isinstance(raw, dict) else None
    known = message if isinstance(message, str) and len(message) <= 64 else None
    words = raw.get("text") if isinstance(raw, dict) else None
    if isinstance(words, str) and len(words) > MAX_MESSAGE_CHARACTERS:
        raise InvalidFrame(
            f"A message has {MAX_MESSAGE_CHARACTERS:,} characters at most, and this one {len(words):,}. "
            "Send it in parts, or as a file.",
            known,
        )
    if isinstance(raw, dict):
        raw = {key: _writable(key, value) for key, value in raw.items()}
    try:
        return _FRAMES.validate_python(raw)
    except ValidationError as exc:
        why = "This page and the bot do not understand each other; load it anew."
        raise InvalidFrame(why, known) from exc


def _writable(key: str, value: object) -> object:
    """Return what comes to the tape without control characters and what cannot be written."""
    return clean_text(value) if key in _WORDS and isinstance(value, str) else value


def frame_text(frame: SayFrame | PressFrame) -> str:
    """Return what a person said."""
    return (frame.text if isinstance(frame, SayFrame) else frame.command).strip()


def encode(frame: dict[str, Any] | str | bool) -> str:
    """Return a frame as a page reads it."""
    # What a model wrote may hold what UTF-8 has no bytes for; as an escape it can be sent.
    return json.dumps(frame, separators=(",", ":"))


def lines_frame(
    rows: Sequence[dict[str, Any]],
    pending: Iterable[str] = (),
    *,
    reset: bool = False,
    older: bool = False,
    mark: str | None = None,
) -> str:
    """Return a frame of lines, as a page reads it.

    Args:
        rows: The lines.
        pending: Encoded ones behind them, that are on no tape yet.
        reset: The page forgets all that it has.
        older: There are lines before them.
        mark: The transcript's, where the page is told of it.
    """
    body = ",".join([*map(encode, rows), *pending])
    begin = f'{{"type":"lines","reset":{encode(reset)},"older":{encode(older)},'
    marked = "" if mark is None else f'"mark":{encode(mark)},'
    return f'{begin}{marked}"lines":[{body}]}}'


def welcome_frame(
    visitor: WebUser, commands: tuple[MenuCommand, ...], most_bytes: int
) -> dict[str, Any]:
    """Return the first frame of a connection."""
    return {
        "type": "welcome",
        "session": visitor.address.session,
        "name": visitor.name,
        "role": visitor.role,
        "commands": [
            {"name": one.name, "summary": one.summary, "forms": [list(form) for form in one.forms]}
            for one in commands
        ],
        "max_bytes": most_bytes,
    }


def buttons_json(buttons: tuple[Button, ...]) -> list[dict[str, str]]:
    """Return buttons as pages read them."""
    return [{"label": one.label, "command": one.command} for one in buttons]
