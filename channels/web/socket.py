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
from bot.core.i18n import N_, _
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
_LOGGED_OUT = N_("You are no longer logged in. Log in to continue.")


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
    """Serve the WebSocket connections of pages."""

    def __init__(self, context: ConnectionContext) -> None:
        self._context = context
        self._open: Counter[str] = Counter()

    async def serve(self, socket: WebSocket, seen: PagePosition) -> None:
        """Serve a connection until either side closes it."""
        # A close code reaches a page only if the connection was accepted.
        await socket.accept()
        if not is_same_origin(socket):
            await socket.close(WRONG_ORIGIN, "this page belongs to another site")  # for programs
            return
        user = await self._context.site.user(socket)
        if user is None:
            await socket.close(NOT_LOGGED_IN, _close_reason(_("you are not logged in")))
            return
        with self._counted(user.id) as fits:
            if not fits:
                await socket.close(
                    TOO_MANY,
                    _close_reason(_("{number} pages are open already", number=MAX_PAGES_PER_USER)),
                )
                return
            page = PageQueue()
            with (
                self._context.conversations.acquire(user.address.session) as conversation,
                conversation.detach_on_exit(page),
            ):
                connection = PageConnection(self._context, socket, user, conversation, page)
                await _close(socket, await connection.run(seen))

    @contextmanager
    def _counted(self, user: str) -> Iterator[bool]:
        """Count a connection; yield False if the user has too many."""
        self._open[user] += 1
        try:
            yield self._open[user] <= MAX_PAGES_PER_USER
        finally:
            self._open[user] -= 1
            self._open += Counter()


class PageConnection:
    """One page's connection."""

    def __init__(
        self,
        context: ConnectionContext,
        socket: WebSocket,
        user: WebUser,
        conversation: WebConversation,
        page: PageQueue,
    ) -> None:
        self._context = context
        self._socket = socket
        self._user = user
        self._conversation = conversation
        self._page = page

    async def run(self, seen: PagePosition) -> int:
        """Serve the connection; return the close code."""
        self._page.put(
            encode(welcome_frame(self._user, self._context.commands, self._context.most_bytes))
        )
        ended: list[int] = []

        async def until_end(part: Callable[[], Awaitable[int]]) -> None:
            ended.append(await part())
            tasks.cancel_scope.cancel()

        try:
            async with anyio.create_task_group() as tasks:
                for part in (self._send, self._look_after, self._slow):
                    tasks.start_soon(until_end, part)
                await self._conversation.attach(self._page, seen)
                await until_end(self._listen)
        except Exception:  # one page's failure must not affect others
            logger.exception("a page's connection failed")
            return BROKEN
        return ended[0]

    async def _send(self) -> int:
        while True:
            frame = await self._page.get()
            try:
                with anyio.fail_after(SEND_TIMEOUT_SECONDS):
                    await self._socket.send_text(frame)
            except TimeoutError:
                return TOO_SLOW
            except (WebSocketDisconnect, RuntimeError, OSError):
                return 1000

    async def _slow(self) -> int:
        await self._page.overflowed.wait()
        return TOO_SLOW

    async def _look_after(self) -> int:
        """Return once the user is logged out."""
        while True:
            await anyio.sleep(self._context.check_seconds)
            if not await self._counts():
                return NOT_LOGGED_IN

    async def _counts(self) -> bool:
        """Check the login and update the user; notify the page if it has ended."""
        user = await self._context.site.user(self._socket)
        if user is not None and user.id == self._user.id:
            self._user = user
            return True
        with anyio.move_on_after(_CLOSE_SECONDS):
            await self._socket.send_text(encode({"type": "ended", "text": _(_LOGGED_OUT)}))
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
            await self._conversation.send_older(self._page, frame.before)
        else:
            self._context.intake.submit(self._user, frame, self._accepted, self._refused)
        return True

    def _accepted(self, message: str, duplicate: bool) -> None:
        self._page.put(encode({"type": "accepted", "id": message, "duplicate": duplicate}))

    def _refused(self, message: str | None, why: str) -> None:
        self._page.put(encode({"type": "refused", "id": message, "text": why}))


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


def _close_reason(text: str) -> str:
    """Return a text that fits into a close frame, which holds 123 bytes of it."""
    return text.encode()[:123].decode(errors="ignore")


async def _close(socket: WebSocket, code: int) -> None:
    # Closing would block forever if the page does not read.
    with anyio.move_on_after(_CLOSE_SECONDS):
        try:
            await socket.close(code)
        except (WebSocketDisconnect, RuntimeError, OSError):
            logger.debug("a page disappeared before its connection was closed")
