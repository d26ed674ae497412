"""The chat's routes: WebSocket, uploads and downloads.

Rule 1: users can download files of their own conversation only.
Rule 2: files never run in the browser: they are saved, or displayed if they are of certain image
    types.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict
from functools import partial
from typing import Annotated
from urllib.parse import quote

import anyio
from fastapi import APIRouter, Query, Request, WebSocket
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from bot.bus import OutgoingFile, TranscriptMessage, WebBackend
from bot.core.i18n import N_, _
from channels.outgoing_files import file_size
from channels.web.conversation import PagePosition
from channels.web.notices import NoticeStore
from channels.web.page_messages import notice_files
from channels.web.socket import SocketServer, is_same_origin
from channels.web.uploads import UploadRefused, UploadStore

_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Image types that cannot hold scripts."""

_BOUND = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",  # for programs
    "Cache-Control": "private, no-store",  # for programs
}
MAX_CONCURRENT_DOWNLOADS = 4
"""The most attachments sent to one user at once, since each is held in memory."""

CHUNK_BYTES = 64_000
"""The most bytes of an attachment that are sent in one piece."""

_NOBODY = N_("you are not logged in, or this page belongs to another site; open it again")
_NOT_THERE = N_("there is no such file in your chat, or it no longer exists")

_Position = Annotated[int, Query(ge=0, le=999_999_999_999_999)]
_Number = Annotated[int, Query(ge=0, le=99)]


class UserSlots:
    """Limit each user to ``MAX_CONCURRENT_DOWNLOADS``; further ones wait."""

    def __init__(self) -> None:
        self._of: dict[str, anyio.Semaphore] = {}
        self._users: Counter[str] = Counter()

    @asynccontextmanager
    async def acquire(self, visitor: str) -> AsyncIterator[None]:
        """Hold a slot for the block."""
        slots = self._of.setdefault(visitor, anyio.Semaphore(MAX_CONCURRENT_DOWNLOADS))
        self._users[visitor] += 1
        try:
            async with slots:
                yield
        finally:
            self._users[visitor] -= 1
            if not self._users[visitor]:
                del self._users[visitor], self._of[visitor]


class _SlotResponse(Response):
    """A response that is created only when it is sent, while holding a slot."""

    def __init__(
        self, slot: AbstractAsyncContextManager[None], made: Callable[[], Awaitable[Response]]
    ) -> None:
        super().__init__()
        self._slot = slot
        self._made = made

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Create the response and send it."""
        async with self._slot:
            await (await self._made())(scope, receive, send)


class ChatRoutes:
    """The handlers of the chat's routes."""

    def __init__(
        self, site: WebBackend, sockets: SocketServer, uploads: UploadStore, notices: NoticeStore
    ) -> None:
        self._site = site
        self._sockets = sockets
        self._uploads = uploads
        self._notices = notices
        self._slots = UserSlots()

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter()
        router.add_api_websocket_route("/chat/socket", self.socket)
        router.add_api_route("/chat/uploads", self.upload, methods=["POST"])
        router.add_api_route("/chat/files", self.file)
        router.add_api_route("/chat/attachments", self.attachment)
        return router

    async def socket(self, websocket: WebSocket, after: str = "0", mark: str = "") -> None:
        """Serve a page's connection."""
        fits = after.isascii() and after.isdecimal() and len(after) <= 15
        await self._sockets.serve(websocket, PagePosition(int(after) if fits else 0, mark))

    async def upload(
        self,
        request: Request,
        name: Annotated[str, Query(max_length=1_000)] = "file",
        mime: Annotated[str | None, Query(max_length=200)] = None,
    ) -> Response:
        """Store a file that a message will have."""
        visitor = await self._site.user(request) if is_same_origin(request) else None
        if visitor is None:
            return _refusal(401, "not_logged_in", _(_NOBODY))
        if _length(request) > self._uploads.most_bytes:
            most = self._uploads.most_bytes / 1_000_000
            return _refusal(413, "too_large", _("the file is larger than {most:g} MB", most=most))
        kind = mime or request.headers.get("content-type", "")
        try:
            uploaded_file = await self._uploads.save(visitor.id, name, kind, request.stream())
        except UploadRefused as error:
            return _refusal(error.status, "refused", str(error))
        except OSError as error:
            why = _(
                "the file could not be kept ({strerror}); is the disk full?",
                strerror=error.strerror,
            )
            return _refusal(507, "not_kept", why)
        return JSONResponse(asdict(uploaded_file), 201)

    async def file(
        self,
        request: Request,
        number: _Number,
        position: _Position = 0,
        notice: Annotated[str | None, Query(max_length=200)] = None,
    ) -> Response:
        """Return a file of an answer or a notice."""
        visitor = await self._site.user(request)
        if visitor is None:
            return _refusal(401, "not_logged_in", _(_NOBODY))
        session = visitor.address.session
        files: tuple[OutgoingFile, ...] = ()
        if notice is not None:
            notices = await self._notices.load(session)
            files = next((notice_files(other) for other in notices if other.id == notice), ())
        elif (line := await self._line(session, position)) is not None:
            files = line.files
        outgoing_file = files[number] if number < len(files) else None
        if outgoing_file is None or await file_size(outgoing_file) is None:
            return _refusal(404, "not_found", _(_NOT_THERE))
        headers = {**_BOUND, "Content-Disposition": _saved_as(outgoing_file.name)}
        return FileResponse(
            outgoing_file.path, headers=headers, media_type="application/octet-stream"
        )

    async def attachment(self, request: Request, position: _Position, number: _Number) -> Response:
        """Return a file that a person sent."""
        visitor = await self._site.user(request)
        if visitor is None:
            return _refusal(401, "not_logged_in", _(_NOBODY))
        session = visitor.address.session
        made = partial(self._attachment, session, position, number)
        return _SlotResponse(self._slots.acquire(visitor.id), made)

    async def _attachment(self, session: str, position: int, number: int) -> Response:
        line = await self._line(session, position)
        found = line.attachments[number] if line and number < len(line.attachments) else None
        data = None
        if found is not None and found.blob is not None:
            data = await self._site.blob(found.blob)
        if found is None or data is None:
            return _refusal(404, "not_found", _(_NOT_THERE))
        shown = found.mime in _IMAGES
        headers = dict(_BOUND)
        if not shown:
            headers["Content-Disposition"] = _saved_as(found.name)
        mime = found.mime if shown else "application/octet-stream"
        headers["Content-Length"] = str(len(data))
        return StreamingResponse(_pieces(data), headers=headers, media_type=mime)

    async def _line(self, session: str, position: int) -> TranscriptMessage | None:
        return await self._site.transcript.message(session, position) if position else None


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    """Yield content in pieces, so that sending waits for the client to read them."""
    for at in range(0, len(data), CHUNK_BYTES):
        yield data[at : at + CHUNK_BYTES]


def _length(request: Request) -> int:
    given = request.headers.get("content-length", "")
    return int(given) if given.isascii() and given.isdecimal() and len(given) < 16 else 0


def _saved_as(name: str) -> str:
    return (
        f"attachment; filename*=UTF-8''{quote(name.replace(chr(0), ''), safe='')}"  # for programs
    )


def _refusal(status: int, code: str, detail: str) -> JSONResponse:
    return JSONResponse({"error": code, "detail": detail}, status)
