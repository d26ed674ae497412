"""Bot API methods that send, edit and delete messages: functions of world, bot and parameters."""

from __future__ import annotations

import time
from collections.abc import Iterable

from testkit.telegram import validation as rules
from testkit.telegram.records import Action, BotMessage, Json, MessageDraft, MessageVersion
from testkit.telegram.validation import BotApiError, Params, bad
from testkit.telegram.world import BotAccount, ChatState, TelegramWorld

_GENERAL = 1


def _topic(room: ChatState, params: Params) -> int | None:
    topic = params.integer("message_thread_id")
    # A supergroup without topics has reply threads, which use the same parameter.
    threads = room.messages if room.chat.type == "supergroup" and not room.chat.forum else {}
    if topic is not None and topic not in room.topics and topic not in threads:
        raise bad("message thread not found")
    return topic


def _target(room: ChatState, params: Params) -> tuple[int | None, Json]:
    """Return the message that a call replies to, and the quote's fields."""
    reply = params.json("reply_parameters") or {}
    target = reply.get("message_id", params.integer("reply_to_message_id"))
    lenient = reply.get("allow_sending_without_reply")
    if target is None:
        return None, {}
    if int(target) not in room.messages:
        if lenient or params.boolean("allow_sending_without_reply"):
            return None, {}
        raise bad("message to be replied not found")
    quote = reply.get("quote")
    if not quote:
        return int(target), {}
    whole = room.messages[int(target)]
    if quote not in str(whole.get("text") or whole.get("caption") or ""):
        raise bad("QUOTE_TEXT_INVALID")
    return int(target), {"quote": {"text": quote, "position": 0, "is_manual": True}}


def _version(params: Params, text: str, entities: Iterable[Json]) -> MessageVersion:
    buttons = rules.checked_buttons(params.json("reply_markup"))
    return MessageVersion(time.monotonic(), text, tuple(entities), buttons)


def _show(
    world: TelegramWorld, bot: BotAccount, params: Params, content: Json, now: MessageVersion
) -> Json:
    """Add a bot's message to a chat and to the records."""
    kind = "document" if "document" in content else "text"
    room = world.room_for(bot, params.text("chat_id"))
    topic = _topic(room, params)
    target, fields = _target(room, params)
    message = world.base(room, bot.user, topic) | content | fields
    if target is not None:
        message |= world.replied(room, message, target)
    if now.buttons:
        message["reply_markup"] = {"inline_keyboard": now.buttons}
    number = message["message_id"]
    room.messages[number] = message
    silent = params.boolean("disable_notification")
    shown = BotMessage(bot.user.id, room.chat.id, number, topic, target, kind, silent, [now])
    world.records.shown.append(shown)
    world.records.changed()
    return message


def send_message(world: TelegramWorld, bot: BotAccount, params: Params) -> Json:
    world.room_for(bot, params.text("chat_id"))
    text, entities = _text(params)
    content = {"text": text} | ({"entities": entities} if entities else {})
    return _show(world, bot, params, content, _version(params, text, entities))


def _text(params: Params) -> tuple[str, list[Json]]:
    if not params.text("text"):
        raise bad("message text is empty")
    text, entities = rules.checked_text(params, "text", rules.MAX_TEXT, "message is too long")
    if not text:
        raise bad("text must be non-empty")
    return text, entities


def send_document(world: TelegramWorld, bot: BotAccount, params: Params) -> Json:
    world.room_for(bot, params.text("chat_id"))
    source = params.values.get("document")
    if not isinstance(source, tuple):
        raise bad("there is no document in the request")
    name, data = source
    caption, entities = rules.checked_text(
        params, "caption", rules.MAX_CAPTION, "message caption is too long"
    )
    if len(data) > rules.MAX_UPLOAD:
        raise BotApiError(413, "Request Entity Too Large")
    media = world.add_file("documents", "", data, None).as_json() | {"file_name": name}
    content = {"document": media} | ({"caption": caption} if caption else {})
    return _show(world, bot, params, content, _version(params, caption, entities))


