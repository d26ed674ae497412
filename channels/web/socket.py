"""One page's connection: what it says, what it is sent, and when it ends."""

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

from bot.bus import Site, Visitor
from channels.base import CommandMenu
from channels.web.frames import BadFrame, Older, encode, read_frame, welcome
from channels.web.room import Room, Seen
from channels.web.rooms import Rooms
from channels.web.saying import Saying
from channels.web.tab import Tab

logger = logging.getLogger(__name__)

MOST_SOCKETS = 8
"""Pages of one visitor that may be open at once."""

NOBODY, WRONG_ORIGIN, TOO_SLOW, TOO_MANY, BROKEN = 4401, 4403, 4408, 4429, 1011
"""Codes with which connections are closed. A page comes back by itself but for the first two."""

CHECK_SECONDS = 10.0
"""How often it is asked whether the login of an open page still counts."""

SEND_SECONDS = 60.0
"""The most that a page may take to take in what it is sent: one that is gone takes nothing for good."""

_CLOSE_SECONDS = 2.0
_LOGGED_OUT = "You are not logged in any more. Log in to go on."


@dataclass(frozen=True, slots=True)
class Lobby:
    """What connections share.

    Attributes:
        site: Knows who is logged in.
        rooms: What is shown.
        saying: Takes what is said.
        commands: For completion.
        most_bytes: The most that a file may have.
        check_seconds: How often a login is looked at.
    """

    site: Site
    rooms: Rooms
    saying: Saying
    commands: tuple[CommandMenu, ...]
    most_bytes: int
    check_seconds: float = CHECK_SECONDS


class Sockets:
    """Serves pages' connections.

    Args:
        lobby: What they share.
    """

    def __init__(self, lobby: Lobby) -> None:
        self._lobby = lobby
        self._open: Counter[str] = Counter()

    async def serve(self, socket: WebSocket, seen: Seen) -> None:
        """Serve a connection until one of both ends it.

        Args:
            socket: Not accepted yet.
            seen: What the page has.
        """
        # Codes reach a page only on a connection that was accepted.
        await socket.accept()
        if not own_origin(socket):
            await socket.close(WRONG_ORIGIN, "this page is of another site")
            return
        visitor = await self._lobby.site.visitor(socket)
        if visitor is None:
            await socket.close(NOBODY, "nobody is logged in")
            return
        with self._counted(visitor.id) as fits:
            if not fits:
                await socket.close(TOO_MANY, f"{MOST_SOCKETS} pages are open already")
                return
            tab = Tab()
            with self._lobby.rooms.using(visitor.address.session) as room, room.joined(tab):
                connection = Connection(self._lobby, socket, visitor, room, tab)
                await _close(socket, await connection.run(seen))

    @contextmanager
    def _counted(self, visitor: str) -> Iterator[bool]:
        """Count a connection; False where there are too many."""
        self._open[visitor] += 1
        try:
            yield self._open[visitor] <= MOST_SOCKETS
        finally:
            self._open[visitor] -= 1
            self._open += Counter()


class Connection:
    """One page that is served.

    Args:
        lobby: What all share.
        socket: Its connection.
        visitor: Whose it is.
        room: What it shows.
        tab: What waits for it.
    """

    def __init__(
        self, lobby: Lobby, socket: WebSocket, visitor: Visitor, room: Room, tab: Tab
    ) -> None:
        self._lobby = lobby
        self._socket = socket
        self._visitor = visitor
        self._room = room
        self._tab = tab

    async def run(self, seen: Seen) -> int:
        """Serve it; return the code to close it with."""
        self._tab.put(encode(welcome(self._visitor, self._lobby.commands, self._lobby.most_bytes)))
        ended: list[int] = []

        async def until_end(part: Callable[[], Awaitable[int]]) -> None:
            ended.append(await part())
            tasks.cancel_scope.cancel()

        try:
            async with anyio.create_task_group() as tasks:
                for part in (self._send, self._look_after, self._slow):
                    tasks.start_soon(until_end, part)
                await self._room.enter(self._tab, seen)
                await until_end(self._listen)
        except Exception:  # one page's trouble is no other's
            logger.exception("a page's connection broke down")
            return BROKEN
        return ended[0]

    async def _send(self) -> int:
        while True:
            frame = await self._tab.get()
            try:
                with anyio.fail_after(SEND_SECONDS):
                    await self._socket.send_text(frame)
            except TimeoutError:
                return TOO_SLOW
            except (WebSocketDisconnect, RuntimeError, OSError):
                return 1000

    async def _slow(self) -> int:
        await self._tab.slow.wait()
        return TOO_SLOW

    async def _look_after(self) -> int:
        """Return once the login does not count any more."""
        while True:
            await anyio.sleep(self._lobby.check_seconds)
            if not await self._counts():
                return NOBODY

    async def _counts(self) -> bool:
        """Ask whether the login counts, and as what; tell the page where it does not."""
        visitor = await self._lobby.site.visitor(self._socket)
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
            # What came at once is given without a pause: however much that is, others have theirs.
            await anyio.lowlevel.checkpoint()
            if not await self._heard(message.get("text")):
                return NOBODY

    async def _heard(self, text: str | None) -> bool:
        """Act on a frame; False where the login has ended."""
        try:
            frame = read_frame(text or "")
        except BadFrame as error:
            self._refused(error.id, str(error))
            return True
        if not await self._counts():
            return False
        if isinstance(frame, Older):
            await self._room.older(self._tab, frame.before)
        else:
            self._lobby.saying.take(self._visitor, frame, self._accepted, self._refused)
        return True

    def _accepted(self, message: str, duplicate: bool) -> None:
        self._tab.put(encode({"type": "accepted", "id": message, "duplicate": duplicate}))

    def _refused(self, message: str | None, why: str) -> None:
        self._tab.put(encode({"type": "refused", "id": message, "text": why}))


def own_origin(connection: HTTPConnection) -> bool:
    """Say whether a browser's request comes from a page of the host that it asks; programs say nothing."""
    origin = connection.headers.get("origin")
    if origin is None:
        return True
    try:
        place = urlsplit(origin).netloc
    except ValueError:
        return False
    return place.lower() == connection.headers.get("host", "").lower()


async def _close(socket: WebSocket, code: int) -> None:
    # A page that does not read would hold its connection for good.
    with anyio.move_on_after(_CLOSE_SECONDS):
        try:
            await socket.close(code)
        except (WebSocketDisconnect, RuntimeError, OSError):
            logger.debug("a page was gone before it was closed")
