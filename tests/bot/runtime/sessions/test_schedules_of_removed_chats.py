"""What is scheduled in a group comes only while the group is allowed."""

from __future__ import annotations

import pytest

from bot.agent.commands.builtin import builtin_commands
from bot.agent.commands.pair import pair_command
from bot.bus import Sender
from bot.bus.access.control import open_access_control
from bot.testing.host import session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import ScriptedModel, text_reply

ADA, BOB, DAY = Sender("1", "Ada"), Sender("13", "Bob"), 86_400
GROUP, PLACE = "-1005", "telegram:-1005"


@pytest.mark.parametrize("topic", [None, "7"])
@pytest.mark.parametrize("who", [ADA, BOB], ids=["an owner", "a member"])
async def test_a_removed_group_gets_nothing_until_it_is_allowed_and_resumed(tmp_path, who, topic):
    clock, model = ManualClock(), ScriptedModel([text_reply("Nothing is new.")])
    session = PLACE if topic is None else f"{PLACE}:{topic}"

    async def tell(*_: object) -> None:
        raise AssertionError("nobody asks for access here")

    async with (
        open_access_control(
            tmp_path, owners=("telegram:1",), clock=clock, send_notice=tell
        ) as control,
        session_host(
            tmp_path,
            model,
            clock=clock,
            commands=builtin_commands([pair_command(control)]),
            schedules=True,
            still_has_access=control.still_has_access,
        ) as host,
    ):
        chat = host.add_channel("telegram")

        async def ask(text: str, sender: Sender = ADA) -> str:
            role = "owner" if sender is ADA else "member"
            sent = await chat.send(
                text, chat=GROUP, topic=topic, sender=sender, private=False, role=role
            )
            return await chat.wait_for_answer(sent)

        assert "undoes this" in await ask("/pair here")
        assert "Reminder 1" in await ask("/remind every day at 12:00 water the roses", who)
        assert "Task 2" in await ask("/schedules task every day at 12:00 sum up what is new", who)
        told = await chat.ask(f"/pair remove {PLACE}", chat="1", sender=ADA)
        assert "paused instead of sent" in told

        unasked = lambda: [one.text for one in chat.answers if one.reply_to is None]  # noqa: E731
        clock.advance(2 * 3_600)
        paused = await host.wait_for_event("schedule.changed", 2, session=session)
        clock.advance(3 * DAY)
        assert all(one.data["paused"] for one in paused)
        assert (await ask("/schedules")).count("paused") == 2
        assert "Everyone in this chat" in await ask("/pair here")
        clock.advance(DAY)
        assert (await ask("/schedules")).count("paused") == 2
        await host.wait_for_pending(0)
        assert (unasked(), model.requests) == ([], [])

        for number in (1, 2):
            assert "tomorrow" in await ask(f"/schedules resume {number}", who)
        clock.advance(DAY)
        await chat.wait_until(lambda: len(unasked()) == 2)
        assert any("water the roses" in one for one in unasked())
        assert "Nothing is new." in unasked()
