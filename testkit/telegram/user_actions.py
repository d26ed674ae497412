"""People, chats and what people do on the Telegram test server: each action tells the bots in the chat."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from testkit.telegram import validation as rules
from testkit.telegram.media_files import TelegramMedia, media_fields
from testkit.telegram.records import BotMessage, Json, TelegramRecords, UpdateDelivery
from testkit.telegram.world import (
    BotAccount,
    Chat,
    ChatState,
    Message,
    TelegramChat,
    TelegramUser,
    TelegramWorld,
    User,
)


class TelegramUserActions:
    """Accounts, chats and actions of people; the base of ``TelegramServer``."""

    def __init__(self) -> None:
        self.records = TelegramRecords()
        self.world = TelegramWorld(self.records)
        self._albums = 0

    def bot(self, token: str, *, name: str = "Tape", username: str = "tape_bot") -> TelegramUser:
        """Create a bot's account; its id is the part of the token before the colon."""
        user = TelegramUser(int(token.partition(":")[0]), name, username, is_bot=True)
        self.world.bots[token] = BotAccount(token, user)
        return user

    def user(
        self,
        id: int,  # noqa: A002 - the word of the platform
        name: str,
        username: str | None = None,
        language: str = "en",
    ) -> TelegramUser:
        person = TelegramUser(id, name, username, language_code=language)
        self.world.users[id] = person
        return person

    def private(self, user: User) -> TelegramChat:
        """Open the private chat with a person; it has the person's id."""
        person = self._user(user)
        chat = self._open(TelegramChat(person.id, "private", user=person))
        self._room(chat).members[person.id] = person
        return chat

    def group(
        self,
        id: int,  # noqa: A002 - the word of the platform
        title: str,
        *,
        forum: bool = False,
        basic: bool = False,
        bots: Sequence[TelegramUser] | None = None,
    ) -> TelegramChat:
        kind = "group" if basic else "supergroup"
        chat = self._open(TelegramChat(id, kind, title, forum=forum))
        if bots is not None:
            every = {one.user.id for one in self.world.bots.values()}
            self._room(chat).away = every - {one.id for one in bots}
        return chat

    def topic(self, chat: Chat, name: str, user: User) -> int:
        """Open a topic of a forum; return its ``message_thread_id``."""
        room, person = self._room(chat), self._user(user)
        head = self.world.base(room, person, None)
        number: int = head["message_id"]
        head |= {"message_thread_id": number, "is_topic_message": True}
        head |= {"forum_topic_created": {"name": name, "icon_color": 7322096}}
        room.topics[number] = head
        self._put(room, head, person)
        return number

    def join(self, bot: TelegramUser, chat: Chat, by: User) -> None:
        room, user = self._room(chat), bot.as_json()
        room.away.discard(bot.id)
        content = {
            "chat": room.chat.as_json(),
            "from": self._user(by).as_json(),
            "date": int(time.time()),
            "old_chat_member": {"user": user, "status": "left"},
            "new_chat_member": {"user": user, "status": "member"},
        }
        kind = "my_chat_member"
        self.world.queue(self.world.bot_by_id(bot.id), {kind: content}, kind=kind)
        self.post(chat, by, {"new_chat_members": [user]})

    def migrate(self, chat: Chat, new: int) -> TelegramChat:
        """Migrate a basic group to a supergroup with another id; bots get updates in both."""
        room = self._room(chat)
        fresh = self.group(new, room.chat.title or "")
        self._room(fresh).away = set(room.away)
        sender = next(iter(room.members.values()), self.user(1, "Owner"))
        self.post(chat, sender, {"migrate_to_chat_id": new})
        room.moved_to = new
        self.post(fresh, sender, {"migrate_from_chat_id": room.chat.id})
        return fresh

    def revoke(self, token: str, *, revoked: bool = True) -> None:
        """Revoke a token: it answers 401 from now on."""
        self.world.bots[token].revoked = revoked
        self.world.bots[token].end_poll("")

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
        extra: Json | None = None,
    ) -> int:
        if not 1 <= rules.units(text) <= rules.MAX_TEXT:
            raise ValueError("Telegram's clients send 1 to 4096 UTF-16 units; split the text")
        content: Json = {"text": text}
        found = rules.detect(text) if entities is None else entities
        content |= {"entities": found} if found else {}
        content |= _forwarded(forward_from)
        if quote is not None:
            content["quote"] = {"text": quote, "position": 0, "is_manual": True}
        return self.post(chat, user, content | (extra or {}), topic=topic, reply_to=reply_to)

    def edit(
        self, message: int, text: str, *, chat: Chat | None = None, caption: bool = False
    ) -> None:
        room, _ = self._find(message, chat)
        now = room.messages[message]
        field, marks = ("caption", "caption_entities") if caption else ("text", "entities")
        now.pop(marks, None)
        now |= {field: text, "edit_date": int(time.time())}
        found = rules.detect(text)
        now |= {marks: found} if found else {}
        self.world.tell(room, "edited_message", now)

    def send(
        self,
        chat: Chat,
        user: User,
        media: TelegramMedia,
        *,
        topic: int | None = None,
        extra: Json | None = None,
    ) -> int:
        content = media_fields(self.world, media)
        if media.caption:
            found = rules.detect(media.caption)
            content |= {"caption": media.caption} | ({"caption_entities": found} if found else {})
        return self.post(chat, user, content | (extra or {}), topic=topic)

    def photo(self, chat: Chat, user: User, data: bytes | None = None, **more: Any) -> int:
        """Send a photo in several sizes; see ``TelegramMedia`` for the keyword arguments."""
        fields = _media(more) | ({} if data is None else {"data": data})
        return self.send(chat, user, TelegramMedia("photo", **fields), **more)

    def voice(self, chat: Chat, user: User, data: bytes = b"OggS", **more: Any) -> int:
        return self.send(chat, user, TelegramMedia("voice", data, **_media(more)), **more)

    def document(
        self, chat: Chat, user: User, name: str, mime: str, data: bytes, **more: Any
    ) -> int:
        media = TelegramMedia("document", data, name=name, mime=mime, **_media(more))
        return self.send(chat, user, media, **more)

    def album(self, chat: Chat, user: User, items: Sequence[TelegramMedia]) -> list[int]:
        """Send an album: one message per file, with a common ``media_group_id``."""
        self._albums += 1
        group = {"media_group_id": f"136{self._albums:014d}"}
        return [self.send(chat, user, one, extra=group) for one in items]

    def files(self, chat: Chat) -> dict[str, bytes]:
        """Return the content of the documents that bots sent to a chat, by file name."""
        documents = [
            message["document"]
            for message in self._room(chat).messages.values()
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
        room, number = self._find(message, chat)
        shown = next(
            one for one in self.records.shown if (one.chat, one.id) == (room.chat.id, number)
        )
        every = [one for version in shown.versions for row in version.buttons for one in row]
        data = next((one["callback_data"] for one in every if one.get("text") == data), data)
        if not forged and data not in [one.get("callback_data") for one in every]:
            raise ValueError(f"message {number} has no button {data!r}; it has {every}")
        bot = self.world.bot_by_id(shown.bot)
        query = str(next(self.world.callback_ids))
        bot.callbacks.add(query)
        gone = {"message_id": number, "chat": room.chat.as_json(), "date": 0}
        content = {
            "id": query,
            "from": self._actor(room, user).as_json(),
            "chat_instance": str(room.chat.id),
            "message": room.messages.get(number, gone),
            "data": data,
        }
        self.world.queue(bot, {"callback_query": content}, kind="callback_query")
        return query

    def react(self, message: Message, emoji: str, *, user: User | None = None) -> None:
        room, number = self._find(message, None)
        content = {
            "chat": room.chat.as_json(),
            "message_id": number,
            "user": self._actor(room, user).as_json(),
            "date": int(time.time()),
            "old_reaction": [],
            "new_reaction": [{"type": "emoji", "emoji": emoji}],
        }
        self.world.tell(room, "message_reaction", content)

    def raw(self, content: Json) -> list[UpdateDelivery]:
        """Queue an update as given, with a new ``update_id`` unless it has one."""
        return [self.world.queue(bot, content) for bot in self.world.bots.values()]

    def redeliver(self, delivery: UpdateDelivery) -> None:
        """Deliver a confirmed update again, as webhooks may."""
        bot = self.world.bot_by_id(delivery.bot)
        bot.queue.insert(0, delivery)
        bot.changed.set()

    def post(
        self,
        chat: Chat,
        user: User,
        content: Json,
        *,
        topic: int | None = None,
        reply_to: Message | None = None,
    ) -> int:
        """Send a message with these fields of the Bot API's ``Message``."""
        room = self._room(chat)
        if topic is not None and topic not in room.topics:
            raise ValueError(f"chat {room.chat.id} has no topic {topic}; open it with topic()")
        person = self._user(user)
        message = self.world.base(room, person, topic) | content
        if reply_to is not None:
            target = reply_to.id if isinstance(reply_to, BotMessage) else reply_to
            message |= self.world.replied(room, message, target)
        self._put(room, message, person)
        return int(message["message_id"])

    def _open(self, chat: TelegramChat) -> TelegramChat:
        self.world.rooms[chat.id] = ChatState(chat)
        return chat

    def _user(self, user: User) -> TelegramUser:
        return user if isinstance(user, TelegramUser) else self.world.users[user]

    def _actor(self, room: ChatState, user: User | None) -> TelegramUser:
        """Return a person, by default who wrote last in the chat."""
        return self._user(user) if user is not None else list(room.members.values())[-1]

    def _room(self, chat: Chat) -> ChatState:
        return self.world.rooms[chat.id if isinstance(chat, TelegramChat) else chat]

    def _find(self, message: Message, chat: Chat | None) -> tuple[ChatState, int]:
        """Return the chat and id of a message, whose chat is named if several have such an id."""
        if isinstance(message, BotMessage):
            return self._room(message.chat), message.id
        if chat is not None:
            return self._room(chat), message
        shown = {one.chat for one in self.records.shown if one.id == message}
        every = self.world.rooms.values()
        rooms = [one for one in every if message in one.messages or one.chat.id in shown]
        if len(rooms) != 1:
            raise ValueError(f"message {message} is in {len(rooms)} chats: name the chat")
        return rooms[0], message

    def _put(self, room: ChatState, message: Json, sender: TelegramUser) -> None:
        room.messages[message["message_id"]] = message
        room.members.pop(sender.id, None)
        room.members[sender.id] = sender
        self.world.tell(room, "message", message)


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
