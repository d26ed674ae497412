"""What a person said of a time is compared with what the model made of it by the moments that both mean."""

from __future__ import annotations

import pytest
from hostile import mail_tool, reading_tool, sent

from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply

READ = tool_call_reply(("inbox_read", {"what": "m"}))
MAIL = {"to": "ann@work.example", "text": "see you at nine"}


@pytest.mark.parametrize(
    ("said", "when", "asked"),
    [
        ("Every morning at 7: water the plants", "0 7 * * *", ""),
        ("Every morning at 7: water the plants", "every day at 07:00", ""),
        ("Remind me to water the plants on 24 December at 7", "2026-12-24T07:00", ""),
        ("Remind me to water the plants in 20 minutes", "2026-02-10T10:20", ""),
        ("Erinnere mich jeden Montag um 8 Uhr an water the plants", "0 8 * * 1", ""),
        ("Remind me at 17:00 UTC to water the plants", "2026-02-10T18:00+01:00", ""),
        (
            "Every morning at 7: water the plants",
            "0 8 * * *",
            "I would like to set a reminder every day at 08:00 (UTC): `water the plants`. Shall I?",
        ),
        (
            "Remind me to water the plants on 24 December at 7",
            "2026-12-25T07:00",
            "I would like to set a reminder on Friday, 25 December 2026 at 07:00 (UTC): "
            "`water the plants`. Shall I?",
        ),
    ],
)
async def test_a_time_in_other_words_is_the_persons_if_it_means_the_same_moments(
    tmp_path, said, when, asked
):
    order = {"op": "set", "text": "water the plants", "when": when}
    model = ScriptedModel(
        [
            READ,
            text_reply("Read."),
            tool_call_reply(("schedule_manage", order)),
            text_reply("Done."),
        ]
    )
    tools = [reading_tool({"m": "Lunch?"})]
    async with session_host(tmp_path, model, tools=tools) as host:
        await host.channel.ask("Read my inbox")
        answer = await host.channel.ask(said)
        assert asked in answer
        assert ("Shall I?" in answer) is bool(asked)
        assert len(await host.events("schedule.set")) == (not asked)
        assert "schedule_manage" not in answer


async def test_the_result_of_tapebots_own_tool_is_no_text_from_outside(tmp_path):
    outbox = tmp_path / "outbox.txt"
    order = {"op": "set", "text": "go", "when": "in 2 hours"}
    model = ScriptedModel(
        [
            *(READ, text_reply("Read."), tool_call_reply(("schedule_manage", order))),
            *(text_reply("May I?"), text_reply("Set.")),
            *(tool_call_reply(("mail_send", MAIL)), text_reply("Sent.")),
        ]
    )
    tools = [mail_tool(outbox), reading_tool({"m": "Lunch?"})]
    async with session_host(tmp_path, model, tools=tools) as host:
        await host.channel.ask("Read my inbox")
        assert "Shall I?" in await host.channel.ask("Hm.")
        await host.channel.ask("/new now")
        assert "Reminder 1: **go**" in await host.channel.ask("/approve 1")
        answer = await host.channel.ask("Please mail ann@work.example saying see you at nine")
        assert answer == "Sent."
        assert sent(outbox) == ["ann@work.example"]
