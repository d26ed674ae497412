"""The Telegram of the tests shows, edits, deletes and refuses what a bot sends as the real one does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    pass


async def test_messages_are_shown_edited_and_deleted(telegram, client, chat, ada):
    from aiogram.types import InlineKeyboardButton, InlineKeyboardMarkup, ReplyParameters

    asked = telegram.say(chat, ada, "hello")
    keyboard = InlineKeyboardMarkup(
        inline_keyboard=[[InlineKeyboardButton(text="Yes", callback_data="y")]]
    )
    reply = ReplyParameters(message_id=asked)
    sent = await client.send_message(
        chat.id, "a <b>&amp;</b>", parse_mode="HTML", reply_parameters=reply, reply_markup=keyboard
    )
    assert (sent.text, sent.reply_to_message.text) == ("a &", "hello")
    edited = await client.edit_message_text("b ", chat_id=chat.id, message_id=sent.message_id)
    assert edited.text == "b"
    (shown,) = telegram.records.messages(chat.id)
    assert (shown.text, shown.reply_to, shown.buttons) == ("b", asked, ())
    assert [one.text for one in shown.versions] == ["a &", "b"]
    assert shown.versions[0].buttons[0][0]["callback_data"] == "y"
    await client.delete_message(chat.id, sent.message_id)
    assert telegram.records.texts(chat.id) == []
    assert telegram.records.messages(chat.id, deleted=True) == [shown]


@pytest.mark.parametrize(
    ("method", "arguments", "reason"),
    [
        ("send_message", {"chat_id": 7, "text": "x" * 4097}, "message is too long"),
        ("send_message", {"chat_id": 7, "text": "😀" * 2049}, "message is too long"),
        ("send_message", {"chat_id": 7, "text": ""}, "message text is empty"),
        ("send_message", {"chat_id": 7, "text": " \n"}, "text must be non-empty"),
        ("send_message", {"chat_id": 8, "text": "x"}, "chat not found"),
        ("send_message", {"chat_id": 7, "text": "x", "message_thread_id": 99}, "thread not found"),
        ("send_message", {"chat_id": 7, "text": "<b>x", "parse_mode": "HTML"}, "can't parse"),
        (
            "edit_message_text",
            {"chat_id": 7, "message_id": 99, "text": "x"},
            "message to edit not found",
        ),
        ("delete_message", {"chat_id": 7, "message_id": 99}, "message to delete not found"),
        ("send_chat_action", {"chat_id": 7, "action": "dancing"}, "wrong parameter action"),
        ("get_file", {"file_id": "nonsense"}, "wrong file_id"),
        ("answer_callback_query", {"callback_query_id": "1"}, "query is too old"),
    ],
)
async def test_what_telegram_refuses_is_refused(telegram, client, chat, method, arguments, reason):
    from aiogram.exceptions import TelegramBadRequest

    with pytest.raises(TelegramBadRequest, match=reason):
        await getattr(client, method)(**arguments)
    assert [one.status for one in telegram.records.rejected] == [400]


@pytest.mark.parametrize(
    ("kind", "offset", "length"),
    [("bold", 0, 4), ("bold", 1, 1), ("bold", -1, 2), ("glitter", 0, 1), ("text_link", 0, 1)],
)
async def test_entities_that_do_not_fit_are_refused(client, chat, kind, offset, length):
    from aiogram.exceptions import TelegramBadRequest
    from aiogram.types import MessageEntity

    entity = MessageEntity(type=kind, offset=offset, length=length)
    with pytest.raises(TelegramBadRequest, match="can't parse entities"):
        await client.send_message(chat.id, "😀x", entities=[entity])


async def test_an_edit_that_changes_nothing_is_refused(client, chat):
    from aiogram.exceptions import TelegramBadRequest

    sent = await client.send_message(chat.id, "x")
    with pytest.raises(TelegramBadRequest, match="message is not modified"):
        await client.edit_message_text("x ", chat_id=chat.id, message_id=sent.message_id)


async def test_a_reply_to_nothing_is_refused_unless_it_may_go_without(telegram, client, chat):
    from aiogram.exceptions import TelegramBadRequest
    from aiogram.types import ReplyParameters

    with pytest.raises(TelegramBadRequest, match="message to be replied not found"):
        await client.send_message(chat.id, "x", reply_parameters=ReplyParameters(message_id=99))
    lenient = ReplyParameters(message_id=99, allow_sending_without_reply=True)
    await client.send_message(chat.id, "x", reply_parameters=lenient)
    assert telegram.records.messages(chat.id)[0].reply_to is None


async def test_buttons_are_pressed_and_answered_once(telegram, client, chat):
    from aiogram.exceptions import TelegramBadRequest
    from aiogram.types import InlineKeyboardButton, InlineKeyboardMarkup

    rows = [[InlineKeyboardButton(text="Stop", callback_data="stop")]]
    await client.send_message(
        chat.id, "working", reply_markup=InlineKeyboardMarkup(inline_keyboard=rows)
    )
    (shown,) = telegram.records.messages(chat.id)
    with pytest.raises(ValueError, match="has no button 'other'"):
        telegram.press(shown, "other")
    telegram.press(shown, "stop")
    (update,) = await client.get_updates()
    query = update.callback_query
    assert (query.data, query.message.text, query.from_user.id) == ("stop", "working", 7)
    await client.answer_callback_query(query.id, text="Stopped.")
    assert [one.text for one in telegram.records.pressed] == ["Stopped."]
    with pytest.raises(TelegramBadRequest, match="query ID is invalid"):
        await client.answer_callback_query(query.id)
    await client.edit_message_reply_markup(chat_id=chat.id, message_id=shown.id)
    assert shown.buttons == ()
    await client.delete_message(chat.id, shown.id)
    telegram.press(shown, "stop")
    (late,) = await client.get_updates(offset=-1)
    assert late.callback_query.message.date == 0, "a message that is gone is inaccessible"


async def test_files_are_fetched_and_the_books_say_by_whom(telegram, client, chat, ada):
    from aiogram.exceptions import TelegramBadRequest

    telegram.document(chat, ada, "notes.txt", "text/plain", b"remember", caption="see /x")
    telegram.photo(chat, ada, b"the whole picture", caption="a cat")
    telegram.voice(chat, ada, b"sound", size=21 * 1024 * 1024)
    document, photo, voice = [one.message for one in await client.get_updates()]
    assert (document.document.file_name, document.caption) == ("notes.txt", "see /x")
    fetched = await client.download(document.document)
    assert fetched.read() == b"remember"
    assert len(photo.photo) == 4
    assert (await client.download(photo.photo[-1])).read() == b"the whole picture"
    with pytest.raises(TelegramBadRequest, match="file is too big"):
        await client.get_file(voice.voice.file_id)
    assert [(one.bot, one.status) for one in telegram.records.downloads] == [(client.id, 200)] * 2


async def test_a_message_that_a_person_removed_cannot_be_edited(telegram, client, chat):
    from aiogram.exceptions import TelegramBadRequest

    sent = await client.send_message(chat.id, "x")
    telegram.remove(telegram.records.messages(chat.id)[0])
    with pytest.raises(TelegramBadRequest, match="message to edit not found"):
        await client.edit_message_text("y", chat_id=chat.id, message_id=sent.message_id)


async def test_a_group_that_became_a_supergroup_names_its_new_id(telegram, client, ada):
    from aiogram.exceptions import TelegramMigrateToChat

    old = telegram.group(-5, "Old", basic=True)
    telegram.say(old, ada, "x")
    telegram.migrate(old, -1005)
    with pytest.raises(TelegramMigrateToChat) as caught:
        await client.send_message(old.id, "x")
    assert caught.value.migrate_to_chat_id == -1005
    await client.send_message(-1005, "x")


async def test_drafts_actions_and_menus_are_kept(telegram, client, chat):
    from aiogram.exceptions import TelegramNotFound
    from aiogram.types import BotCommand

    await client.send_chat_action(chat.id, "typing")
    await client.send_message_draft(chat_id=chat.id, draft_id=3, text="thin")
    assert [one.action for one in telegram.records.actions] == ["typing"]
    assert [(one.draft, one.text) for one in telegram.records.drafts] == [(3, "thin")]
    telegram.missing.add("sendMessageDraft")
    with pytest.raises(TelegramNotFound):
        await client.send_message_draft(chat_id=chat.id, draft_id=3, text="think")
    await client.set_my_commands([BotCommand(command="new", description="Start anew")])
    assert [one.command for one in await client.get_my_commands()] == ["new"]