def _own(
    world: TelegramWorld, bot: BotAccount, params: Params, missing: str
) -> tuple[ChatState, BotMessage]:
    """Return a bot's own message, to change it."""
    room = world.room_for(bot, params.text("chat_id"))
    number = params.integer("message_id")
    if number is None or number not in room.messages:
        raise bad(missing)
    for shown in reversed(world.records.shown):
        if (shown.chat, shown.id, shown.bot) == (room.chat.id, number, bot.user.id):
            return room, shown
    raise bad("message can't be edited")


def _change(
    world: TelegramWorld, room: ChatState, shown: BotMessage, version: MessageVersion
) -> Json:
    before = shown.versions[-1]
    message = room.messages[shown.id]
    new = (version.text, list(version.entities), list(version.buttons))
    if new == (before.text, list(before.entities), list(before.buttons)):
        raise bad(
            "message is not modified: specified new message content and reply markup are exactly "
            "the same as a current content and reply markup of the message"
        )
    shown.versions.append(version)
    field, marks = ("text", "entities") if shown.kind == "text" else ("caption", "caption_entities")
    message |= {field: version.text, marks: list(version.entities), "edit_date": int(time.time())}
    message["reply_markup"] = version.buttons and {"inline_keyboard": version.buttons}
    for name in (marks, "reply_markup"):
        if not message[name]:
            del message[name]
    world.records.changed()
    return message


def edit_text(world: TelegramWorld, bot: BotAccount, params: Params) -> Json:
    """``editMessageText``; without ``reply_markup`` it removes the buttons, as the real server."""
    room, shown = _own(world, bot, params, "message to edit not found")
    if shown.kind != "text":
        raise bad("there is no text in the message to edit")
    return _change(world, room, shown, _version(params, *_text(params)))


def edit_buttons(world: TelegramWorld, bot: BotAccount, params: Params) -> Json:
    room, shown = _own(world, bot, params, "message to edit not found")
    return _change(world, room, shown, _version(params, shown.text, shown.entities))


def delete_message(world: TelegramWorld, bot: BotAccount, params: Params) -> bool:
    """``deleteMessage``: a bot's own messages, and any message in private chats."""
    room = world.room_for(bot, params.text("chat_id"))
    number = params.integer("message_id")
    if number is None or number not in room.messages:
        raise bad("message to delete not found")
    mine = room.messages[number]["from"]["id"] == bot.user.id
    if not mine and room.chat.type != "private":
        raise bad("message can't be deleted")
    del room.messages[number]
    for shown in world.records.shown:
        if (shown.chat, shown.id) == (room.chat.id, number):
            shown.deleted_at = time.monotonic()
    world.records.changed()
    return True


def chat_action(world: TelegramWorld, bot: BotAccount, params: Params) -> bool:
    room = world.room_for(bot, params.text("chat_id"))
    if params.text("action") not in rules.ACTIONS:
        raise bad("wrong parameter action in request")
    # Only chat actions may address a forum's General topic by its id.
    forum = room.chat.forum and room.chat.type == "supergroup"
    general = forum and params.integer("message_thread_id") == _GENERAL
    topic = _GENERAL if general else _topic(room, params)
    fact = Action(bot.user.id, room.chat.id, topic, params.text("action"), time.monotonic())
    world.records.actions.append(fact)
    world.records.changed()
    return True


def draft(world: TelegramWorld, bot: BotAccount, params: Params) -> bool:
    """``sendMessageDraft``: private chats only."""
    room = world.room_for(bot, params.text("chat_id"))
    number = params.integer("draft_id")
    if not number:
        raise bad("draft_id must be non-zero")
    if room.chat.type != "private":
        raise bad("TEXTDRAFT_PEER_INVALID")
    text, _ = rules.checked_text(params, "text", rules.MAX_TEXT, "message is too long")
    topic = _topic(room, params)
    fact = MessageDraft(bot.user.id, room.chat.id, topic, number, text, time.monotonic())
    world.records.drafts.append(fact)
    world.records.changed()
    return True
