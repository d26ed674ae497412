"""What waits in a chat after downtime is answered; what a full session refuses is named."""

from __future__ import annotations

import anyio
import pytest
from telegram_rig import Rig as TelegramRig
from telegram_rig import rigged

from bot.bus import SessionFull
from bot.runtime.settings.schema import Settings
from bot.testing.host import HostLimits, session_host
from bot.testing.scripted_model import PausedStep, ScriptedModel, text_reply
from testkit.telegram.server import TelegramServer

DEFAULT_LIMIT = Settings.model_fields["session_limit"].default
BACKLOG = 300


@pytest.mark.slow
async def test_a_backlog_after_downtime_is_answered_whole_and_delays_no_other_chat(tmp_path):
    """Sessions, tapes and bus are the program's own, with its own bound."""
    gate = anyio.Event()
    model = ScriptedModel(lambda _: PausedStep(text_reply("Here I am."), release=gate))
    bounds = HostLimits(session_limit=DEFAULT_LIMIT, window=2_000)
    async with TelegramServer() as telegram, session_host(tmp_path, model, bounds=bounds) as host:
        rig = TelegramRig(telegram, tmp_path, host.bus)
        sent: dict[int, list[str]] = {}
        for person, role, count in ((7, "owner", BACKLOG), (8, "member", 5)):
            rig.access_control.people[str(person)] = role
            chat = telegram.private(telegram.user(person, "Ada"))
            sent[person] = [str(telegram.say(chat, person, f"number {n}")) for n in range(count)]
        async with rig.running():
            # While the model answers nobody, all of it is taken: nothing is refused.
            await telegram.until_confirmed()
            gate.set()
            await host.wait_for_pending(0)
            for person, numbers in sent.items():
                turns = await host.events("turn.end", f"telegram:{person}")
                assert [one for turn in turns for one in turn.data["inbound"]] == numbers
                assert set(telegram.records.texts(person)) == {"Here I am."}


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
    shown = rig.telegram.records.messages(rig.chat.id)
    return _told([(one.text, one.reply_to) for one in shown], rig.sent)


def _told(shown: list[tuple[str, int | None]], sent: dict[int, str]) -> set[str]:
    """Return the messages that were named, or replied to alone."""
    found = set()
    for text, reply_to in shown:
        names = {line[3:-1] for line in text.splitlines() if line.startswith("- “")}
        found |= names or {sent[reply_to]}
    return found


async def test_discord_names_each_message_that_a_full_session_refuses(rig, server, ada, place):
    async with rig.connected():
        rig.refusals += [SessionFull("50 messages already wait here")] * 3
        sent = {server.say(place, ada, f"number {n}."): f"number {n}." for n in range(3)}
        server.say(place, ada, "taken")
        await rig.hear()

        def told() -> set[str]:
            return _told([(one.content, one.reference) for one in server.answers(place)], sent)

        await server.until(lambda _: told() == set(sent.values()))
    assert rig.texts() == ["taken"]
    assert server.answers(place)[0].reference == min(sent)
