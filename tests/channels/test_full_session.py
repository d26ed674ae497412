"""What waits in a chat after downtime is answered; what a full session refuses is named."""

from __future__ import annotations

import anyio
import pytest
from discord_rig import Rig as DiscordRig
from telegram_rig import QUICK, Desk, Door, rigged

from bot.bus import SessionFull
from bot.runtime.settings.schema import Settings
from bot.tape.entries import TapeEntry
from bot.testing.host import HostLimits, session_host
from bot.testing.scripted_model import PausedStep, ScriptedModel, text_reply
from channels.base import ChannelContext, GroupPolicy
from channels.telegram import TelegramChannel
from testkit.telegram.server import TelegramServer

DEFAULT_LIMIT = Settings.model_fields["session_limit"].default
BACKLOG = 300


def _answered(entries: list[TapeEntry]) -> list[str]:
    """Return the platform ids that turns answered, in order."""
    return [one for entry in entries for one in entry.data["inbound"]]


@pytest.mark.slow
async def test_a_backlog_after_downtime_is_answered_whole_and_delays_no_other_chat(tmp_path):
    """Sessions, tapes and bus are the program's own, with its own bound."""
    gate = anyio.Event()
    model = ScriptedModel(lambda _: PausedStep(text_reply("Here I am."), release=gate))
    access_control = Door()
    access_control.roles |= {"7": "owner", "8": "member"}
    bounds = HostLimits(session_limit=DEFAULT_LIMIT, window=2_000)
    async with (
        TelegramServer() as telegram,
        session_host(tmp_path, model, bounds=bounds) as host,
        anyio.create_task_group() as tasks,
    ):
        telegram.user(7, "Ada", "ada")
        telegram.user(8, "Ben", "ben")
        busy, quiet = telegram.private(7), telegram.private(8)
        sent = [str(telegram.say(busy, 7, f"busy {number}")) for number in range(BACKLOG)]
        others = [str(telegram.say(quiet, 8, f"quiet {number}")) for number in range(5)]
        platform = ChannelContext(
            access_control,
            Desk(),
            (),
            GroupPolicy(),
            tmp_path / "telegram",
            announce=lambda _: None,
        )
        channel = TelegramChannel(
            "telegram", telegram.token, platform, api_base=telegram.url, webhook=None, timing=QUICK
        )
        tasks.start_soon(channel.run, host.bus.channel("telegram"))
        # While the model answers nobody, all of it is taken: nothing is refused.
        await telegram.until_confirmed()
        gate.set()
        await host.wait_for_pending(0)
        turns = await host.events("turn.end", "telegram:7")
        other_turns = await host.events("turn.end", "telegram:8")
        tasks.cancel_scope.cancel()
    assert _answered(turns) == sent
    assert _answered(other_turns) == others
    shown = {text for chat in (busy, quiet) for text in telegram.records.texts(chat.id)}
    assert shown == {"Here I am."}


async def test_telegram_names_each_message_that_a_full_session_refuses(tmp_path):
    async with rigged(tmp_path) as rig:
        rig.answering = False
        rig.port().refusals += [SessionFull("50 messages already wait here")] * 40
        numbers = [rig.telegram.say(rig.chat, 7, f"number {n}.") for n in range(40)]
        rig.sent = {number: f"number {n}." for n, number in enumerate(numbers)}
        last = rig.telegram.say(rig.chat, 7, "taken")
        async with rig.running():
            await rig.until(lambda: any(one.id == str(last) for one in rig.inbounds))
            await rig.telegram.until(lambda _: _named(rig) >= {f"number {n}." for n in range(40)})
        told = rig.telegram.records.messages(rig.chat.id)
        assert told[0].reply_to == numbers[0]
        assert [one.text for one in rig.inbounds] == ["taken"]


def _named(rig) -> set[str]:
    """Return the messages that were named, or replied to alone."""
    found = set()
    for shown in rig.telegram.records.messages(rig.chat.id):
        names = {line[3:-1] for line in shown.text.splitlines() if line.startswith("- “")}
        if not names and shown.reply_to is not None:
            names = {rig.sent[shown.reply_to]}
        found |= names
    return found


async def test_discord_replies_to_each_message_that_a_full_session_refuses(
    server, ada, place, tmp_path
):
    rig = DiscordRig(server, tmp_path)
    rig.doors.people[str(ada)] = "owner"
    async with rig.connected():
        rig.refusals += [SessionFull("50 messages already wait here")] * 3
        refused = [server.say(place, ada, f"number {n}") for n in range(3)]
        server.say(place, ada, "taken")
        await rig.hear()
        await server.until(lambda books: len(books.messages_in(place, author=server.bot_id)) >= 3)
    assert rig.texts() == ["taken"]
    assert [
        one.reference for one in server.records.messages_in(place, author=server.bot_id)
    ] == refused
