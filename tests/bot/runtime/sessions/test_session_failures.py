"""What goes wrong with a model or inside a worker is said in the chat, and loses nothing."""

from __future__ import annotations

import resource

import anyio
import pytest
from waiting import until

from bot.core.errors import (
    ContextOverflow,
    ModelAuthError,
    ModelRejected,
    ModelUnavailable,
    TapeWriteError,
    TransientModelError,
)
from bot.memory.records.conversation_entries import TURN_END
from bot.tape.entries import CONTEXT_OVERFLOW
from bot.testing.host import HostLimits, session_host
from bot.testing.scripted_model import (
    PausedStep,
    ScriptedModel,
    memory_save_call,
    text_reply,
    tool_call_reply,
)

LONG = "word " * 400


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


async def test_an_empty_answer_is_asked_for_again_and_then_told(tmp_path):
    model = ScriptedModel([text_reply(""), text_reply("here"), text_reply(" "), text_reply("")])
    async with session_host(tmp_path, model) as host:
        assert await host.channel.ask("hi") == "here"
        assert "empty answer" in await host.channel.ask("hi again")
        assert len(model.requests) == 4


async def test_an_answer_cut_at_the_models_limit_says_so(tmp_path):
    model = ScriptedModel([text_reply("Once upon", finish_reason="length")])
    async with session_host(tmp_path, model) as host:
        told = await host.channel.ask("a story")
        # Programs are told so, whatever the language of the answer.
        assert (await host.events(TURN_END))[0].data["cut_off"] is True
    assert told.startswith("Once upon")
    assert "cut off" in told


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
    [called] = [m for m in model.requests[1].messages if "tool_calls" in m]
    assert called["tool_calls"][0]["function"]["arguments"].startswith('{"malformed"')


async def test_a_turn_that_reaches_its_bound_of_steps_still_answers(tmp_path):
    bounds = HostLimits(max_steps=3)
    model = ScriptedModel(
        lambda r: (
            text_reply("what I know so far")
            if r.tool_choice == "none"
            else tool_call_reply(("memory_show", {}))
        )
    )
    async with session_host(tmp_path, model, bounds=bounds) as host:
        assert await host.channel.ask("loop") == "what I know so far"
        assert len(model.requests) == 4
    assert "last step of this turn" in str(model.requests_for()[-1].messages[-1])


async def test_a_model_that_calls_tools_in_its_last_step_is_not_obeyed(tmp_path):
    model = ScriptedModel(lambda _: tool_call_reply(("memory_clear", {})))
    async with session_host(tmp_path, model, bounds=HostLimits(max_steps=1)) as host:
        await host.channel.ask("Remember that I like tea")
        assert "within the allowed steps" in host.channel.answers[-1].text
        assert len(model.requests) == 2


async def test_overflow_hands_off_with_a_summary_keeps_the_newest_turn_and_tries_once_more(
    tmp_path,
):
    overflow = ContextOverflow("too many tokens")
    model = ScriptedModel(
        [text_reply("one"), text_reply("two"), overflow, text_reply("three"), text_reply("four")],
        summary=lambda _: text_reply("Ada talked about words; her cat is Tom."),
    )
    async with session_host(tmp_path, model, bounds=HostLimits(context_tokens=2_000)) as host:
        await host.channel.ask(f"first {LONG}")
        await host.channel.ask(f"second {LONG}")
        third = await host.channel.send("third")
        assert await host.channel.wait_for_answer(third) == "three"
        [boundary] = await host.events(CONTEXT_OVERFLOW)
        kept = next(e for e in await host.tape() if e.payload.get("content") == "third")
        assert boundary.data["keep_from"] == kept.id
        assert boundary.data["summary"] == "Ada talked about words; her cat is Tom."
        assert boundary.data["source"][1] == kept.id - 1
        await host.channel.ask("fourth")
    for request in model.requests_for()[-2:]:
        assert "her cat is Tom" in request.messages[0]["content"]
        assert "third" in str(request.messages[1:])
        assert "first" not in str(request.messages[1:])


async def test_overflow_within_a_turn_keeps_the_steps_of_that_turn(tmp_path):
    model = ScriptedModel(
        [
            text_reply("one"),
            tool_call_reply(("memory_show", {})),
            ContextOverflow("too long"),
            text_reply("done"),
        ],
        summary=[text_reply("Before: words.")],
    )
    async with session_host(tmp_path, model, bounds=HostLimits(context_tokens=1_000)) as host:
        await host.channel.ask(LONG)
        assert await host.channel.ask("show") == "done"
    roles = [m["role"] for m in model.requests_for()[-1].messages]
    assert roles == ["system", "user", "assistant", "tool"]


async def test_a_second_overflow_in_one_turn_is_told_and_not_tried_for_ever(tmp_path):
    model = ScriptedModel(
        lambda r: (
            ContextOverflow("too long") if len(model.requests_for()) > 1 else text_reply("one")
        ),
        summary=lambda _: text_reply("short"),
    )
    async with session_host(tmp_path, model, bounds=HostLimits(context_tokens=1_000)) as host:
        await host.channel.ask(LONG)
        assert "does not fit the model's window" in await host.channel.ask("more")
        assert len(model.requests_for()) == 3


