"""What the bot shows in Telegram: texts, buttons and files, whatever Telegram answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from telegram_rig import garden

from bot.bus import (
    Activity,
    Address,
    Answer,
    Button,
    DeliveryReport,
    OutgoingFile,
    PartialAnswer,
)
from channels.telegram.api import MAX_UPLOAD_BYTES

ADA = Address("telegram", "7")
BUTTONS = (
    Button("Yes", "/yes"),
    Button("No", "/no"),
    Button("Something rather long", "/other"),
    Button("Too much", "/" + "x" * 64),
)


@pytest.fixture
async def rig(tmp_path):
    async with garden(tmp_path) as rig:
        yield rig


@pytest.fixture
def file(tmp_path) -> OutgoingFile:
    (tmp_path / "exports").mkdir()
    path = tmp_path / "exports" / "on-disk.zip"
    path.write_bytes(b"PK" + bytes(range(256)) * 4_000)
    return OutgoingFile("memory-7.zip", path)


async def report(rig, text: str, address: Address = ADA, **more) -> DeliveryReport:
    """Show an answer; return what became of it."""
    async with rig.running():
        await rig.bus.send(Answer(address, "a1", text, **more))
        return (await rig.until_reported())[0]


async def test_a_message_has_its_styles_its_target_and_no_preview(rig):
    number = rig.telegram.say(rig.chat, 7, "Hello?")
    told = await report(rig, "so **bold**", reply_to=str(number))
    [shown] = rig.telegram.records.messages(7)
    assert told.platform_ids == (str(shown.id),)
    assert (shown.text, shown.reply_to) == ("so bold", number)
    assert [(one["type"], one["offset"], one["length"]) for one in shown.entities] == [
        ("bold", 3, 4)
    ]
    [call] = rig.telegram.records.called("sendMessage")
    assert "is_disabled" in str(call.params["link_preview_options"])


@pytest.mark.parametrize("target", ["999", "cb12", "5.e7", "nonsense"])
async def test_a_reply_to_what_is_gone_is_a_plain_message(rig, target):
    assert (await report(rig, "here", reply_to=target)).delivered
    [shown] = rig.telegram.records.messages(7)
    assert (shown.text, shown.reply_to) == ("here", None)


async def test_buttons_carry_their_commands_and_those_that_cannot_are_left_out(rig):
    await report(rig, "Sure?", buttons=BUTTONS)
    rows = rig.telegram.records.messages(7)[0].buttons
    assert [[one["callback_data"] for one in row] for row in rows] == [["/yes", "/no"], ["/other"]]


@pytest.mark.parametrize(
    ("status", "words", "shown"),
    [
        (400, "Bad Request: can't parse entities: unsupported", "so **bold**"),
        (400, "Bad Request: ENTITY_BOUNDS_INVALID", "so **bold**"),
        (400, "Bad Request: chat not found", None),
        (403, "Forbidden: bot was blocked by the user", None),
        (404, "Not Found", None),
        (409, "Conflict", "so bold"),
        pytest.param(429, "Too Many Requests", "so bold", marks=pytest.mark.slow),
        (500, "Internal Server Error", "so bold"),
    ],
)
async def test_each_refusal_has_its_meaning(rig, status, words, shown):
    """Another try, another form, or a report that says why nothing is shown."""
    rig.telegram.faults.refuse(status, words, method="sendMessage")
    told = await report(rig, "so **bold**")
    assert rig.telegram.records.texts(7) == ([shown] if shown else [])
    assert (told.delivered, told.error or "") == (bool(shown), "" if shown else told.error)
    assert shown or words.partition(": ")[2].lower() in told.error.lower()


async def test_a_message_that_telegram_took_is_sent_once_whatever_it_answers(rig):
    rig.telegram.faults.odd(times=100)
    told = await report(rig, "Hello", buttons=BUTTONS)
    [shown] = rig.telegram.records.messages(7)
    assert (told.delivered, told.platform_ids) == (True, (str(shown.id),))


async def test_a_file_of_more_than_50_mb_is_not_tried_and_its_place_is_told(rig, file):
    with Path(file.path).open("r+b") as opened:
        opened.truncate(MAX_UPLOAD_BYTES + 1)  # a hole, which takes no room on the disk
    assert (await report(rig, "Here.", files=(file,))).delivered
    [shown] = rig.telegram.records.texts(7)
    assert "at most 50 MB" in shown
    assert "as exports/on-disk.zip" in shown
    assert not rig.telegram.records.called("sendDocument")


@pytest.mark.parametrize("lost", [True, False])
async def test_a_lost_network_repeats_a_file_and_a_refusal_is_told(rig, file, lost):
    if lost:
        rig.telegram.faults.hang_up(method="sendDocument")
    else:
        rig.telegram.faults.refuse(413, "Request Entity Too Large", method="sendDocument")
    assert (await report(rig, "Here.", files=(file,))).delivered
    assert len(rig.telegram.files(7)) == int(lost)
    assert ("Too Large" in rig.telegram.records.texts(7)[0]) != lost


@pytest.mark.slow
@pytest.mark.parametrize("words", ["TEXTDRAFT_PEER_INVALID", "can't parse entities", "Not Found"])
async def test_a_refused_draft_ends_the_drafts_of_its_answer_alone(rig, words):
    chat, status = rig.telegram.private(7), 404 if words == "Not Found" else 400
    rig.telegram.faults.refuse(status, words, method="sendMessageDraft", times=1)
    async with rig.running():
        await rig.bus.send(Activity(ADA, "thinking"))
        await rig.bus.send(PartialAnswer(ADA, "a1", "The answer to this is rather long"))
        await rig.telegram.until_messages(chat, 1)
        await rig.bus.send(Answer(ADA, "a1", "The answer to this is rather long.", stream="a1"))
        await rig.until_reported(1)
        assert not rig.telegram.records.drafts
        await rig.bus.send(PartialAnswer(ADA, "a2", "The answer to that is rather long"))
        await rig.telegram.until(lambda books: books.drafts)
        await rig.bus.send(Answer(ADA, "a2", "The answer to that is rather long.", stream="a2"))
        await rig.until_reported(2)
    assert rig.telegram.records.texts(chat.id) == [
        "The answer to this is rather long.",
        "The answer to that is rather long.",
    ]
