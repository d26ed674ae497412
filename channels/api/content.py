"""Read the content of messages: text, images, and what a client puts around its user's words. Pure.

Rule 1: text that a client adds, such as passages of documents, is quoted and not the user's words.
Rule 2: a client's own questions, such as for a title, are recognised by the templates of Open WebUI
    and LibreChat.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bot.bus import LONGEST_MESSAGE
from channels.api.errors import InvalidRequest
from channels.text import clean_text

_TASK = "### Task:"
_HISTORY = "<chat_history>"
_AUTOCOMPLETION = "You are an autocompletion system"
_CONTEXT_BEGIN, _CONTEXT_END = "<context>", "</context>"
_QUERY_BEGIN, _QUERY_END = "<user_query>", "</user_query>"
_TITLES = (
    ("Provide a concise, 5-word-or-less title for the conversation",),
    ("Analyze this conversation and provide:", "concise title in the detected language"),
    ("Please generate a concise title (max 40 characters) for a conversation that starts with",),
)
_LOOKED_AT = 2_000


@dataclass(frozen=True, slots=True)
class ImageFile:
    """An image that came as a data URL.

    Attributes:
        mime: Its media type.
        data: Its bytes.
    """

    mime: str
    data: bytes


def text_of(content: Any, param: str) -> str:
    """Return the text of a message's content, a string or a list of parts, as far as it is looked at.

    Raises:
        InvalidRequest: It is neither.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return _cut(content)
    if not isinstance(content, list):
        raise InvalidRequest("the content is neither a text nor a list of parts", param)
    texts = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif not isinstance(part, dict):
            raise InvalidRequest("a part of the content is no object", param)
        elif isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif isinstance(part.get("refusal"), str):
            texts.append(part["refusal"])
        elif part.get("type") not in ("image_url", "input_image"):
            texts.append(f"(a part of type {str(part.get('type'))[:40]}, which was not read)")
    return _cut("\n".join(texts))


def _cut(text: str) -> str:
    """Return a clean text; of one that is too long, one character more than a message may have."""
    return clean_text(text[: 2 * LONGEST_MESSAGE])[: LONGEST_MESSAGE + 1]


def images_of(content: Any, param: str) -> list[ImageFile]:
    """Return the images in a message's content.

    Raises:
        InvalidRequest: One is not a data URL: tapebot fetches nothing for a client.
    """
    images = []
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, dict) or part.get("type") not in ("image_url", "input_image"):
            continue
        url = part.get("image_url")
        address = url.get("url") if isinstance(url, dict) else url
        images.append(_image(address, param))
    return images


def _image(address: Any, param: str) -> ImageFile:
    head, comma, data = str(address).partition(",") if isinstance(address, str) else ("", "", "")
    kind, *options = head.removeprefix("data:").split(";")
    if not head.startswith("data:image/") or not comma or "base64" not in options:
        raise InvalidRequest(
            "an image must be a data URL: data:image/png;base64,...", param, code="invalid_image"
        )
    try:
        return ImageFile(kind.lower(), base64.b64decode(data, validate=True))
    except binascii.Error:
        raise InvalidRequest("an image is not base64", param, code="invalid_image") from None


def split_words(text: str) -> tuple[str, str | None]:
    """Return a person's words, and the passages that Open WebUI puts before them, if it does."""
    if not text.startswith(_TASK) or _CONTEXT_BEGIN not in text:
        return text, None
    before, end, words = text.rpartition(_CONTEXT_END)
    if not end:
        return text, None
    words = words.strip().removeprefix(_QUERY_BEGIN).removesuffix(_QUERY_END).strip()
    return (words, before + end) if words else (text, None)


def is_clients_question(system: str, users: Sequence[str], others: int) -> bool:
    """Return whether a request is the client's own: a title, tags, follow-ups, a search query."""
    if len(users) != 1 or others:
        return False
    text = users[0].lstrip()
    begin = text[:_LOOKED_AT]
    if begin.startswith(_TASK):
        return _HISTORY in text or _AUTOCOMPLETION in begin
    head = f"{system[:_LOOKED_AT]}\n{begin}"
    return any(all(sign in head for sign in signs) for signs in _TITLES)
