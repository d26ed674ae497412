"""The JSON frames between pages and the channel.

Rule 1: a page's frame that is not exactly one of these is rejected without side effects.
Rule 2: HTML is only what the backend rendered from an answer; everything else is text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from bot.bus import Button, WebUser, too_long_text
from bot.core.i18n import _
from channels.base import MenuCommand
from channels.text import clean_text

MAX_MESSAGE_CHARACTERS = 32_000
"""The most characters of a message."""

MAX_FILES = 10
"""The most files of a message."""

_Id = Annotated[str, Field(pattern=r"^[0-9A-Za-z_-]{8,64}$")]


class _Frame(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class SayFrame(_Frame):
    """A message; the page repeats it with the same id until it is accepted or refused.

    Attributes:
        id: The message's id, chosen by the page.
        text: The user's text.
        files: The ids of uploaded files.
    """

    type: Literal["say"]
    id: _Id
    text: str = Field(default="", max_length=MAX_MESSAGE_CHARACTERS)
    files: list[_Id] = Field(default=[], max_length=MAX_FILES)


class PressFrame(_Frame):
    """A press of a button below an answer.

    Attributes:
        id: The id of this message, chosen by the page.
        command: What the button sends: its id, or the command of one that is on no tape.
        message: The id of the answer.
    """

    type: Literal["press"]
    id: _Id
    command: str = Field(pattern=r"^(/[A-Za-z]|[0-9a-f]{16}\.)", max_length=MAX_MESSAGE_CHARACTERS)
    message: str = Field(min_length=1, max_length=200)


class OlderFrame(_Frame):
    """A request for older messages.

    Attributes:
        before: The position of the oldest message that the page shows.
    """

    type: Literal["older"]
    before: int = Field(ge=1, le=999_999_999_999_999)


PageFrame = SayFrame | PressFrame | OlderFrame

_WORDS = frozenset({"text", "command", "message"})
"""The fields of a frame that reach the tape."""

_FRAMES: TypeAdapter[PageFrame] = TypeAdapter(Annotated[PageFrame, Field(discriminator="type")])


class InvalidFrame(Exception):
    """A page sent something that is not a valid frame; the text is for the user.

    Attributes:
        id: The message's id, if it could be read.
    """

    def __init__(self, why: str, message: str | None = None) -> None:
        super().__init__(why)
        self.id = message


def read_frame(text: str) -> PageFrame:
    """Parse a page's frame.

    Raises:
        InvalidFrame: It is invalid; the error's text is for the user.
    """
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise InvalidFrame(_("This page does not match the bot's version; reload it.")) from exc
    message = raw.get("id") if isinstance(raw, dict) else None
    known = message if isinstance(message, str) and len(message) <= 64 else None
    words = raw.get("text") if isinstance(raw, dict) else None
    if isinstance(words, str) and len(words) > MAX_MESSAGE_CHARACTERS:
        raise InvalidFrame(too_long_text(len(words), MAX_MESSAGE_CHARACTERS), known)
    if isinstance(raw, dict):
        raw = {key: _writable(key, value) for key, value in raw.items()}
    try:
        return _FRAMES.validate_python(raw)
    except ValidationError as exc:
        why = _("This page does not match the bot's version; reload it.")
        raise InvalidFrame(why, known) from exc


def _writable(key: str, value: object) -> object:
    """Return a value that reaches the tape without control characters and surrogates."""
    return clean_text(value) if key in _WORDS and isinstance(value, str) else value


def frame_text(frame: SayFrame | PressFrame) -> str:
    """Return the text of a message, or a button's command."""
    return (frame.text if isinstance(frame, SayFrame) else frame.command).strip()


def encode(frame: dict[str, Any] | str | bool) -> str:
    """Return a frame as JSON."""
    # ASCII only: lone surrogates of a model cannot be encoded in UTF-8, but can be escaped.
    return json.dumps(frame, separators=(",", ":"))


def lines_frame(
    rows: Sequence[dict[str, Any]],
    pending: Iterable[str] = (),
    *,
    reset: bool = False,
    older: bool = False,
    erasure_version: str | None = None,
) -> str:
    """Return a frame of messages as JSON."""
    body = ",".join([*map(encode, rows), *pending])
    begin = f'{{"type":"lines","reset":{encode(reset)},"older":{encode(older)},'
    marked = "" if erasure_version is None else f'"mark":{encode(erasure_version)},'
    return f'{begin}{marked}"lines":[{body}]}}'


def welcome_frame(
    user: WebUser, commands: tuple[MenuCommand, ...], most_bytes: int
) -> dict[str, Any]:
    """Return the first frame of a connection."""
    return {
        "type": "welcome",
        "session": user.address.session,
        "name": user.name,
        "role": user.role,
        "commands": [
            {
                "name": menu_command.name,
                "summary": _(menu_command.summary),
                "forms": [[form, _(line)] for form, line in menu_command.forms],
            }
            for menu_command in commands
        ],
        "max_bytes": most_bytes,
    }


def buttons_json(buttons: tuple[Button, ...]) -> list[dict[str, str]]:
    """Return buttons as JSON objects."""
    return [{"label": button.label, "command": button.data} for button in buttons]
