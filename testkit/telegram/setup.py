"""Set up people, bots, chats and memberships on the Telegram test server."""

from __future__ import annotations

from collections.abc import Sequence

from testkit.telegram.account_methods import join
from testkit.telegram.records import Json, TelegramRecords
from testkit.telegram.world import (
    BotAccount,
    Chat,
    ChatState,
    TelegramChat,
    TelegramUser,
    TelegramWorld,
    User,
)


class TelegramSetup:
    """Accounts and chats; the base of ``TelegramUserActions``."""

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
        """Create a person."""
        person = TelegramUser(id, name, username, language_code=language)
        self.world.users[id] = person
        return person

    def private(self, user: User) -> TelegramChat:
        """Open the private chat with a person; it has the person's id."""
        person = self._user(user)
        return self._open(TelegramChat(person.id, "private", user=person))

    def group(
        self,
        id: int,  # noqa: A002 - the word of the platform
        title: str,
        *,
        forum: bool = False,
        basic: bool = False,
        bots: Sequence[TelegramUser] | None = None,
    ) -> TelegramChat:
        """Open a group."""
        kind = "group" if basic else "supergroup"
        chat = self._open(TelegramChat(id, kind, title, forum=forum))
        if bots is not None:
            inside = {one.id for one in bots}
            every = [one.user.id for one in self.world.bots.values()]
            self._room(chat).away = {one for one in every if one not in inside}
        return chat

    def topic(self, chat: Chat, name: str, user: User) -> int:
        """Open a topic of a forum; return its ``message_thread_id``."""
        room = self._room(chat)
        head = self.world.base(room, self._user(user), None)
        number: int = head["message_id"]
        head |= {"message_thread_id": number, "is_topic_message": True}
        head |= {"forum_topic_created": {"name": name, "icon_color": 7322096}}
        room.topics[number] = head
        self._put(room, head, head["from"]["id"])
        return number

    def join(self, bot: TelegramUser, chat: Chat, by: User) -> None:
        """Let a person add a bot to a group."""
        room, who = self._room(chat), self._user(by)
        join(self.world, room, self.world.bot_by_id(bot.id), who.as_json())
        head = self.world.base(room, who, None) | {"new_chat_members": [bot.as_json()]}
        self._put(room, head, who.id)

    def migrate(self, chat: Chat, new: int) -> TelegramChat:
        """Migrate a basic group to a supergroup with another id; bots get updates in both."""
        room = self._room(chat)
        fresh = self.group(new, room.chat.title or "")
        self._room(fresh).away = set(room.away)
        sender = next(iter(room.members.values()), self.user(1, "Owner"))
        head = self.world.base(room, sender, None) | {"migrate_to_chat_id": new}
        self._put(room, head, sender.id)
        room.moved_to = new
        inside = self._room(fresh)
        head = self.world.base(inside, sender, None) | {"migrate_from_chat_id": room.chat.id}
        self._put(inside, head, sender.id)
        return fresh

    def revoke(self, token: str, *, revoked: bool = True) -> None:
        """Revoke a token: it answers 401 from now on."""
        self.world.bots[token].revoked = revoked
        self.world.bots[token].poll += 1
        self.world.bots[token].wake()

    def _open(self, chat: TelegramChat) -> TelegramChat:
        self.world.rooms[chat.id] = ChatState(chat)
        if chat.user is not None:
            self.world.rooms[chat.id].members[chat.user.id] = chat.user
        return chat

    def _user(self, user: User) -> TelegramUser:
        return user if isinstance(user, TelegramUser) else self.world.users[user]

    def _room(self, chat: Chat) -> ChatState:
        return self.world.rooms[chat.id if isinstance(chat, TelegramChat) else chat]

    def _room_of(self, message: int, chat: Chat | None) -> ChatState:
        if chat is not None:
            return self._room(chat)
        shown = {one.chat for one in self.records.shown if one.id == message}
        rooms = [
            one
            for one in self.world.rooms.values()
            if message in one.messages or one.chat.id in shown
        ]
        if len(rooms) != 1:
            raise ValueError(f"message {message} is in {len(rooms)} chats: name the chat")
        return rooms[0]

    def _put(
        self, room: ChatState, message: Json, sender: int, only: TelegramUser | None = None
    ) -> None:
        room.messages[message["message_id"]] = message
        room.members.pop(sender, None)
        room.members[sender] = self.world.users[sender]
        for bot in self.world.present(room):
            if only is None or only.id == bot.user.id:
                self.world.queue(bot, "message", message)
