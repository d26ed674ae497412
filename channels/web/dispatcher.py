"""Dispatch outbound messages to web conversations and remote commands.

Rule 1: within a conversation everything is displayed in order; conversations do not wait for each
    other.
Rule 2: each time an answer comes, it is reported once it is on the tape or stored as a notice,
    whether or not a page is open.
"""

from __future__ import annotations

import logging
from functools import partial

import anyio
import stamina

from bot.bus import Activity, Answer, ChannelPort, DeliveryReport, Outbound, PartialAnswer
from channels.keyed_executor import KeyedExecutor
from channels.web.conversation import ConversationRegistry, WebConversation
from channels.web.remote_commands import WebRemoteCommands

logger = logging.getLogger(__name__)

_BETWEEN_PARTIALS = 0.05
_RETRIES = stamina.AsyncRetryingCaller(
    attempts=None, timeout=None, wait_initial=0.5, wait_max=60.0, wait_jitter=0
)


class WebDispatcher:
    """Deliver everything that the channel's port yields."""

    def __init__(
        self,
        port: ChannelPort,
        conversations: ConversationRegistry,
        remote_commands: WebRemoteCommands,
        executor: KeyedExecutor,
    ) -> None:
        self._port = port
        self._conversations = conversations
        self._remote_commands = remote_commands
        self._executor = executor
        self._partials: dict[str, PartialAnswer] = {}

    async def run(self) -> None:
        """Serve until cancelled."""
        while True:
            outbound = await self._port.receive()
            session = outbound.address.session
            if self._remote_commands.is_for_remote(outbound):
                await self._remote_commands.deliver(outbound)
            elif isinstance(outbound, PartialAnswer):
                waits = session in self._partials
                self._partials[session] = outbound
                if not waits:
                    self._executor.submit(
                        f"show {session}", partial(self._partial, session)
                    )  # for the log
            else:
                self._executor.submit(
                    f"show {session}", partial(self._show, session, outbound)
                )  # for the log

    async def _partial(self, session: str) -> None:
        newest = self._partials.pop(session)
        with self._conversations.acquire(session) as conversation:
            await conversation.show_partial(newest)
        # A pause, since more frequent updates are not readable.
        await anyio.sleep(_BETWEEN_PARTIALS)

    async def _show(self, session: str, outbound: Outbound) -> None:
        with self._conversations.acquire(session) as conversation:
            if isinstance(outbound, Activity):
                await conversation.show_activity(outbound)
            elif isinstance(outbound, Answer):
                await self._retry_until_accepted(conversation, outbound)
                ids = (outbound.id,)
                report = DeliveryReport(outbound.session, outbound.id, platform_ids=ids)
                await self._port.report(report)

    async def _retry_until_accepted(self, conversation: WebConversation, answer: Answer) -> None:
        """Retry until an answer can be displayed; it is not reported before."""

        def log(error: Exception) -> bool:
            # Whatever it is, the answer must not be lost.
            logger.warning("an answer in %s waits: %s", conversation.session, type(error).__name__)
            return True

        await _RETRIES(log, conversation.show_answer, answer)
