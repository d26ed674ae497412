"""Read what other assistants left: each reader yields one conversation after the other. Blocking."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bot.transfer.imported import ImportedSession, Reading
from bot.transfer.readers.chatgpt import read_chatgpt
from bot.transfer.readers.claude import read_claude
from bot.transfer.readers.nanobot import read_nanobot
from bot.transfer.readers.openclaw import read_openclaw

READERS: Mapping[str, Callable[[Path, Reading], Iterator[ImportedSession]]] = {
    "chatgpt": read_chatgpt,
    "claude": read_claude,
    "nanobot": read_nanobot,
    "openclaw": read_openclaw,
}
