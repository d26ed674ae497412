"""The state of the Telegram test server: people, bots, chats, messages, files and queued updates."""

from __future__ import annotations

import copy
import itertools
import time
from dataclasses import dataclass, field
from typing import Any

from testkit.loopback import Signal
from testkit.telegram.records import BotMessage, Json, TelegramRecords, UpdateDelivery
from testkit.telegram.validation import BotApiError, bad

_ASKED_FOR = frozenset({"chat_member", "message_reaction", "message_reaction_count"})
"""Update kinds that a bot must request: https://core.telegram.org/bots/api#getupdates."""


@dataclass(frozen=True, slots=True)
class TelegramUser:
    """A person, or a bot as others see it."""

    id: int
    first_name: str
    username: str | None = None
    is_bot: bool = False
    language_code: str | None = None

    def as_json(self) -> Json:
        known = {"id": self.id, "is_bot": self.is_bot, "first_name": self.first_name}
        optional = {"username": self.username, "language_code": self.language_code}
        return known | {name: value for name, value in optional.items() if value}


@dataclass(frozen=True, slots=True)
class TelegramChat:
    """A chat; ``user`` is the person of a private one."""

    id: int
    type: str
    title: str | None = None
    user: TelegramUser | None = None
    forum: bool = False

    def as_json(self) -> Json:
        known: Json = {"id": self.id, "type": self.type}
        optional: Json = {"title": self.title, "is_forum": self.forum}
        if self.user is not None:
            optional = {"first_name": self.user.first_name, "username": self.user.username}
        return known | {name: value for name, value in optional.items() if value}


Chat = TelegramChat | int
User = TelegramUser | int
Message = BotMessage | int
"""What the actions of people take: itself or its id."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that bots may download; ``size`` is the size that Telegram declares."""

    id: str
    unique: str
    path: str
    data: bytes
    size: int

    def as_json(self) -> Json:
        return {"file_id": self.id, "file_unique_id": self.unique, "file_size": self.size}


@dataclass(slots=True)
class ChatState:
    """A chat and its state."""

    chat: TelegramChat
    away: set[int] = field(default_factory=set)
    topics: dict[int, Json] = field(default_factory=dict)
    messages: dict[int, Json] = field(default_factory=dict)
    moved_to: int | None = None
    members: dict[int, TelegramUser] = field(default_factory=dict)


@dataclass(slots=True)
class BotAccount:
    """A bot's account."""

    token: str
    user: TelegramUser
    revoked: bool = False
    queue: list[UpdateDelivery] = field(default_factory=list)
    allowed: frozenset[str] | None = None
    webhook: Json | None = None
    webhook_error: tuple[int, str] | None = None
    poll: int = 0
    poll_ended: str = ""
    commands: dict[tuple[str, str], list[Json]] = field(default_factory=dict)
    callbacks: set[str] = field(default_factory=set)
    ids: Any = field(default_factory=lambda: itertools.count(700_000_001))
    changed: Signal = field(default_factory=Signal)

    def end_poll(self, why: str) -> None:
        """End a waiting ``getUpdates`` with a conflict."""
        self.poll, self.poll_ended = self.poll + 1, why
        self.changed.set()

    def wants(self, kind: str) -> bool:
        """Return whether the bot receives updates of this kind."""
        return kind not in _ASKED_FOR if not self.allowed else kind in self.allowed

    def confirm(self, below: int, books: TelegramRecords) -> None:
        """Remove the updates with a smaller id from the queue."""
        while self.queue and self.queue[0].id < below:
            done = self.queue.pop(0)
            done.confirmed_at = time.monotonic()
            books.changed()


class TelegramWorld:
    """All accounts, chats and files."""

    def __init__(self, books: TelegramRecords) -> None:
        self.records = books
        self.bots: dict[str, BotAccount] = {}
        self.users: dict[int, TelegramUser] = {}
        self.rooms: dict[int, ChatState] = {}
        self.files: dict[str, StoredFile] = {}
        self._numbers = itertools.count(1)
        self.callback_ids = itertools.count(4_000_000_000_000_001)

    def bot_of(self, token: str) -> BotAccount:
        bot = self.bots.get(token)
        if bot is None or bot.revoked:
            raise BotApiError(401, "Unauthorized")
        return bot

    def bot_by_id(self, bot: int) -> BotAccount:
        return next(one for one in self.bots.values() if one.user.id == bot)

    def room_for(self, bot: BotAccount, chat: str) -> ChatState:
        """Return the chat that a call names, if the bot may write there."""
        room = next((one for one in self.rooms.values() if chat == str(one.chat.id)), None)
        if room is None:
            raise bad("chat_id is empty" if not chat else "chat not found")
        if room.moved_to is not None:
            why = "Bad Request: group chat was upgraded to a supergroup chat"
            raise BotApiError(400, why, {"migrate_to_chat_id": room.moved_to})
        if bot.user.id in room.away:
            raise BotApiError(403, f"Forbidden: bot is not a member of the {room.chat.type} chat")
        return room

    def base(self, room: ChatState, sender: TelegramUser, topic: int | None) -> Json:
        """Return a message's common fields: id, sender, chat, date and topic."""
        head: Json = {
            "message_id": next(self._numbers),
            "from": sender.as_json(),
            "chat": room.chat.as_json(),
            "date": int(time.time()),
        }
        if topic is not None and topic in room.topics:
            head |= {"message_thread_id": topic, "is_topic_message": True}
            # Telegram makes each message of a topic a reply to the topic's first message.
            head |= {"reply_to_message": room.topics[topic]}
        return head

    def replied(self, room: ChatState, head: Json, target: int) -> Json:
        """Return the fields of a reply, with the thread id that supergroups add."""
        original = room.messages[target]
        bare = {name: value for name, value in original.items() if name != "reply_to_message"}
        fields: Json = {"reply_to_message": bare}
        if room.chat.type == "supergroup" and "is_topic_message" not in head:
            # This applies outside forums, too: only is_topic_message marks a topic.
            fields |= {"message_thread_id": original.get("message_thread_id", target)}
        return fields

    def queue(self, bot: BotAccount, content: Json, *, kind: str | None = None) -> UpdateDelivery:
        """Queue an update for a bot; drop it if the bot does not receive its kind."""
        number = next(bot.ids)
        delivery = UpdateDelivery(
            bot.user.id, number, {"update_id": number, **copy.deepcopy(content)}
        )
        self.records.updates.append(delivery)
        if kind is None or bot.wants(kind):
            bot.queue.append(delivery)
            bot.changed.set()
        else:
            delivery.dropped = True
        self.records.changed()
        return delivery

    def tell(self, room: ChatState, kind: str, content: Json) -> None:
        """Queue an update for each bot in a chat."""
        for bot in self.bots.values():
            if bot.user.id not in room.away:
                self.queue(bot, {kind: content}, kind=kind)

    def file_at(self, path: str) -> StoredFile:
        for one in self.files.values():
            if one.path == path:
                return one
        raise BotApiError(404, "Not Found")

    def add_file(self, folder: str, suffix: str, data: bytes, size: int | None) -> StoredFile:
        """Store a file for download by bots."""
        number = len(self.files)
        ids = f"AgACAgIAAx{number:08x}", f"AgAD{number:08x}"
        path = f"{folder}/file_{number}{suffix}"
        stored = StoredFile(*ids, path, data, len(data) if size is None else size)
        self.files[stored.id] = stored
        return stored
