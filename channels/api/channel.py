"""The channel of client programs: publishes what their requests bring, and hands them the answers.

Rule 1: of one person, requests are placed one after the other, so that two at once cannot take the
    same place; the second one of a conversation is a fork.
Rule 2: a client that disconnects does not stop its answer: the same request gets it later.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import anyio

from bot.bus import (
    API_CHANNEL,
    AccessRequest,
    Answer,
    Attachment,
    Cause,
    ChannelPort,
    ClientBackend,
    ClientOutcome,
    ClientPlace,
    DeliveryReport,
    Inbound,
    PartialAnswer,
    RemoteFile,
    Role,
    Sender,
    WebUser,
    text_with_buttons,
)
from bot.core.reasons import Reason
from channels.api.content import ImageFile
from channels.api.errors import InvalidRequest
from channels.api.requests import ChatRequest, unknown_text
from channels.api.waiting import Placed, WaitingRequests
from channels.base import ChannelContext

logger = logging.getLogger(__name__)

_POLL = 0.05
"""Seconds between two looks at a tape for a message that the bus knows already."""
_POLLS = 400
_MOST_PLACINGS = 5


class ApiChannel:
    """Tapebot as a model behind OpenAI's API."""

    def __init__(self, context: ChannelContext, backend: ClientBackend) -> None:
        self.backend = backend
        self._context = context
        self._waiting = WaitingRequests()
        self._locks: dict[str, anyio.Lock] = {}
        self._port: ChannelPort | None = None

    @property
    def name(self) -> str:
        """The first part of the channel's session keys."""
        return API_CHANNEL

    async def run(self, port: ChannelPort) -> None:
        """Hand over answers until cancelled."""
        self._port = port
        while True:
            outbound = await port.receive()
            if isinstance(outbound, PartialAnswer):
                for one in self._waiting.of(outbound):
                    one.put_partial(outbound)
            elif isinstance(outbound, Answer):
                await self._answered(port, outbound)

    @asynccontextmanager
    async def placed(self, user: WebUser, request: ChatRequest) -> AsyncIterator[Placed]:
        """Publish a request's message unless it came before; yield where its answer comes.

        Raises:
            InvalidRequest: It fits to no conversation, or the person may not use the bot.
            BusError: The message could not be recorded.
        """
        role = await self._role(user)
        with ExitStack() as stack:
            async with self._locks.setdefault(user.id, anyio.Lock()):
                placed = await self._place(user, role, request, stack)
            try:
                yield placed
            finally:
                if not placed.taken and placed.waiting.answer is not None:
                    # It came when its client was gone already.
                    with anyio.CancelScope(shield=True):
                        await self.report(placed, placed.waiting.answer.id, delivered=False)

    async def _place(
        self, user: WebUser, role: Role, request: ChatRequest, stack: ExitStack
    ) -> Placed:
        """Publish a request's message, and wait for its answer until the stack is closed."""
        for _ in range(_MOST_PLACINGS):
            place = await self.backend.locate(user, request.history)
            if not place.pairs and request.history.new is None:
                raise InvalidRequest("these results belong to no call of tapebot", "messages")
            session = place.address.session
            waiting = stack.enter_context(self._waiting.wait(session, place.inbound))
            placed = Placed(session, place.inbound, place.answer, waiting)
            if place.asked is not None:
                # The answer may have come before this request waited for it.
                await self.look_again(placed)
                return placed
            if await self._publish(user, role, request, place):
                return placed
            stack.close()
        raise InvalidRequest("the conversation changes at the moment", status=409)

    async def look_again(self, placed: Placed) -> None:
        """Look for the answer on the tape, where it is even if no bus brings it."""
        if placed.answer is None and placed.waiting.answer is None:
            placed.answer = await self.backend.answer_to(placed.session, placed.inbound)

    async def outcome(self, placed: Placed) -> tuple[str, ClientOutcome]:
        """Return the id of the answer that came, and it; the caller reports its delivery."""
        came = placed.waiting.answer
        if placed.answer is None:
            assert came is not None
            text = text_with_buttons(came.text, came.buttons)
            found = came.id, await self.backend.outcome(placed.session, came.id, text)
        else:
            outcome = await self.backend.outcome(placed.session, placed.answer)
            found = placed.answer, outcome
        placed.taken = True
        return found

    async def report(self, placed: Placed, answer: str, *, delivered: bool) -> None:
        """Report whether an answer has reached its client."""
        if delivered:
            self.backend.mark_delivered(placed.session, answer)
        if self._port is not None and placed.waiting.answer is not None:
            error = None if delivered else Reason("delivery_disconnected")
            await self._port.report(DeliveryReport(placed.session, answer, delivered, error=error))

    async def _answered(self, port: ChannelPort, answer: Answer) -> None:
        waiting = self._waiting.of(answer)
        for one in waiting:
            one.put_answer(answer)
        if not waiting:
            error = Reason("delivery_not_awaited")
            await port.report(
                DeliveryReport(answer.session, answer.id, delivered=False, error=error)
            )

    async def _role(self, user: WebUser) -> Role:
        decision = await self._context.access.authorize(
            AccessRequest(user.address, Sender(user.id, user.name), private=True)
        )
        if decision.role is None:
            raise InvalidRequest("you may no longer use this bot", status=403, code="no_access")
        return decision.role

    async def _publish(
        self, user: WebUser, role: Role, request: ChatRequest, place: ClientPlace
    ) -> bool:
        """Publish a request's message; return False if its place was taken by another one."""
        assert self._port is not None
        inbound = await self._inbound(user, role, request, place)
        if not (await self._port.publish(inbound)).duplicate:
            return True
        if request.history.new is None:
            # Results of the same calls: the same request.
            return True
        # Accepted before, by a process that was killed or a moment ago: the tape will have it soon,
        # and shows whether it is the same message.
        for _ in range(_POLLS):
            if await self.backend.is_on_tape(place.address.session, inbound.id):
                break
            await anyio.sleep(_POLL)
        return False

    async def _inbound(
        self, user: WebUser, role: Role, request: ChatRequest, place: ClientPlace
    ) -> Inbound:
        session = place.address.session
        quotes = [] if request.quoted is None else [request.quoted]
        if place.unknown:
            quotes.insert(0, unknown_text(place.unknown))
        inbound = Inbound(
            address=place.address,
            id=place.inbound,
            sender=Sender(user.id, user.name),
            text=request.words,
            sent_at=datetime.now(UTC),
            quote="\n\n".join(quotes) or None,
            role=role,
            attachments=tuple(
                [await self._receive(user, session, image) for image in request.images]
            ),
            client=replace(request.client, preset=request.model.partition("/")[2]),
            grant=user.grant,
        )
        if request.history.new is None:
            return replace(inbound, cause=Cause("client", user.name))
        return inbound

    async def _receive(self, user: WebUser, session: str, image: ImageFile) -> Attachment:
        async def fetch(most: int) -> bytes:
            return image.data[:most]

        return await self._context.media.receive(
            RemoteFile("image", "image", image.mime, len(image.data), fetch, session, user.id)
        )
