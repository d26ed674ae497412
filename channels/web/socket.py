"""Serve a page's WebSocket connection: frames in both directions, login checks and limits."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import anyio
import anyio.lowlevel
from starlette.requests import HTTPConnection
from starlette.websockets import WebSocket, WebSocketDisconnect

from bot.bus import WebBackend, WebUser
from channels.base import MenuCommand
from channels.web.conversation import ConversationRegistry, PagePosition, PageQueue, WebConversation
from channels.web.frames import InvalidFrame, OlderFrame, encode, read_frame, welcome_frame
from channels.web.intake import WebIntake

logger = logging.getLogger(__name__)

MAX_PAGES_PER_USER = 8
"""The most pages that one user may have open."""

NOT_LOGGED_IN, WRONG_ORIGIN, TOO_SLOW, TOO_MANY, BROKEN = 4401, 4403, 4408, 4429, 1011
"""Close codes. A page reconnects after all but the first two."""

LOGIN_CHECK_SECONDS = 10.0
"""Seconds between two checks that an open page is still logged in."""

SEND_TIMEOUT_SECONDS = 60.0
"""Seconds that sending one frame may take; a page that is gone would block it forever."""

_CLOSE_SECONDS = 2.0
_LOGGED_OUT = "You are not logged in any more. Log in to go on."


@dataclass(frozen=True, slots=True)
class ConnectionContext:
    """What all connections share.

    Attributes:
        site: Identifies users.
        conversations: The conversations.
        intake: Publishes messages.
        commands: The commands, for completion.
        most_bytes: The most bytes of a file.
        check_seconds: Seconds between two login checks.
    """

    site: WebBackend
    conversations: ConversationRegistry
    intake: WebIntake
    commands: tuple[MenuCommand, ...]
    most_bytes: int
    check_seconds: float = LOGIN_CHECK_SECONDS


class SocketServer:
    """Serve the WebSocket connections of pages.

    Args:
        lobby: What all connections share.
    """

    def __init__(self, lobby: ConnectionContext) -> None:
        self._lobby = lobby
        self._open: Counter[str] = Counter()

    async def serve(self, socket: WebSocket, seen: PagePosition) -> None:
        """Serve a connection until either side closes it.

        Args:
            socket: The connection, not accepted yet.
            seen: What the page already shows.
        """
        # A close code reaches a page only if the connection was accepted.
        await socket.accept()
        if not is_same_origin(socket):
            await socket.close(WRONG_ORIGIN, "this page is of another site")
            return
        visitor = await self._lobby.site.user(socket)
        if visitor is None:
            await socket.close(NOT_LOGGED_IN, "nobody is logged in")
            return
        with self._counted(visitor.id) as fits:
            if not fits:
                await socket.close(TOO_MANY, f"{MAX_PAGES_PER_USER} pages are open already")
                return
            tab = PageQueue()
            with (
                self._lobby.conversations.acquire(visitor.address.session) as room,
                room.detach_on_exit(tab),
            ):
                connection = PageConnection(self._lobby, socket, visitor, room, tab)
                await _close(socket, await connection.run(seen))

    @contextmanager
    def _counted(self, visitor: str) -> Iterator[bool]:
        """Count a connection; yield False if the user has too many."""
        self._open[visitor] += 1
        try:
            yield self._open[visitor] <= MAX_PAGES_PER_USER
        finally:
            self._open[visitor] -= 1
            self._open += Counter()


class PageConnection:
    """One page's connection.

    Args:
        lobby: What all connections share.
        socket: The connection.
        visitor: The logged-in user.
        room: The conversation.
        tab: The page's queue of frames.
    """

    def __init__(
        self,
        lobby: ConnectionContext,
        socket: WebSocket,
        visitor: WebUser,
        room: WebConversation,
        tab: PageQueue,
    ) -> None:
        self._lobby = lobby
        self._socket = socket
        self._visitor = visitor
        self._room = room
        self._tab = tab

    async def run(self, seen: PagePosition) -> int:
        """Serve the connection; return the close code."""
        self._tab.put(
            encode(welcome_frame(self._visitor, self._lobby.commands, self._lobby.most_bytes))
        )
        ended: list[int] = []

        async def until_end(part: Callable[[], Awaitable[int]]) -> None:
            ended.append(await part())
            tasks.cancel_scope.cancel()

        try:
            async with anyio.create_task_group() as tasks:
                for part in (self._send, self._look_after, self._slow):
                    tasks.start_soon(until_end, part)
                await self._room.attach(self._tab, seen)
                await until_end(self._listen)
        except Exception:  # one page's failure must not affect others
            logger.exception("a page's connection broke down")
            return BROKEN
        return ended[0]

    async def _send(self) -> int:
        while True:
            frame = await self._tab.get()
            try:
                with anyio.fail_after(SEND_TIMEOUT_SECONDS):
                    await self._socket.send_text(frame)
            except TimeoutError:
                return TOO_SLOW
            except (WebSocketDisconnect, RuntimeError, OSError):
                return 1000

    async def _slow(self) -> int:
        await self._tab.overflowed.wait()
        return TOO_SLOW

    async def _look_after(self) -> int:
        """Return once the user is logged out."""
        while True:
            await anyio.sleep(self._lobby.check_seconds)
            if not await self._counts():
                return NOT_LOGGED_IN

    async def _counts(self) -> bool:
        """Check the login and update the user; notify the page if it has ended."""
        visitor = await self._lobby.site.user(self._socket)
        if visitor is not None and visitor.id == self._visitor.id:
            self._visitor = visitor
            return True
        with anyio.move_on_after(_CLOSE_SECONDS):
            await self._socket.send_text(encode({"type": "ended", "text": _LOGGED_OUT}))
        return False

    async def _listen(self) -> int:
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                return 1000
            # Buffered frames arrive without a pause; let other tasks run between them.
            await anyio.lowlevel.checkpoint()
            if not await self._heard(message.get("text")):
                return NOT_LOGGED_IN

    async def _heard(self, text: str | None) -> bool:
        """Handle a frame; return False if the login has ended."""
        try:
            frame = read_frame(text or "")
        except InvalidFrame as error:
            self._refused(error.id, str(error))
            return True
        if not await self._counts():
            return False
        if isinstance(frame, OlderFrame):
            await self._room.send_older(self._tab, frame.before)
        else:
            self._lobby.intake.submit(self._visitor, frame, self._accepted, self._refused)
        return True

    def _accepted(self, message: str, duplicate: bool) -> None:
        self._tab.put(encode({"type": "accepted", "id": message, "duplicate": duplicate}))

    def _refused(self, message: str | None, why: str) -> None:
        self._tab.put(encode({"type": "refused", "id": message, "text": why}))


def is_same_origin(connection: HTTPConnection) -> bool:
    """Return whether a request's Origin matches its Host; True without Origin (not a browser)."""
    origin = connection.headers.get("origin")
    if origin is None:
        return True
    try:
        place = urlsplit(origin).netloc
    except ValueError:
        return False
    return place.lower() == connection.headers.get("host", "").lower()


async def _close(socket: WebSocket, code: int) -> None:
    # Closing would block forever if the page does not read.
    with anyio.move_on_after(_CLOSE_SECONDS):
        try:
            await socket.close(code)
        except (WebSocketDisconnect, RuntimeError, OSError):
            logger.debug("a page was gone before it was closed")
