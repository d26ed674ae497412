"""What stands between Discord's events and the bus: who may, and that what was taken is durable."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TypeVar

import anyio

from bot.bus import (
    Access,
    Attachment,
    BusClosed,
    BusError,
    ChannelPort,
    File,
    Inbound,
    InvalidInbound,
    Knock,
    Media,
    SessionFull,
    Verdict,
)
from channels.discord.patience import FIRST_PAUSE, LONGEST_PAUSE

logger = logging.getLogger(__name__)

T = TypeVar("T")

Tell = Callable[[str], Awaitable[None]]
"""Tells the person something, if that is possible."""

LOST = (
    "Something went wrong with your message, and I could not take it. Please send it again; "
    "whoever runs me finds the reason in the log."
)


class Person:
    """Whoever waits for what they sent to be taken; they hear of troubles once.

    Args:
        tell: Tells them something.
        asks: Whether they spoke to the bot; who did not is told nothing.
    """

    def __init__(self, tell: Tell, *, asks: bool = True) -> None:
        self._tell = tell
        self._asks = asks
        self._warned = False

    async def told(self, text: str) -> None:
        """Tell them something."""
        if self._asks:
            await self._tell(text)

    async def warned(self, error: BusError) -> None:
        """Tell them what keeps their message, the first time only."""
        if not self._warned:
            self._warned = True
            text = str(error)
            await self.told(f"{text[:1].upper()}{text[1:]} I will try again.")

    @asynccontextmanager
    async def not_left_waiting(self) -> AsyncIterator[None]:
        """Tell them where something unforeseen happens inside, which is raised on."""
        try:
            yield
        except Exception:
            await self.told(LOST)
            raise


class Gate:
    """Admission, files and publishing, tried until they are done.

    Args:
        access: Says who may.
        media: Takes files.
        port: The channel's end of the bus.
    """

    def __init__(self, access: Access, media: Media, port: ChannelPort) -> None:
        self._access = access
        self._media = media
        self._port = port

    async def admit(self, knock: Knock) -> Verdict:
        """Return whether somebody may; what could not be recorded is tried again."""
        return await _until_done("who knocked", partial(self._access.admit, knock))

    async def take(self, file: File, person: Person) -> Attachment:
        """Return what became of a file; one that could not be kept is tried again.

        Args:
            file: The file, of somebody who was admitted.
            person: Is told why it takes so long.
        """
        return await _until_done("a file", partial(self._media.take, file), person)

    async def publish(
        self, inbound: Inbound, person: Person, knock: Knock, *, waited: bool = False
    ) -> None:
        """Return once a message is durable, or was refused and its sender told so.

        Args:
            inbound: The message, with the role that the sender had a moment ago.
            person: Is told why it takes so long, or why it is refused.
            knock: Asks for them again, wherever waiting came between.
            waited: Whether it did before.
        """
        fresh = not waited

        async def settle() -> None:
            nonlocal fresh
            now = inbound if fresh else await self._still_admitted(inbound, knock)
            fresh = False
            if now is not None:
                await self._port.publish(now)

        try:
            await _until_done(f"a message for {inbound.session}", settle, person)
        except (SessionFull, InvalidInbound) as refusal:
            logger.info("a message for %s was refused: %s", inbound.session, refusal)
            await person.told(str(refusal))

    async def _still_admitted(self, inbound: Inbound, knock: Knock) -> Inbound | None:
        verdict = await self._access.admit(replace(knock, text=None))
        if verdict.role is None:
            logger.info("somebody who was let in is not any more: what they sent is dropped")
            return None
        return replace(inbound, role=verdict.role)


async def _until_done(
    what: str, call: Callable[[], Awaitable[T]], person: Person | None = None
) -> T:
    """Make a call until it works, with longer and longer pauses.

    Raises:
        SessionFull: The session takes no more.
        InvalidInbound: It names no usable session.
    """
    pause = FIRST_PAUSE
    while True:
        try:
            return await call()
        except BusClosed:
            await anyio.sleep_forever()  # the program is stopping: whoever owns this cancels it
        except (SessionFull, InvalidInbound):
            raise
        except BusError as error:
            logger.warning("%s could not be taken: %s", what, error)
            if person is not None:
                await person.warned(error)
        await anyio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)
