"""Each door refuses a message that is longer than a turn can use, and nothing stays behind it."""

from __future__ import annotations

import sys
from typing import Any

import openai
import pytest
from api_stage import program, talk

from bot.bus import (
    LONGEST_MESSAGE,
    Address,
    Attachment,
    ClientRequest,
    Inbound,
    MessageTooLong,
    Sender,
)
from bot.bus.inbox_journal import InboxJournal
from bot.bus.journal import AcceptedMessage
from bot.core.clock import SystemClock
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply

HUGE = "word " * 3_220_000
"""More than an entry of a tape takes."""

TOO_LONG = "x" * (LONGEST_MESSAGE + 1)


def answers() -> ScriptedModel:
    return ScriptedModel(lambda _: text_reply("Aye."))


@pytest.mark.parametrize("words", [TOO_LONG, "/memory add " + TOO_LONG], ids=["long", "command"])
@pytest.mark.parametrize("where", ["message", "system", "result", "responses"])
async def test_a_client_is_refused_a_long_message_and_goes_on(tmp_path, words, where):
    messages: Any = {
        "message": talk(words),
        "system": [{"role": "system", "content": words}, *talk("Hello.")],
        "result": [
            *talk("Hello.", "Aye."),
            {"role": "tool", "tool_call_id": "call-1", "content": words},
        ],
    }
    async with program(tmp_path, answers()) as stage:
        create: Any = stage.client.chat.completions.create
        asked: Any = {"messages": messages.get(where)}
        if where == "responses":
            create, asked = stage.client.responses.create, {"input": words}
        with pytest.raises(openai.APIStatusError) as refused:
            await create(model="tapebot", **asked)
        assert refused.value.status_code == 413
        assert "at most 400,000 are allowed" in refused.value.message
        assert (await stage.host.bus.statistics())["pending"] == 0
        assert await stage.sessions() == []
        # Its client has the words in its history from now on, and is answered all the same.
        assert await stage.ask(words, "(too long)", "Hello.") == "Aye."


async def test_as_much_as_a_turn_can_use_is_taken(tmp_path):
    async with program(tmp_path, answers()) as stage:
        assert await stage.ask("é" * LONGEST_MESSAGE) == "Aye."


async def test_a_refused_request_swallows_no_later_conversation(tmp_path):
    result = {"role": "tool", "tool_call_id": "none", "content": "r"}
    async with program(tmp_path, answers()) as stage:
        assert await stage.ask("Hello.") == "Aye."
        for refused in (talk("Hello.", "Other.", TOO_LONG), [*talk("Hello.", "Other."), result]):
            with pytest.raises(openai.APIStatusError, match=r"at most|belong to no call"):
                await stage.client.chat.completions.create(model="tapebot", messages=refused)
            assert await stage.ask("Hello.") == "Aye."


def accepted(number: int, inbound: Inbound) -> AcceptedMessage:
    return AcceptedMessage(number, SystemClock().now(), inbound)


def message(text: str = "Hello.", **more: Any) -> Inbound:
    ada = Sender("7", "Ada")
    return Inbound(
        Address("fake", "1"), "stuck", ada, text, SystemClock().now(), role="owner", **more
    )


def nested(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(levels):
        found = {"more": found}
    return found


@pytest.mark.parametrize(
    ("waiting", "told"),
    [
        (message(HUGE), "at most 400,000 are allowed"),
        (message("/memory add " + HUGE), "at most 400,000 are allowed"),
        (message(quote=HUGE), "at most 400,000 are allowed"),
        (message(client=ClientRequest(system=HUGE)), "at most 400,000 are allowed"),
        (message(client=ClientRequest(parameters=nested(300))), "nested too deeply"),
        (message(client=ClientRequest(parameters={"seed": float("nan")})), "That did not work"),
        (
            message(attachments=(Attachment("document", "a", "text/plain", text=HUGE),)),
            "That did not work",
        ),
    ],
    ids=["text", "command", "quote", "system", "nested", "nan", "file"],
)  # fmt: skip
async def test_what_can_never_be_written_is_answered_once_also_if_it_waits_in_the_journal(
    tmp_path, waiting, told
):
    journal = InboxJournal(tmp_path / "bus" / "inbox.jsonl", sync=False)
    await journal.accept(accepted(1, waiting))
    await journal.close()
    for start in range(2):
        async with session_host(tmp_path, answers()) as host:
            if not start:
                assert told in await host.channel.wait_for_answer(waiting)
            await host.wait_for_pending(0)
            more = await host.channel.send("And?", message_id=f"more-{start}")
            assert await host.channel.wait_for_answer(more) == "Aye."
            ends = [
                one for one in await host.events("turn.end") if one.data["inbound"] == ["stuck"]
            ]
            assert len(ends) == 1
            assert sys.getsizeof(str(await host.tape())) < 100_000


async def test_the_bus_itself_takes_no_long_message(tmp_path):
    async with session_host(tmp_path, answers()) as host:
        for long in (message(TOO_LONG), message("a", quote=TOO_LONG)):
            with pytest.raises(MessageTooLong, match="Send it in parts"):
                await host.bus.channel("fake").publish(long)
        assert (await host.bus.statistics())["pending"] == 0
