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

from bot.bus import Activity, Answer, ChannelPort, DeliveryReport, Outbound, Partial
from channels.keyed_executor import KeyedExecutor
from channels.web.conversation import ConversationRegistry, WebConversation
from channels.web.remote_commands import WebRemoteCommands

logger = logging.getLogger(__name__)

_BETWEEN_PARTIALS = 0.05
_FIRST_RETRY = 0.5
_LONGEST_RETRY = 60.0


class WebDispatcher:
    """Deliver everything that the channel's port yields.

    Args:
        port: The channel's access to the bus.
        rooms: The conversations.
        remote_commands: Receives the answers to remote commands.
        lanes: Run each conversation's work in order.
    """

    def __init__(
        self,
        port: ChannelPort,
        rooms: ConversationRegistry,
        remote_commands: WebRemoteCommands,
        lanes: KeyedExecutor,
    ) -> None:
        self._port = port
        self._rooms = rooms
        self._remote_commands = remote_commands
        self._lanes = lanes
        self._partials: dict[str, Partial] = {}

    async def run(self) -> None:
        """Serve until cancelled."""
        while True:
            outbound = await self._port.receive()
            session = outbound.address.session
            if self._remote_commands.is_for_remote(outbound):
                await self._remote_commands.deliver(outbound)
            elif isinstance(outbound, Partial):
                waits = session in self._partials
                self._partials[session] = outbound
                if not waits:
                    self._lanes.submit(f"show {session}", partial(self._partial, session))
            else:
                self._lanes.submit(f"show {session}", partial(self._show, session, outbound))

    async def _partial(self, session: str) -> None:
        newest = self._partials.pop(session)
        with self._rooms.acquire(session) as room:
            await room.show_partial(newest)
        # A pause, since more frequent updates are not readable.
        await anyio.sleep(_BETWEEN_PARTIALS)

    async def _show(self, session: str, outbound: Outbound) -> None:
        with self._rooms.acquire(session) as room:
            if isinstance(outbound, Activity):
                await room.show_activity(outbound)
            elif isinstance(outbound, Answer):
                await self._insist(room, outbound)
                ids = (outbound.id,)
                report = DeliveryReport(outbound.session, outbound.id, platform_ids=ids)
                await self._port.report(report)

    async def _insist(self, room: WebConversation, answer: Answer) -> None:
        """Retry until an answer can be displayed; it is not reported before."""
        pause = _FIRST_RETRY
        while True:
            try:
                await room.show_answer(answer)
            except Exception as error:  # noqa: BLE001 (whatever it is, the answer must not be lost)
                logger.warning(
                    "an answer in %s waits %g s: %s", room.session, pause, type(error).__name__
                )
                await anyio.sleep(pause)
                pause = min(2 * pause, _LONGEST_RETRY)
            else:
                return