async def test_a_failing_summary_is_replaced_by_quotes_not_by_nothing(tmp_path):
    model = ScriptedModel(
        [text_reply("one"), ContextOverflow("too long"), text_reply("two")],
        summary=lambda _: TransientModelError("down"),
    )
    async with session_host(tmp_path, model, bounds=HostLimits(context_tokens=1_000)) as host:
        await host.channel.ask(f"my cat is Tom. {LONG}")
        assert await host.channel.ask("more") == "two"
        [boundary] = await host.events(CONTEXT_OVERFLOW)
    assert "my cat is Tom" in boundary.data["summary"]


async def test_a_message_that_keeps_crashing_is_given_up_and_says_how_to_try_again(tmp_path):
    """Others in the same session, and other sessions, are served."""
    model = ScriptedModel(
        lambda r: RuntimeError("a defect") if "bomb" in str(r.messages[-1]) else text_reply("fine")
    )
    async with session_host(tmp_path, model) as host:
        bomb = await host.channel.send("bomb")
        for pause in (1.0, 2.0, 4.0):
            with anyio.fail_after(30):
                await host.clock.wait_for_sleepers()
            assert await host.channel.ask("hi", chat="2") == "fine"
            host.clock.advance(pause)
        told = await host.channel.wait_for_answer(bomb)
        assert "I was interrupted more than once while answering this" in told
        [notice, *rest] = [a for a in host.channel.answers if a.address == bomb.address]
        assert "Something went wrong" in notice.text
        assert [one.reply_to for one in rest] == [bomb.id]
        asked = len(model.requests)
        await host.wait_for_event("delivery")
        await anyio.wait_all_tasks_blocked()
        assert len(model.requests) == asked
        [end] = await host.events(TURN_END)
        assert (end.data["status"], end.data["inbound"]) == ("interrupted", [bomb.id])


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


async def test_a_crash_is_survived_by_the_turn(tmp_path):
    """The turn is taken up again; a tool that had run does not run twice."""
    steps = iter(
        [
            tool_call_reply(memory_save_call("The user likes tea.")),
            RuntimeError("a defect"),
            text_reply("saved"),
        ]
    )
    model = ScriptedModel(lambda _: next(steps))
    async with session_host(tmp_path, model) as host:
        sent = await host.channel.send("I like tea")
        with anyio.fail_after(30):
            await host.clock.wait_for_sleepers()
        host.clock.advance(1.0)
        assert await host.channel.wait_for_answer(sent) == "saved"
        assert len(await host.events("memory.long_term")) == 1
        assert len(await host.events("turn.resume")) == 1
        [end] = await host.events(TURN_END)
        assert end.data["inbound"] == [sent.id]


async def test_what_a_failed_turn_and_its_summary_consumed_is_counted(tmp_path):
    model = ScriptedModel(
        [text_reply("one"), ContextOverflow("too long"), text_reply("two")],
        summary=[text_reply("short")],
    )
    async with session_host(tmp_path, model, bounds=HostLimits(context_tokens=1_000)) as host:
        await host.channel.ask(LONG)
        await host.channel.ask("more")
        assert "3 model calls, 30 tokens read (12 cached), 15 written, $0.0030" in (
            await host.channel.ask("/status")
        )


async def test_a_turn_that_ends_in_an_error_shows_what_was_said_until_then(tmp_path):
    held = PausedStep(TransientModelError("broken pipe"), partial="The answer is")
    model = ScriptedModel([held, text_reply("42")])
    async with session_host(tmp_path, model) as host:
        sent = await host.channel.send("?")
        await held.entered.wait()
        held.release.set()
        assert "broken pipe" in await host.channel.wait_for_answer(sent)
        await host.channel.ask("well?")
    assert [m["content"] for m in model.requests[1].messages if m["role"] == "assistant"] == [
        "The answer is"
    ]


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


async def test_a_disk_that_stays_full_is_no_fault_of_the_messages_that_wait(tmp_path):
    """There is room to take its turn up again and again, and none for the answer."""
    long = "here " * 10_000
    held = PausedStep(text_reply(long))
    first = iter([held])
    model = ScriptedModel(lambda _: next(first, None) or text_reply(long))
    async with session_host(tmp_path, model) as host:
        one = await host.channel.send("first")
        with anyio.fail_after(20):
            await held.entered.wait()
        sizes = [path.stat().st_size for path in (tmp_path / "tapes").glob("*.jsonl")]
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (max(sizes) + 20_000, before[1]))
        try:
            held.release.set()
            for pause in (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0):
                with anyio.fail_after(30):
                    await host.clock.wait_for_sleepers()
                host.clock.advance(pause)
            with anyio.fail_after(30):
                await host.clock.wait_for_sleepers()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        host.clock.advance(60.0)
        assert await host.channel.wait_for_answer(one) == long.strip()
        assert len(await host.events("turn.resume")) > 3
        assert await host.channel.ask("second") == long.strip()
        assert [end.data["status"] for end in await host.events(TURN_END)] == ["ok", "ok"]


async def test_of_several_failures_at_once_the_one_that_has_words_is_told(tmp_path):
    """A full disk breaks more than what wrote to it; what broke besides says nothing to anybody."""
    broken = BaseExceptionGroup("", [RuntimeError("of no use"), TapeWriteError("the disk is full")])
    fails = iter([broken])
    model = ScriptedModel(lambda _: next(fails, text_reply("fine")))
    async with session_host(tmp_path, model) as host:
        sent = await host.channel.send("hello")
        await host.channel.wait_until(lambda: host.channel.answers)
        assert "the disk is full" in host.channel.answers[0].text
        await host.clock.wait_for_sleepers()
        host.clock.advance(2.0)
        assert await host.channel.wait_for_answer(sent) == "fine"
