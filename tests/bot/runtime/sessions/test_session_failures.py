"""What goes wrong with a model or inside a worker is said in the chat, and loses nothing."""

from __future__ import annotations

import resource

import anyio
import pytest
from waiting import until

from bot.core.errors import ModelAuthError, ModelRejected, ModelUnavailable, TransientModelError
from bot.memory.records.conversation_entries import TURN_END
from bot.testing.host import session_host
from bot.testing.scripted_model import (
    PausedStep,
    ScriptedModel,
    memory_save_call,
    text_reply,
    tool_call_reply,
)


@pytest.mark.parametrize(
    "error", [TransientModelError, ModelAuthError, ModelRejected, ModelUnavailable]
)
async def test_a_provider_error_is_told_in_plain_words_and_the_message_stays(tmp_path, error):
    # A refusal is one however often it is asked; what a server takes the second time was a whim.
    failed = [error("the provider is on fire")] * (4 if error is ModelRejected else 1)
    model = ScriptedModel([*failed, text_reply("Ada, of course")])
    async with session_host(tmp_path, model) as host:
        told = await host.channel.ask("my name is Ada")
        assert "could not get an answer from the model: the provider is on fire" in told
        assert "Your message is kept" in told
        await host.channel.ask("what is my name?")
        assert (await host.events(TURN_END))[0].data["status"] == "error"
    assert "my name is Ada" in str(model.requests_for()[-1].messages)


async def test_wrong_arguments_and_unknown_tools_come_back_as_errors_to_mend(tmp_path):
    model = ScriptedModel(
        [
            tool_call_reply(
                ("memory_save", '{"changes": [{'), ("rm_rf", {}), ("memory_save", {"text": 1})
            ),
            tool_call_reply(memory_save_call("The user likes tea")),
            text_reply("mended"),
        ]
    )
    async with session_host(tmp_path, model) as host:
        assert await host.channel.ask("I like tea") == "mended"
        results = [e.payload for e in await host.tape() if e.kind == "tool_result"]
    assert [one["status"] for one in results] == ["error", "error", "error", "ok"]
    assert "arguments of memory_save are wrong" in results[0]["content"]
    assert "There is no tool 'rm_rf'" in results[1]["content"]
    assert "It takes: changes" in results[2]["content"]
    # Providers refuse a history whose arguments are no JSON object.
    [called] = [m for m in model.requests_for()[1].messages if "tool_calls" in m]
    assert called["tool_calls"][0]["function"]["arguments"].startswith('{"malformed"')


async def test_one_message_that_crashes_costs_the_others_of_its_turn_no_answer(tmp_path):
    """Each is tried in a turn of its own, which does not see the others; it can be tried again later."""
    held, mended = PausedStep(text_reply("fine")), False

    def answer(request):
        asked = str(request.messages)
        if "bomb" in asked and not mended:
            return RuntimeError("a defect")
        _, told, wanted = asked.rpartition("Answer now")
        return text_reply("defused" if "bomb" in wanted else "tea it is") if told else held

    model = ScriptedModel(answer)
    async with session_host(tmp_path, model) as host, anyio.create_task_group() as tasks:

        async def wait_less() -> None:
            while True:
                await host.clock.wait_for_sleepers()
                host.clock.advance(60)
                await anyio.wait_all_tasks_blocked()

        tasks.start_soon(wait_less)
        cake = await host.channel.send("I like cake")
        with anyio.fail_after(20):
            await held.entered.wait()
        bomb, tea = await host.channel.send("bomb"), await host.channel.send("I like tea")

        async def there() -> bool:
            return "I like tea" in str(await host.tape())

        await until(there)
        held.release.set()
        assert await host.channel.wait_for_answer(cake) == "fine"
        assert await host.channel.wait_for_answer(tea) == "tea it is"
        assert "To retry" in await host.channel.wait_for_answer(bomb)
        [split, given_up] = [
            end.data for end in await host.events(TURN_END) if end.data["status"] != "ok"
        ]
        assert (split["status"], split["split"]) == ("split", [bomb.id, tea.id])
        assert (given_up["status"], given_up["inbound"]) == ("interrupted", [bomb.id])
        mended = True
        [button] = next(one for one in host.channel.answers if one.reply_to == bomb.id).buttons
        assert button.label == "Try again"
        assert await host.channel.ask(button.command) == "defused"
        assert await host.channel.ask(button.command) == "There is nothing to retry."
        tasks.cancel_scope.cancel()


async def test_a_full_disk_is_told_and_the_turn_goes_on_once_there_is_room(tmp_path):
    """Nothing is said to be saved that the disk refused."""
    held = PausedStep(tool_call_reply(memory_save_call("The user likes tea.")))
    steps = iter([held, text_reply("Saved.")])
    again = tool_call_reply(memory_save_call("The user likes tea."))
    model = ScriptedModel(lambda _: next(steps))
    async with session_host(tmp_path, model) as host:
        sent = await host.channel.send("I like tea")
        await held.entered.wait()
        [path] = [
            one
            for one in (tmp_path / "tapes").glob("*.jsonl")
            if '"session":"fake:1"' in one.read_text().partition("\n")[0].replace(" ", "")
        ]
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 10, before[1]))
        try:
            held.release.set()
            await host.channel.wait_until(lambda: bool(host.channel.answers))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert "could not be written" in host.channel.answers[0].text
        assert await host.events("memory.long_term") == []
        steps = iter([again, text_reply("Saved.")])
        with anyio.fail_after(30):
            await host.clock.wait_for_sleepers()
        host.clock.advance(1.0)
        assert await host.channel.wait_for_answer(sent) == "Saved."
        assert len(await host.events("memory.long_term")) == 1
        [end] = await host.events(TURN_END)
        assert end.data["inbound"] == [sent.id]


async def test_a_changed_word_on_the_tape_is_told_in_its_chat_once(tmp_path):
    async with session_host(tmp_path, ScriptedModel(lambda _: text_reply("ok"))) as host:
        await host.channel.ask("I live in Bern")
        await host.channel.ask("hello", chat="2")
    [path] = (p for p in (tmp_path / "tapes").glob("*.jsonl") if b"Bern" in p.read_bytes())
    path.write_bytes(path.read_bytes().replace(b"live in Bern", b"live in Born"))
    async with session_host(tmp_path, ScriptedModel(lambda _: text_reply("still here"))) as host:
        for chat, text in (("1", "where do I live?"), ("1", "and now?"), ("2", "and I?")):
            asked = await host.channel.send(text, chat=chat, message_id=text)
            assert await host.channel.wait_for_answer(asked) == "still here"
        told = [one for one in host.channel.answers if "is damaged" in one.text]
    assert [one.address.chat_id for one in told] == ["1"]
    assert "1 of its entries cannot be read" in told[0].text
