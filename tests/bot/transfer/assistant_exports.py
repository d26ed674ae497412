"""Exports of other assistants, made after the formats that their importers document."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio

from bot.cli.import_assistants import import_assistant
from bot.tape.entries import TapeEntry
from tests.bot.transfer.exchange_files import read, settings

NOON = 1_700_000_000.0


def node(
    one: str,
    parent: str | None,
    role: str = "user",
    text: Any = "",
    *,
    at: float | None = NOON,
    kind: str = "text",
    children: Sequence[str] = (),
    **more: Any,
) -> dict[str, Any]:
    """A node of ChatGPT's tree with a message."""
    content: dict[str, Any] = {"content_type": kind}
    content |= text if isinstance(text, dict) else {"parts": [text]}
    message = {
        "id": one,
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": at,
        "content": content,
        "status": "finished_successfully",
        "weight": 1.0,
        "recipient": "all",
        "metadata": {},
        **more,
    }
    return {"id": one, "message": message, "parent": parent, "children": list(children)}


def root(one: str = "root", children: Sequence[str] = ()) -> dict[str, Any]:
    return {"id": one, "message": None, "parent": None, "children": list(children)}


def chatgpt(
    key: str, nodes: Sequence[dict[str, Any]], current: str | None, **more: Any
) -> dict[str, Any]:
    return {
        "id": key,
        "conversation_id": key,
        "title": "A title",
        "create_time": NOON,
        "update_time": NOON + 60,
        "mapping": {one["id"]: one for one in nodes},
        "current_node": current,
        "moderation_results": [],
        **more,
    }


def talk(key: str, *said: str, start: float = NOON) -> dict[str, Any]:
    """A conversation of ChatGPT's without branches: the person and the assistant by turns."""
    nodes = [root("n0")]
    for number, text in enumerate(said, start=1):
        role = "user" if number % 2 else "assistant"
        nodes.append(node(f"n{number}", f"n{number - 1}", role, text, at=start + number))
    return chatgpt(key, nodes, f"n{len(said)}", create_time=start)


def claude(key: str, *said: str, day: str = "2025-03-01") -> dict[str, Any]:
    """A conversation of Claude's: the person and the assistant by turns."""
    messages = [
        {
            "uuid": f"{key}-{number}",
            "text": text,
            "content": [{"type": "text", "text": text, "citations": []}],
            "sender": "assistant" if number % 2 else "human",
            "created_at": f"{day}T10:{number:02}:00.500000Z",
            "updated_at": f"{day}T10:{number:02}:00.500000Z",
            "attachments": [],
            "files": [],
        }
        for number, text in enumerate(said)
    ]
    return {
        "uuid": key,
        "name": "A name",
        "created_at": f"{day}T10:00:00Z",
        "account": {"uuid": "account"},
        "chat_messages": messages,
    }


def archive(path: Path, files: dict[str, Any]) -> Path:
    """A zip file; values that are no bytes are written as JSON."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, value in files.items():
            made.writestr(name, value if isinstance(value, bytes) else json.dumps(value))
    return path


def bring(home: Path, bot: str, path: Path, **given: Any) -> int:
    return import_assistant(settings(home), bot, path, **given)


def messages(home: Path, session: str) -> list[TapeEntry]:
    return [one for one in anyio.run(read, home, session) if one.kind == "message"]


def said(home: Path, session: str) -> list[tuple[str, str]]:
    return [(one.payload["role"], one.payload["content"]) for one in messages(home, session)]
