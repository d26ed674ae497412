"""People, places and what people do on the Discord test server; ids are integers, as over JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import anyio

from testkit.discord.backend import DiscordBackend
from testkit.discord.gateway import Shard, shard_receives_guild
from testkit.discord.interactions import AUTOCOMPLETE, COMMAND, COMPONENT, InteractionServer
from testkit.discord.messages import MessagePayload, rewrite, write
from testkit.discord.records import DiscordMessage, DiscordRecords, DiscordUpload
from testkit.discord.validation import components
from testkit.discord.world import (
    READ_MESSAGE_HISTORY,
    SEND_MESSAGES,
    TEXT,
    VIEW_CHANNEL,
    ChannelState,
    DiscordUser,
    Guild,
)

T = TypeVar("T")

_POLL = 0.05  # for predicates that depend on more than the records


class DiscordUserActions:
    """Creates people and places, acts for people, and waits for what the bot does."""

    def __init__(self, hub: DiscordBackend, interactions: InteractionServer) -> None:
        self.hub, self.world = hub, hub.world
        self._interactions = interactions

    @property
    def records(self) -> DiscordRecords:
        return self.world.records

    @property
    def bot_id(self) -> int:
        """The bot's id, also the application's."""
        return self.world.bot.id

    def user(
        self, name: str, *, shown: str | None = None, bot: bool = False, locale: str = "en-US"
    ) -> int:
        user = DiscordUser(self.world.ids.next(), name, shown, bot, locale=locale)
        self.world.users[user.id] = user
        return user.id

    def guild(self, name: str, members: Iterable[int] = (), *, shard: Shard | None = None) -> int:
        """Add a guild with the bot, on a shard (GUILD_CREATE)."""
        people = list(members)
        number = self.world.ids.next()
        while shard is not None and not shard_receives_guild(number, shard):
            number = self.world.ids.next()
        guild = Guild(number, name, (people or [self.bot_id])[0], [*people, self.bot_id])
        self.world.guilds[number] = guild
        self.hub.gateway.tell_joined(guild)
        return number

    def channel(self, guild: int, name: str) -> int:
        channel = ChannelState(self.world.ids.next(), TEXT, name, guild)
        self.world.channels[channel.id] = channel
        self.hub.tell_channel("CHANNEL_CREATE", channel)
        return channel.id

    def direct(self, user: int) -> int:
        return self.world.direct(user).id

    def thread(self, channel: int, name: str, *, user: int) -> int:
        return self.hub.open_thread(self.world.channels[channel], name, user).id

    def deny(
        self, channel: int, *, view: bool = False, send: bool = False, history: bool = False
    ) -> None:
        """Set which permissions the bot lacks in a channel; without arguments it has all."""
        place = self.world.channels[channel]
        place.denied = (VIEW_CHANNEL if view else 0) | (SEND_MESSAGES if send else 0)
        place.denied |= READ_MESSAGE_HISTORY if history else 0
        self.hub.tell_channel("CHANNEL_UPDATE", place)

    def block(self, user: int) -> None:
        """Let a user block the bot's direct messages."""
        self.world.users[user].blocks = True

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

    def unfurl(self, message: int) -> None:
        """Add a link preview: an update without an edit, as Discord sends on its own."""
        standing = self.records.messages[message]
        standing.embeds += ({"type": "link", "title": "A page"},)
        self.hub.announce("MESSAGE_UPDATE", standing)

    def raw(self, event: str, data: Any) -> None:
        """Send any event, even malformed or unknown, to all sessions."""
        self.hub.gateway.dispatch(event, data, everywhere=True)

    def slash(
        self, channel: int, user: int, name: str, options: Mapping[str, Any] | None = None
    ) -> int:
        """Use a registered command; return the interaction's id."""
        place = self.world.channels[channel]
        data = self._command(name, options or {})
        return self._interactions.send(COMMAND, place, user, name, data).id

    async def autocomplete(
        self, channel: int, user: int, name: str, option: str, typed: str
    ) -> list[Any]:
        """Type into an option and wait for the choices."""
        place = self.world.channels[channel]
        data = self._command(name, {}, (option, typed))
        made = self._interactions.send(AUTOCOMPLETE, place, user, name, data)
        await self.until(lambda _books: made.choices is not None)
        return made.choices or []

    def press(self, message: int, custom_id: str, user: int) -> int:
        """Press a button or choose from a select menu; return the interaction's id."""
        standing = self.records.messages[message]
        present = {
            one["custom_id"]: one for one in components(standing.components) if "custom_id" in one
        }
        if custom_id not in present or present[custom_id].get("disabled"):
            raise LookupError(f"no component {custom_id} is enabled; the message has {present}")
        kind = present[custom_id]["type"]
        data: dict[str, Any] = {"custom_id": custom_id, "component_type": kind, "id": 1}
        place = self.world.channels[standing.channel_id]
        return self._interactions.send(COMPONENT, place, user, custom_id, data, message=standing).id

    def shown(self, interaction: int) -> str | None:
        """Return the current text of the response to an interaction; None if there is none."""
        known = self.records.interactions[interaction]
        message = self.records.messages.get(known.response_id or 0)
        if message is None or message.loading or message.deleted is not None:
            return None
        return message.content

    def answers(self, channel: int) -> list[DiscordMessage]:
        """Return the bot's existing messages in a channel, without deferred empty ones."""
        mine = self.records.messages_in(channel, author=self.bot_id)
        return [each for each in mine if not each.loading]

    async def until(self, predicate: Callable[[DiscordRecords], T], *, within: float = 60.0) -> T:
        """Wait until a predicate on the records holds; return its result."""
        with anyio.move_on_after(within):
            while not (value := predicate(self.records)):
                with anyio.move_on_after(_POLL):
                    await self.records.changed()
            return value
        calls = [f"{c.method} {c.path} {c.status}" for c in self.records.calls[-8:]]
        events = [f"{note.what} {note.subject}" for note in self.records.gateway[-8:]]
        raise TimeoutError(f"not within {within} s; calls: {calls}; gateway: {events}")

    async def until_messages(self, channel: int, count: int) -> list[DiscordMessage]:
        """Wait until the bot has this many messages in a channel; return them."""
        await self.until(lambda _books: len(self.answers(channel)) >= count)
        return self.answers(channel)

    async def until_connected(self, *, within: float = 60.0) -> None:
        await self.until(lambda _books: self.hub.gateway.connected, within=within)

    def _command(
        self, name: str, values: Mapping[str, Any], typed: tuple[str, str] | None = None
    ) -> dict[str, Any]:
        """Return the data of a command's interaction, or of the completion of a typed option."""
        known = {each["name"]: each for each in self.records.commands.get(0, [])}
        if name not in known:
            raise LookupError(f"no command /{name}; registered: {list(known)}")
        declared = {each["name"]: each for each in known[name].get("options") or []}
        needed = {key for key, each in declared.items() if each.get("required")}
        given = dict(values) if typed is None else {**values, typed[0]: typed[1]}
        if typed is None and not given.keys() >= needed:
            raise ValueError(f"/{name} needs {', '.join(needed)}")
        if typed is not None and not declared[typed[0]].get("autocomplete"):
            raise LookupError(f"/{name} has no option {typed[0]} that completes")
        if unknown := given.keys() - declared.keys():
            raise LookupError(f"no options {unknown}; declared: {list(declared)}")
        options: list[dict[str, Any]] = [
            {"name": key, "type": declared[key]["type"], "value": value}
            for key, value in given.items()
        ]
        if typed is not None:
            options[-1]["focused"] = True
        return {"id": known[name]["id"], "name": name, "type": 1, "options": options}
