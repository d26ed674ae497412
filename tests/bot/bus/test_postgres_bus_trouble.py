"""The bus in PostgreSQL under messages that kill their holders, a flood, and a server that crashes."""

from __future__ import annotations

import pytest
from postgres_fleet import HERE, inbound

from bot.bus import Sender
from bot.bus.postgres.row_handler import (
    DEAD_LETTER_AFTER_DEATHS,
    DEAD_LETTER_NOTICE,
    GIVEN_UP_AFTER,
)
from bot.runtime.sessions.writer import GAVE_UP
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply

pytestmark = pytest.mark.slow


async def test_a_message_that_kills_its_holders_is_buried_and_its_chat_is_told(fleet):
    gateway = await fleet.process("gateway")
    port = gateway.bus.channel("fake")
    for number in range(3):
        await port.publish(inbound(f"m{number}"))
    deaths = 0
    done: list[str] = []
    while "m2" not in done:
        worker = await fleet.process(f"w{deaths}")
        inbox = await worker.bus.claim()
        while True:
            delivery = await inbox.receive()
            if delivery.inbound.id == "m1":
                deaths += 1
                await worker.stop()
                fleet.end_leases()
                break
            await delivery.ack()
            done.append(delivery.inbound.id)
            if delivery.inbound.id == "m2":
                break
    assert deaths == DEAD_LETTER_AFTER_DEATHS
    assert done == ["m0", "m2"]
    told = await port.receive()
    assert (told.address, told.text) == (HERE, DEAD_LETTER_NOTICE)
    assert (await gateway.bus.statistics())["pending"] == 0
    assert fleet.rows("select body is not null from tapebot.dead_letter") == [(True,)]
    await gateway.bus.purge()
    assert fleet.rows("select body is not null from tapebot.dead_letter") == [(False,)]


async def test_a_message_whose_holders_were_killed_is_given_up_with_a_button_to_try_again(
    fleet, tmp_path
):
    gateway = await fleet.process("gateway")
    await gateway.bus.channel("fake").publish(inbound("m1", text="Which colour?"))
    for number in range(GIVEN_UP_AFTER):
        worker = await fleet.process(f"w{number}")
        assert not (await (await worker.bus.claim()).receive()).given_up
        await worker.stop()
        fleet.end_leases()
    heir = await fleet.process("heir")
    model = ScriptedModel([text_reply("Blue.")])
    async with session_host(tmp_path, model, over=lambda _: heir.bus) as host:
        channel = host.channel
        await channel.wait_until(lambda: channel.answers)
        [told] = channel.answers
        assert (told.text, [one.command for one in told.buttons]) == (
            GAVE_UP,
            ["/retry message:m1"],
        )
        retry = await channel.send("/retry message:m1", message_id="m2", sender=Sender("7", "Ada"))
        assert await channel.wait_for_answer(retry) == "Blue."
        assert "Which colour?" in str(model.requests_for()[-1].messages)
