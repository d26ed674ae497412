"""Limit how many requests run at once, and stop what runs for a client that is gone.

A slow client holds a slot for a limited time. Requests without a free slot wait a little and are
then refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.core.errors import TapebotError
from bot.core.http.errors import busy
from bot.core.i18n import _

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RequestSlots:
    """Slots for requests or WebSockets that run at once.

    Attributes:
        slots: One for each.
        server: Name of the server, for the refusal.
        wait: Seconds to wait for a slot.
        longest: Seconds that a request may take, including its body and response.
        timeout_code: Code of the error for a request that took longer.
    """

    slots: anyio.Semaphore
    server: str
    wait: float = 0.0
    longest: float | None = None
    timeout_code: str = "timeout"

    async def run(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Run a request in a slot, or refuse it."""
        if not await self._acquire():
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1013})
            else:
                told = _("the {server} is busy; try again in a second", server=self.server)
                await busy(told)(scope, receive, send)
            return
        begun = False

        async def noting(message: Message) -> None:
            nonlocal begun
            begun = begun or message["type"] == "http.response.start"
            await send(message)

        try:
            with anyio.move_on_after(self.longest) as bounded:
                await app(scope, receive, noting)
        finally:
            self.slots.release()
        if bounded.cancelled_caught and not begun:
            told = _("the request took too long and was cancelled")
            await busy(told, code=self.timeout_code)(scope, receive, send)

    async def _acquire(self) -> bool:
        try:
            self.slots.acquire_nowait()
        except anyio.WouldBlock:
            with anyio.move_on_after(self.wait) as waiting:
                await self.slots.acquire()
            return not waiting.cancelled_caught
        return True


async def read_whole(receive: Receive) -> Receive:
    """Read a request's body, whose length is limited; return what gives it, and what comes after."""
    messages: deque[Message] = deque()
    while not messages or messages[-1].get("more_body", False):
        messages.append(await receive())

    async def replay() -> Message:
        return messages.popleft() if messages else await receive()

    return replay


async def run_until_disconnect(receive: Receive, work: Callable[[], Awaitable[T]]) -> T | None:
    """Return what some work returns; cancel it, and return None, when the client disconnects.

    Args:
        receive: Receives the messages of the request, whose body was read.
        work: What is done for the client; what it raises is raised here.
    """
    result: T | None = None
    failed: TapebotError | None = None
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            tasks.cancel_scope.cancel()

        tasks.start_soon(watch)
        try:
            result = await work()
        except TapebotError as error:
            # Raised below, outside of the task group.
            failed = error
        tasks.cancel_scope.cancel()
    if failed is not None:
        raise failed
    return result
