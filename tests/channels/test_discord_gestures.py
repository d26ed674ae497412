"""What people do with messages on Discord, edits, reactions and buttons, reaches the bus."""

from __future__ import annotations

import pytest
from discord_rig import Rig

from bot.bus import Button


@pytest.fixture
def general(server, home) -> int:
    return server.channel(home, "general")


@pytest.fixture
def rig(server, ada, tmp_path) -> Rig:
    made = Rig(server, tmp_path)
    made.doors.people[str(ada)] = "owner"
    return made


async def test_an_edit_is_a_new_version_and_a_preview_is_nothing(rig, server, ada):
    place = server.direct(ada)
    async with rig.connected():
        number = server.say(place, ada, "helo https://example.org")
        await rig.hear()
        server.unfurl(number)
        server.edit(number, "hello")
        server.unfurl(number)
        server.say(place, ada, "next")
        await rig.hear(3)
    edit = rig.heard[1]
    assert (edit.text, edit.edited_message_id, edit.expects_answer) == ("hello", str(number), True)
    assert edit.id.startswith(f"{number}.e")
    assert rig.heard[2].text == "next"


async def test_a_strangers_edit_is_nothing(rig, server, ada, eve):
    async with rig.connected():
        place = server.direct(eve)
        number = server.say(place, eve, "let me in")
        server.edit(number, "please")
        server.say(server.direct(ada), ada, "hello")
        await rig.hear()
    assert rig.texts() == ["hello"]


async def test_a_button_is_its_command_pressed_on_its_message(rig, server, ada, eve):
    place = server.direct(ada)
    async with rig.connected():
        server.say(place, ada, "hello")
        await rig.hear()
        address = rig.heard[0].address
        long = Button("Too long", "/" + "x" * 200)
        buttons = (Button("Undo", "/memory undo"), long)
        report = await rig.answer(address, "Cleared.", buttons=buttons)
        message = int(report.platform_ids[0])
        (row,) = server.records.messages[message].components
        assert [each["label"] for each in row["components"]] == ["Undo"]
        number = server.press(message, "t:/memory undo", ada)
        await rig.hear(2)
        pressed = rig.heard[1]
        assert (pressed.id, pressed.text) == (f"cb{number}", "/memory undo")
        assert pressed.pressed_message_id == str(message)
        interaction = server.records.interactions[number]
        await server.until(lambda _: interaction.acknowledged)  # in time, or it would be refused
        assert interaction.answer == 6
        await rig.answer(address, "It is back.", number="a2", replaces=pressed.pressed_message_id)
        assert server.records.messages[message].content == "It is back."
        assert not server.records.messages[message].components


async def test_a_strangers_press_is_refused_to_them_alone(rig, server, ada, eve, general):
    async with rig.connected():
        server.say(general, ada, f"<@{server.bot_id}> hello")
        await rig.hear()
        report = await rig.answer(rig.heard[0].address, "Yes?", buttons=(Button("Stop", "/stop"),))
        number = server.press(int(report.platform_ids[0]), "t:/stop", eve)
        await server.until(lambda books: books.interactions[number].acknowledged)
        refusal = server.records.messages[server.records.interactions[number].response_id]
        assert refusal.ephemeral
    assert len(rig.heard) == 1
