"""Encode transcript messages and notices as JSON for pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import anyio.to_thread

from bot.bus import Attachment, Button, Inbound, OutgoingFile, TranscriptMessage, WebBackend
from bot.core.reasons import reason_text
from channels.outgoing_files import file_size, missing_file_text
from channels.web.frames import buttons_json
from channels.web.notices import Notice

MessageJson = dict[str, Any]


def pending_message_json(inbound: Inbound) -> MessageJson:
    """Return an accepted message that is not on the tape yet, and so has no position."""
    return {
        "position": 0,
        "id": inbound.id,
        "author": "person",
        "name": inbound.sender.name,
        "text": inbound.text,
        "html": None,
        "at": inbound.sent_at.isoformat(),
        "buttons": [],
        "replaces": None,
        "files": [],
        "attachments": [_attachment(attachment, None) for attachment in inbound.attachments],
    }


async def messages_json(
    site: WebBackend, lines: Sequence[TranscriptMessage], notices: Sequence[Notice]
) -> list[MessageJson]:
    """Return messages and notices as JSON, in display order."""
    message_jsons = [
        *[await _line(transcript_message) for transcript_message in lines],
        *[await _notice(notice) for notice in notices],
    ]
    texts = [row["text"] if row["author"] != "person" else None for row in message_jsons]
    # In a thread, since rendering a long answer takes milliseconds.
    shown = await anyio.to_thread.run_sync(_rendered, site, texts)
    for row, html in zip(message_jsons, shown, strict=True):
        row["html"] = html
    return sorted(message_jsons, key=lambda row: (row["position"], row["author"] == "notice"))


def _rendered(site: WebBackend, texts: Iterable[str | None]) -> list[str | None]:
    return [None if text is None else site.render(text) for text in texts]


async def _line(line: TranscriptMessage) -> MessageJson:
    files, text = await _files(line.files, line.text, {"position": str(line.position)})
    return {
        "position": line.position,
        "id": line.id,
        "author": line.author,
        "name": line.name,
        "text": text,
        "html": None,
        "at": line.at,
        "buttons": buttons_json(line.buttons),
        "replaces": line.replaces,
        "files": files,
        "attachments": [
            _attachment(
                attachment, _address("attachments", {"position": str(line.position)}, number)
            )
            for number, attachment in enumerate(line.attachments)
        ],
    }


async def _notice(notice: Notice) -> MessageJson:
    files, text = await _files(notice_files(notice), notice.text, {"notice": notice.id})
    return {
        "position": notice.position,
        "id": notice.id,
        "author": "notice",
        "name": "",
        "text": text,
        "html": None,
        "at": notice.at,
        "buttons": buttons_json(tuple(Button(*pair) for pair in notice.buttons)),
        "replaces": None,
        "files": files,
        "attachments": [],
    }


def notice_files(notice: Notice) -> tuple[OutgoingFile, ...]:
    """Return the files of a notice."""
    return tuple(OutgoingFile(name, Path(path)) for name, path in notice.files)


async def _files(
    files: Sequence[OutgoingFile], text: str, place: dict[str, str]
) -> tuple[list[MessageJson], str]:
    """Return existing files as JSON, and the text with a note about each missing file."""
    message_jsons: list[MessageJson] = []
    for number, file in enumerate(files):
        size = await file_size(file)
        if size is None:
            text = f"{text}\n\n{missing_file_text(file)}"
        else:
            message_jsons.append(
                {"name": file.name, "url": _address("files", place, number), "size": size}
            )
    return message_jsons, text


def _attachment(attachment: Attachment, url: str | None) -> MessageJson:
    return {
        "kind": attachment.kind,
        "name": attachment.name,
        "mime": attachment.mime,
        "url": url if attachment.blob is not None else None,
        "note": attachment.note and reason_text(attachment.note),
    }


def _address(what: str, place: dict[str, str], number: int) -> str:
    return f"/chat/{what}?{urlencode({**place, 'number': str(number)})}"
