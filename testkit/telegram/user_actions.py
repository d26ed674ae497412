"""Actions of people on the Telegram test server: write, edit, press, react, send files.

Each action queues updates for the bots that would receive them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from testkit.telegram import validation as rules
from testkit.telegram.media_files import TelegramMedia, media_fields
from testkit.telegram.records import BotMessage, Json, UpdateDelivery
from testkit.telegram.setup import TelegramSetup
from testkit.telegram.world import Chat, Message, TelegramChat, TelegramUser, User

_ANONYMOUS: Json = {
    "id": 1087968824,
    "is_bot": True,
    "first_name": "Group",
    "username": "GroupAnonymousBot",
}


class TelegramUserActions(TelegramSetup):
    """Actions of people; the base of ``TelegramServer``."""

    def say(
        self,
        chat: Chat,
        user: User,
        text: str,
        *,
        topic: int | None = None,
        reply_to: Message | None = None,
        entities: list[Json] | None = None,
        forward_from: TelegramUser | str | None = None,
        quote: str | None = None,
        anonymous: bool = False,
        extra: Json | None = None,
        bot: TelegramUser | None = None,
    ) -> int:
        """Send a text as a person; return the message's id."""
        if not 1 <= rules.units(text) <= rules.MAX_TEXT:
            raise ValueError("Telegram's clients send 1 to 4096 UTF-16 units; split the text")
        content: Json = {"text": text}
        found = rules.detect(text) if entities is None else entities
        content |= {"entities": found} if found else {}
        content |= _forwarded(forward_from)
        if quote is not None:
            content["quote"] = {"text": quote, "position": 0, "is_manual": True}
        if anonymous:
            content |= {"from": _ANONYMOUS, "sender_chat": self._room(chat).chat.as_json()}
        content |= extra or {}
        return self.post(chat, user, content, topic=topic, reply_to=reply_to, bot=bot)

    def edit(
        self, message: int, text: str, *, chat: Chat | None = None, caption: bool = False
    ) -> None:
        """Edit a person's text or caption."""
        room = self._room_of(message, chat)
        now = room.messages[message]
        field, marks = ("caption", "caption_entities") if caption else ("text", "entities")
        now.pop(marks, None)
        now |= {field: text, "edit_date": int(time.time())}
        found = rules.detect(text)
        now |= {marks: found} if found else {}
        for bot in self.world.present(room):
            self.world.queue(bot, "edited_message", now)

    def remove(self, message: Message, *, chat: Chat | None = None) -> None:
        """Delete a message as a person; bots get no update, as on the real server."""
        number = message.id if isinstance(message, BotMessage) else message
        room = self._room_of(number, message.chat if isinstance(message, BotMessage) else chat)
        del room.messages[number]
        for shown in self.records.shown:
            if (shown.chat, shown.id) == (room.chat.id, number):
                shown.deleted_at = time.monotonic()
        self.records.changed()

    def send(
        self,
        chat: Chat,
        user: User,
        media: TelegramMedia,
        *,
        topic: int | None = None,
        reply_to: Message | None = None,
        extra: Json | None = None,
    ) -> int:
        """Send a file as a person."""
        content = media_fields(self.world, media)
        if media.caption:
            found = rules.detect(media.caption)
            content |= {"caption": media.caption} | ({"caption_entities": found} if found else {})
        return self.post(chat, user, content | (extra or {}), topic=topic, reply_to=reply_to)

    def photo(self, chat: Chat, user: User, data: bytes | None = None, **more: Any) -> int:
        """Send a photo in several sizes; see ``TelegramMedia`` for the keyword arguments."""
        fields = _media(more) | ({} if data is None else {"data": data})
        picture = TelegramMedia("photo", **fields)
        return self.send(chat, user, picture, **more)

    def voice(self, chat: Chat, user: User, data: bytes = b"OggS", **more: Any) -> int:
        """Send a voice message."""
        return self.send(chat, user, TelegramMedia("voice", data, **_media(more)), **more)

    def document(
        self, chat: Chat, user: User, name: str, mime: str, data: bytes, **more: Any
    ) -> int:
        """Send a document."""
        media = TelegramMedia("document", data, name=name, mime=mime, **_media(more))
        return self.send(chat, user, media, **more)

    def album(
        self, chat: Chat, user: User, items: Sequence[TelegramMedia], *, topic: int | None = None
    ) -> list[int]:
        """Send an album: one message per file, with a common ``media_group_id``."""
        self._albums += 1
        group = {"media_group_id": f"136{self._albums:014d}"}
        return [self.send(chat, user, one, topic=topic, extra=group) for one in items]

    def files(self, chat: Chat) -> dict[str, bytes]:
        """Return the content of the documents that bots sent to a chat, by file name."""
        number = chat.id if isinstance(chat, TelegramChat) else chat
        documents = [
            message["document"]
            for message in self.world.rooms[number].messages.values()
            if message["from"]["is_bot"] and "document" in message
        ]
        return {one["file_name"]: self.world.files[one["file_id"]].data for one in documents}

    def press(
        self,
        message: Message,
        data: str,
        *,
        user: User | None = None,
        chat: Chat | None = None,
        forged: bool = False,
    ) -> str:
        """Press a button of a bot's message; return the callback query's id."""
        number = message.id if isinstance(message, BotMessage) else message
        room = self._room_of(number, message.chat if isinstance(message, BotMessage) else chat)
        shown = next(
            one for one in self.records.shown if (one.chat, one.id) == (room.chat.id, number)
        )
        every = [one for version in shown.versions for row in version.buttons for one in row]
        data = next((one["callback_data"] for one in every if one.get("text") == data), data)
        if not forged and data not in [one.get("callback_data") for one in every]:
            raise ValueError(f"message {number} has no button {data!r}; it has {every}")
        person = self._user(user) if user is not None else list(room.members.values())[-1]
        bot = self.world.bot_by_id(shown.bot)
        query = str(next(self.world.callback_ids))
        bot.callbacks.add(query)
        gone = {"message_id": number, "chat": room.chat.as_json(), "date": 0}
        content = {
            "id": query,
            "from": person.as_json(),
            "chat_instance": str(room.chat.id),
            "message": room.messages.get(number, gone),
            "data": data,
        }
        self.world.queue(bot, "callback_query", content)
        return query

    def react(
        self,
        message: Message,
        emoji: str | None,
        *,
        user: User | None = None,
        chat: Chat | None = None,
    ) -> None:
        """Set a person's reaction; None removes it."""
        number = message.id if isinstance(message, BotMessage) else message
        room = self._room_of(number, message.chat if isinstance(message, BotMessage) else chat)
        person = self._user(user) if user is not None else list(room.members.values())[-1]
        new = [{"type": "emoji", "emoji": emoji}] if emoji else []
        content = {
            "chat": room.chat.as_json(),
            "message_id": number,
            "user": person.as_json(),
            "date": int(time.time()),
            "old_reaction": [],
            "new_reaction": new,
        }
        for bot in self.world.present(room):
            self.world.queue(bot, "message_reaction", content)

    def raw(self, content: Json, *, bot: TelegramUser | None = None) -> list[UpdateDelivery]:
        """Queue an update as given, with a new ``update_id`` unless it has one."""
        bots = self.world.bots.values()
        return [self.world.raw(one, content) for one in bots if bot in (None, one.user)]

    def redeliver(self, delivery: UpdateDelivery) -> None:
        """Deliver a confirmed update again, as webhooks may."""
        bot = self.world.bot_by_id(delivery.bot)
        bot.queue.insert(0, delivery)
        bot.wake()

    def post(
        self,
        chat: Chat,
        user: User,
        content: Json,
        *,
        topic: int | None = None,
        reply_to: Message | None = None,
        bot: TelegramUser | None = None,
    ) -> int:
        """Send a message with these fields of the Bot API's ``Message``."""
        room, person = self._room(chat), self._user(user)
        if topic is not None and topic not in room.topics:
            raise ValueError(f"chat {room.chat.id} has no topic {topic}; open it with topic()")
        message = self.world.base(room, person, topic) | content
        if reply_to is not None:
            target = reply_to.id if isinstance(reply_to, BotMessage) else reply_to
            message |= self.world.replied(room, message, target)
        self._put(room, message, person.id, bot)
        return int(message["message_id"])


def _forwarded(author: TelegramUser | str | None) -> Json:
    if author is None:
        return {}
    origin: Json = {"type": "hidden_user", "date": int(time.time()) - 60}
    if isinstance(author, TelegramUser):
        origin |= {"type": "user", "sender_user": author.as_json()}
    else:
        origin |= {"sender_user_name": author}
    return {"forward_origin": origin}


def _media(more: dict[str, Any]) -> dict[str, Any]:
    """Remove the attributes of ``TelegramMedia`` from keyword arguments and return them."""
    names = "caption name mime size".split()
    return {name: more.pop(name) for name in names if name in more}
