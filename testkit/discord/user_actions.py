"""Actions of users on the Discord test server, and waiting for the bot's messages.

Ids are integers in arguments and results, so that every action works over JSON as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import anyio

from testkit.discord.backend import DiscordBackend
from testkit.discord.command_payloads import command_data, component
from testkit.discord.interactions import AUTOCOMPLETE, COMMAND, COMPONENT, InteractionServer
from testkit.discord.messages import MessagePayload, rewrite, write
from testkit.discord.records import DiscordMessage, DiscordRecords, DiscordUpload, InteractionRecord
from testkit.discord.setup import DiscordSetup

T = TypeVar("T")

_POLL = 0.05  # for predicates that depend on more than the records


class DiscordUserActions(DiscordSetup):
    """Actions of users, and waiting for what the bot does."""

    def __init__(self, hub: DiscordBackend, interactions: InteractionServer) -> None:
        super().__init__(hub)
        self._interactions = interactions

    def say(
        self,
        channel: int,
        user: int,
        text: str,
        *,
        reply_to: int | None = None,
        ping: bool = True,
        attachments: Iterable[DiscordUpload] = (),
        mentions: Iterable[int] = (),
        extra: Mapping[str, Any] | None = None,
    ) -> int:
        """Send a message as a user; return its id."""
        place = self.world.channels[channel]
        missing = [f"<@{each}>" for each in mentions if f"<@{each}>" not in text]
        body: dict[str, Any] = {"content": " ".join([*missing, text])}
        if reply_to is not None:
            body["message_reference"] = {"message_id": reply_to}
        if not ping:
            body["allowed_mentions"] = {"parse": ["users", "roles", "everyone"]}
        message = write(self.world, place, user, MessagePayload(body, tuple(attachments)))
        message.extra = dict(extra or {})
        self.hub.announce("MESSAGE_CREATE", message)
        return message.id

    def edit(self, message: int, text: str) -> None:
        """Edit a message as its author."""
        standing = self.records.messages[message]
        rewrite(self.world, standing, MessagePayload({"content": text}))
        self.hub.announce("MESSAGE_UPDATE", standing)

    def unfurl(self, message: int, title: str = "A page") -> None:
        """Add a link preview: an update without an edit, as Discord sends on its own."""
        standing = self.records.messages[message]
        standing.embeds += ({"type": "link", "title": title},)
        self.hub.announce("MESSAGE_UPDATE", standing)

    def delete(self, message: int) -> None:
        """Delete a message."""
        self.hub.delete(self.records.messages[message])

    def react(self, message: int, user: int, emoji: str, *, remove: bool = False) -> None:
        """Add or remove a user's reaction to a message."""
        self.hub.react(self.records.messages[message], user, emoji, remove=remove)

    def raw(self, event: str, data: Any) -> None:
        """Send any event, even malformed or unknown, to all sessions."""
        self.hub.gateway.dispatch(event, data, everywhere=True)

    def slash(
        self, channel: int, user: int, name: str, options: Mapping[str, Any] | None = None
    ) -> int:
        """Use a registered command; return the interaction's id."""
        place = self.world.channels[channel]
        data = command_data(self.world, name, options or {})
        return self._interactions.send(COMMAND, place, user, name, data).id

    async def autocomplete(
        self, channel: int, user: int, name: str, option: str, typed: str, *, within: float = 60.0
    ) -> list[Any]:
        """Type into an option and wait for the choices."""
        place = self.world.channels[channel]
        data = command_data(self.world, name, {}, (option, typed))
        made = self._interactions.send(AUTOCOMPLETE, place, user, name, data)
        return await self.until(lambda _books: made.choices, within=within, empty=True) or []

    def press(self, message: int, custom_id: str, user: int) -> int:
        """Press a button or choose from a select menu; return the interaction's id."""
        standing = self.records.messages[message]
        kind = component(standing.components, custom_id)
        data: dict[str, Any] = {"custom_id": custom_id, "component_type": kind, "id": 1}
        place = self.world.channels[standing.channel_id]
        return self._interactions.send(COMPONENT, place, user, custom_id, data, message=standing).id

    def shown(self, interaction: int) -> str | None:
        """Return the current text of the response to an interaction; None if there is none."""
        known: InteractionRecord = self.records.interactions[interaction]
        message = self.records.messages.get(known.response_id or 0)
        if message is None or message.loading or message.deleted is not None:
            return None
        return message.content

    def answers(self, channel: int) -> list[DiscordMessage]:
        """Return the bot's existing messages in a channel, without deferred empty ones."""
        mine = self.records.messages_in(channel, author=self.bot_id)
        return [each for each in mine if not each.loading]

    async def until(
        self, predicate: Callable[[DiscordRecords], T], *, within: float = 60.0, empty: bool = False
    ) -> T:
        """Wait until a predicate on the records holds; return its result."""
        with anyio.move_on_after(within):
            while True:
                value = predicate(self.records)
                if value or (empty and value is not None):
                    return value
                with anyio.move_on_after(_POLL):
                    await self.records.changed()
        raise TimeoutError(f"not within {within} s; {self._end()}")

    async def until_messages(
        self, channel: int, count: int, *, within: float = 60.0
    ) -> list[DiscordMessage]:
        """Wait until the bot has this many messages in a channel; return them."""
        await self.until(lambda _books: len(self.answers(channel)) >= count, within=within)
        return self.answers(channel)

    async def until_connected(self, sessions: int = 1, *, within: float = 60.0) -> None:
        """Wait until this many sessions have a connection."""
        await self.until(lambda _books: self.hub.gateway.connected >= sessions, within=within)

    def _end(self) -> str:
        calls = [f"{c.method} {c.path} {c.status}" for c in self.records.calls[-8:]]
        events = [f"{note.what} {note.subject}" for note in self.records.gateway[-8:]]
        return f"last calls: {calls}; last of the gateway: {events}"
