"""What the model's tools for notes, forgetting, clearing and skills answer, and when they are offered."""

from __future__ import annotations

from bot.agent.tools.registry import MAX_RESULT, NoArguments, Tool, ToolContext, ToolOutcome
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply


async def test_a_telephone_number_is_found_and_tapebot_asks_with_buttons(chat):
    await chat.host.channel.ask("My number is 0151 2345678.")
    chat.steps = [
        tool_call_reply(("memory_forget", {"what": "0151 2345678"})),
        text_reply("I found it."),
    ]
    told = await chat.host.channel.ask("Please forget my number.")
    assert told.startswith("I found it.\n\nThis would be erased for good:")
    assert "0151 2345678" in told
    answer = chat.host.channel.answers[-1]
    assert answer.buttons[0].label == "Erase"
    assert answer.buttons[0].command.startswith("/memory forget yes ")
    await chat.host.channel.ask(answer.buttons[0].command)
    assert "2345678" not in str([e.payload for e in await chat.host.tape()])


async def test_one_thing_to_be_forgotten_is_asked_at_a_time(chat):
    """What is confirmed is what was shown."""
    await chat.host.channel.ask("My cat is Miso.")
    await chat.host.channel.ask("My car is a Skoda.")
    forget = [("memory_forget", {"what": one}) for one in ("Miso", "Skoda", "Skoda")]
    chat.steps = [tool_call_reply(*forget[:2]), tool_call_reply(forget[2])]
    told = await chat.host.channel.ask("Please forget my cat and my car.")
    assert "Miso" in told
    assert "Skoda" not in told
    given = [one.payload for one in await chat.host.tape() if one.kind == "tool_result"]
    assert [one["status"] for one in given] == ["ok", "error", "error"]
    assert all("one thing at a time" in one["content"] for one in given[1:])


async def test_tools_that_cannot_be_used_now_are_not_offered(chat, tmp_path):
    await chat.host.channel.ask("hi")
    names = {tool.name for tool in chat.model.requests_for()[-1].tools}
    assert names.isdisjoint({"problem_note", "skill_read"})
    await chat.host.channel.ask("/problem new Taxes")
    folder = tmp_path / "workspace" / "skills" / "cooking"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: cooking\ndescription: Cooks.\n---\nStir.")
    chat.host.clock.advance(3_600)
    await chat.host.channel.ask("hi")
    assert {tool.name for tool in chat.model.requests_for()[-1].tools} - names == {
        "problem_note",
        "skill_read",
    }


async def test_notes_past_the_retention_are_pruned_by_the_next_write(chat):
    await chat.tool("memory_daily", "It is the first day", content="first day")
    chat.host.clock.advance(4 * 86_400)
    await chat.tool("memory_daily", "It is the fifth day", content="fifth day")
    shown = await chat.tool("memory_show")
    assert "fifth day" in shown
    assert "first day" not in shown
    assert "first day" in str(await chat.host.events("memory.daily"))


async def test_a_result_too_long_for_the_prompt_is_cut_and_says_so(tmp_path):
    async def run(_: NoArguments, __: ToolContext) -> ToolOutcome:
        return ToolOutcome("x" * (MAX_RESULT + 1))

    long = Tool("long", "Says much.", NoArguments, run, effect="reads_own")
    model = ScriptedModel([tool_call_reply(("long", {})), text_reply("ok")])
    async with session_host(tmp_path, model, tools=[long]) as host:
        await host.channel.ask("do it")
        [result] = [entry for entry in await host.tape() if entry.kind == "tool_result"]
    told = result.payload["content"]
    assert len(told) < MAX_RESULT + 100
    assert "characters left out" in told
