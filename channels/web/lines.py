"""Messages as pages show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import anyio.to_thread

from bot.bus import Attachment, Button, Inbound, Line, OutFile, Site
from channels.outfiles import gone, size_of
from channels.web.frames import buttons_of
from channels.web.notices import Notice

Row = dict[str, Any]


def pending_row(inbound: Inbound) -> Row:
    """Return a message that is accepted and not on the tape yet: it has no position."""
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
        "attachments": [_attachment(one, None) for one in inbound.attachments],
    }


async def rows_of(site: Site, lines: Sequence[Line], notices: Sequence[Notice]) -> list[Row]:
    """Return lines and notices in the order in which they are shown."""
    made = [*[await _line(one) for one in lines], *[await _notice(one) for one in notices]]
    texts = [row["text"] if row["author"] != "person" else None for row in made]
    # Long answers take milliseconds each.
    shown = await anyio.to_thread.run_sync(_rendered, site, texts)
    for row, html in zip(made, shown, strict=True):
        row["html"] = html
    return sorted(made, key=lambda row: (row["position"], row["author"] == "notice"))


def _rendered(site: Site, texts: Iterable[str | None]) -> list[str | None]:
    return [None if text is None else site.render(text) for text in texts]


async def _line(line: Line) -> Row:
    files, text = await _files(line.files, line.text, {"position": str(line.position)})
    return {
        "position": line.position,
        "id": line.id,
        "author": line.author,
        "name": line.name,
        "text": text,
        "html": None,
        "at": line.at,
        "buttons": buttons_of(line.buttons),
        "replaces": line.replaces,
        "files": files,
        "attachments": [
            _attachment(one, _address("attachments", {"position": str(line.position)}, number))
            for number, one in enumerate(line.attachments)
        ],
    }


async def _notice(notice: Notice) -> Row:
    files, text = await _files(files_of(notice), notice.text, {"notice": notice.id})
    return {
        "position": notice.position,
        "id": notice.id,
        "author": "notice",
        "name": "",
        "text": text,
        "html": None,
        "at": notice.at,
        "buttons": buttons_of(tuple(Button(*pair) for pair in notice.buttons)),
        "replaces": None,
        "files": files,
        "attachments": [],
    }


def files_of(notice: Notice) -> tuple[OutFile, ...]:
    """Return the files that go out with a notice."""
    return tuple(OutFile(name, Path(path)) for name, path in notice.files)


async def _files(
    files: Sequence[OutFile], text: str, place: dict[str, str]
) -> tuple[list[Row], str]:
    """Return files as pages show them, and the text with a word on those that are gone."""
    shown: list[Row] = []
    for number, file in enumerate(files):
        size = await size_of(file)
        if size is None:
            text = f"{text}\n\n{gone(file)}"
        else:
            shown.append({"name": file.name, "url": _address("files", place, number), "size": size})
    return shown, text


def _attachment(one: Attachment, url: str | None) -> Row:
    return {
        "kind": one.kind,
        "name": one.name,
        "mime": one.mime,
        "url": url if one.blob is not None else None,
        "note": one.note,
    }


def _address(what: str, place: dict[str, str], number: int) -> str:
    return f"/chat/{what}?{urlencode({**place, 'number': str(number)})}"
