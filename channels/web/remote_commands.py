"""Run commands in a conversation for a user of another page (``bot.bus.RemoteCommands``).

Rule 1: the answer to a command goes to an address made for it alone, where its caller waits. If
    nobody waits any more (a restart, a timeout), it is on the tape and displayed nowhere.
Rule 2: an answer is reported each time it comes.
"""

from __future__ import annotations

import logging
import re
import secrets
from datetime import UTC, datetime

import anyio

from bot.bus import (
    WEB_CHANNEL,
    Address,
    Answer,
    ChannelPort,
    DeliveryReport,
    Inbound,
    InvalidInbound,
    Outbound,
    Sender,
    WebUser,
)
from bot.core.i18n import _
from channels.text import clean_text

logger = logging.getLogger(__name__)

_REPLY_ADDRESS_PREFIX = "desk."
_COMMAND = re.compile(r"/[a-z][a-z0-9_]*(?:@\w+)?(?:\s.*)?", re.IGNORECASE | re.DOTALL)
"""The syntax of ``bot.agent.commands.parser``."""


class _Waiting:
    """A caller that waits for an answer."""

    def __init__(self) -> None:
        self.came = anyio.Event()
        self.answer: Answer | None = None


class WebRemoteCommands:
    """Run commands through the channel's port."""

    def __init__(self, port: ChannelPort) -> None:
        self._port = port
        self._waiting: dict[str, _Waiting] = {}

    @staticmethod
    def is_for_remote(outbound: Outbound) -> bool:
        """Return whether an outbound is for a remote caller rather than for a conversation."""
        elsewhere = isinstance(outbound, Answer) and outbound.report_to is not None
        return elsewhere or outbound.address.chat_id.startswith(_REPLY_ADDRESS_PREFIX)

    async def run(
        self,
        session: Address,
        visitor: WebUser,
        text: str,
        *,
        private: bool,
        pressed: str | None = None,
        within: float = 30.0,
    ) -> Answer:
        """Run a command and return its answer; see ``bot.bus.RemoteCommands``."""
        # As with messages of pages, no control characters reach the tape.
        text = clean_text(text).strip()
        if not _COMMAND.fullmatch(text):
            raise InvalidInbound(
                _("only commands are accepted here, such as /memory; /help lists them")
            )
        # Also the inbound's id, as it is unique.
        address = f"{_REPLY_ADDRESS_PREFIX}{secrets.token_hex(16)}"
        waiting = self._waiting[address] = _Waiting()
        inbound = Inbound(
            address=session,
            id=address,
            sender=Sender(visitor.id, visitor.name, visitor.language),
            text=text,
            sent_at=datetime.now(UTC),
            private=private,
            role=visitor.role,
            pressed_message_id=None if pressed is None else clean_text(pressed),
            answer_to=Address(WEB_CHANNEL, address),
            grant=visitor.grant,
        )
        try:
            with anyio.fail_after(within):
                await self._port.publish(inbound)
                await waiting.came.wait()
        finally:
            del self._waiting[address]
        if waiting.answer is None:
            raise AssertionError
        return waiting.answer

    async def deliver(self, outbound: Outbound) -> None:
        """Pass an answer to its caller, if one still waits, and report it."""
        if not isinstance(outbound, Answer):
            return
        waiting = self._waiting.get(outbound.address.chat_id)
        if waiting is None:
            logger.info("no one is waiting any more for an answer of %s", outbound.session)
        elif waiting.answer is None:
            waiting.answer = outbound
            waiting.came.set()
        ids = (outbound.id,)
        await self._port.report(DeliveryReport(outbound.session, outbound.id, platform_ids=ids))
