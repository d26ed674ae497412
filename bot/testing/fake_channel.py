"""A channel in memory, on the real channel port."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC, datetime

import anyio

from bot.bus.messages import (
    Activity,
    Address,
    Answer,
    Attachment,
    DeliveryReport,
    Inbound,
    PartialAnswer,
    Role,
    Sender,
)
from bot.bus.ports import ChannelPort

ADA = Sender("7", "Ada")


class FakeChannel:
    """A channel whose chats a test reads and writes.

    ``run`` must be running to receive answers; each answer is then reported as delivered, unless
    ``reports`` is False.

    Attributes:
        answers: All answers received, in order.
        partials: All partials received.
        activity: All activity signals received.
        reports: Whether answers are reported as delivered.

    Args:
        port: The channel's side of the bus.
        name: The channel's name.
        now: Returns the time for messages.
    """

    def __init__(
        self,
        port: ChannelPort,
        name: str = "fake",
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.name = name
        self.answers: list[Answer] = []
        self.partials: list[PartialAnswer] = []
        self.activity: list[Activity] = []
        self.reports = True
        self._port = port
        self._now = now
        self._numbers = itertools.count(1)
        self._shown = anyio.Event()

    async def run(self) -> None:
        """Receive outbound messages from the bus until cancelled."""
        while True:
            outbound = await self._port.receive()
            if isinstance(outbound, PartialAnswer):
                self.partials.append(outbound)
            elif isinstance(outbound, Activity):
                self.activity.append(outbound)
            else:
                self.answers.append(outbound)
                if self.reports:
                    await self.report(outbound)
            self._shown.set()
            self._shown = anyio.Event()

    async def send(
        self,
        text: str,
        *,
        chat: str = "1",
        topic: str | None = None,
        sender: Sender = ADA,
        private: bool = True,
        quote: str | None = None,
        message_id: str | None = None,
        role: Role = "owner",
        asks: bool = True,
        edits: str | None = None,
        attachments: tuple[Attachment, ...] = (),
        pressed: str | None = None,
        via: Address | None = None,
    ) -> Inbound:
        """Publish a message as a person would write it; return it once it is accepted.

        Raises:
            SessionFull: Too many messages of the session are waiting.
            BusClosed: The program is stopping.
        """
        inbound = Inbound(
            address=Address(self.name, chat, topic),
            id=message_id or f"m{next(self._numbers)}",
            sender=sender,
            text=text,
            sent_at=self._now(),
            private=private,
            quote=quote,
            role=role,
            expects_answer=asks,
            edited_message_id=edits,
            attachments=attachments,
            pressed_message_id=pressed,
            answer_to=via,
        )
        await self._port.publish(inbound)
        return inbound

    async def report(self, answer: Answer, *, error: str | None = None) -> None:
        """Report the delivery of an answer; without ``error`` as delivered."""
        shown = () if error else (f"out-{len(self.answers)}",)
        await self._port.report(
            DeliveryReport(answer.session, answer.id, error is None, shown, error),
        )

    async def wait_for_answer(self, inbound: Inbound, *, within: float = 60.0) -> str:
        """Wait for the answer to a message, and return its text.

        Raises:
            TimeoutError: There is no answer in time.
        """
        await self.wait_until(lambda: self._find(inbound) is not None, within=within)
        found = self._find(inbound)
        return found.text if found is not None else ""

    async def ask(
        self,
        text: str,
        *,
        chat: str = "1",
        topic: str | None = None,
        sender: Sender = ADA,
        private: bool = True,
    ) -> str:
        """Send a message and return its answer."""
        sent = await self.send(text, chat=chat, topic=topic, sender=sender, private=private)
        return await self.wait_for_answer(sent)

    async def wait_until(self, condition: Callable[[], bool], *, within: float = 60.0) -> None:
        """Wait until a condition holds; it is checked after each outbound message.

        Raises:
            TimeoutError: It does not hold in time.
        """
        with anyio.fail_after(within):
            while not condition():
                await self._shown.wait()

    def _find(self, inbound: Inbound) -> Answer | None:
        return next(
            (
                answer
                for answer in self.answers
                if answer.reply_to == inbound.id
                and answer.address == (inbound.answer_to or inbound.address)
                and answer.session == inbound.session
            ),
            None,
        )
