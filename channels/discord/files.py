"""Files that people send on Discord: described at once, fetched only when asked for."""

from __future__ import annotations

from typing import Literal

import aiohttp
import anyio
import discord

from bot.bus import File, FileUnavailable

_UNKNOWN = "application/octet-stream"
_TRIES = 3
_SECONDS = 120.0
_CHUNK = 65_536

Kind = Literal["image", "voice", "audio", "video", "document"]


def file_of(attachment: discord.Attachment) -> File:
    """Return an attachment as a file that is not fetched yet."""
    mime = (attachment.content_type or _UNKNOWN).partition(";")[0].strip() or _UNKNOWN

    async def fetch(most: int) -> bytes:
        return await _fetch(attachment.url, most)

    return File(_kind(attachment, mime), attachment.filename, mime, attachment.size, fetch)


def _kind(attachment: discord.Attachment, mime: str) -> Kind:
    if attachment.is_voice_message():
        return "voice"
    match mime.partition("/")[0]:
        case "image":
            return "image"
        case "audio":
            return "audio"
        case "video":
            return "video"
    return "document"


async def _fetch(url: str, most: int) -> bytes:
    tries = 0
    while True:
        try:
            return await _read(url, most)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            tries += 1
            if tries == _TRIES:
                # The error may hold the address, and whoever has that may read the file.
                name = type(error).__name__
                raise FileUnavailable(f"Discord did not hand it over ({name})") from None
        await anyio.sleep(tries)


async def _read(url: str, most: int) -> bytes:
    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as response:
        if response.status in {403, 404, 410}:
            raise FileUnavailable("it is not on Discord any more")
        response.raise_for_status()
        content = bytearray()
        async for chunk in response.content.iter_chunked(_CHUNK):
            content += chunk
            if len(content) > most:
                raise FileUnavailable(f"it is larger than the {most} bytes that are allowed")
        return bytes(content)
