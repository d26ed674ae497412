"""What of a problem comes back into view when it is worked on again, and in which bounds."""

from __future__ import annotations

from bot.agent.context import default_context
from bot.tape.entries import tool_call, tool_result
from bot.tape.search import GENERAL_PROBLEM


async def test_a_problem_begins_with_an_empty_view_and_the_old_one_comes_back_in_order(talk):
    await talk.say("general 1")
    first = await talk.problem("first")
    assert talk.view() == []
    await talk.say("first 1")
    await talk.bus.problems.switch_to(GENERAL_PROBLEM)
    assert talk.view() == ["general 1", "re: general 1"]
    await talk.say("general 2")
    await talk.bus.problems.switch_to(first)
    assert talk.view() == ["first 1", "re: first 1"]
    await talk.say("first 2")
    await talk.bus.problems.switch_to(GENERAL_PROBLEM)
    await talk.bus.problems.switch_to(first)
    assert talk.view() == ["first 1", "re: first 1", "first 2", "re: first 2"]
    await talk.bus.problems.switch_to(GENERAL_PROBLEM)
    assert talk.view() == ["general 1", "re: general 1", "general 2", "re: general 2"]
    assert talk.fold.window.messages == 4


async def test_of_many_messages_the_newest_whole_turns_come_back_up_to_a_quarter_of_the_view(talk):
    first = await talk.problem("first")
    for number in range(15):
        await talk.say(f"number {number}")
    await talk.bus.problems.pause(first)
    await talk.bus.problems.switch_to(first)
    back = talk.view()
    assert back == [
        text for number in range(10, 15) for text in (f"number {number}", f"re: number {number}")
    ]
    assert len(back) * 4 == talk.bounds["max_messages"]


async def test_of_long_messages_as_many_come_back_as_fit_a_quarter_of_its_tokens(talk):
    first = await talk.problem("first")
    for number in range(5):
        await talk.say(f"{number} {'x' * 1_200}", "ok")
    await talk.bus.problems.pause(first)
    await talk.bus.problems.switch_to(first)
    assert [text[:2] for text in talk.view()] == ["2 ", "ok", "3 ", "ok", "4 ", "ok"]
    assert talk.fold.window.tokens * 4 <= talk.bounds["max_tokens"]
    await talk.say("y" * 5_000)
    await talk.bus.problems.pause(first)
    await talk.bus.problems.switch_to(first)
    # One turn that is over the bound does not come back at all.
    assert talk.view() == []


async def test_tool_calls_come_back_with_their_results(talk):
    first = await talk.problem("first")
    turn = await talk.begin("look")
    call = [{"id": "c1", "name": "look", "arguments": "{}"}]
    await talk.tape.append(tool_call("", call, turn=turn))
    await talk.tape.append(tool_result("c1", "look", "seen", turn=turn))
    await talk.end(turn, "done")
    await talk.bus.problems.pause(first)
    await talk.bus.problems.switch_to(first)
    shown = default_context(talk.fold.window)
    assert [one["role"] for one in shown] == ["user", "assistant", "tool", "assistant"]
    assert shown[2]["content"] == "seen"


async def test_what_came_back_leaves_the_view_first_when_that_outgrows_its_bounds(talk):
    first = await talk.problem("first")
    for number in range(10):
        await talk.say(f"old {number}")
    await talk.bus.problems.pause(first)
    await talk.bus.problems.switch_to(first)
    for number in range(15):
        await talk.say(f"new {number}")
    assert talk.view()[:2] == ["old 5", "re: old 5"]
    await talk.say("new 15")
    assert not [text for text in talk.view() if "old" in text]
    assert talk.view()[-1] == "re: new 15"
    assert talk.fold.window.messages == len(talk.view()) == talk.bounds["max_messages"] // 2


async def test_going_to_and_fro_without_a_word_changes_nothing_of_what_is_in_view(talk):
    await talk.say("general")
    first = await talk.problem("first")
    await talk.say("first")
    for _ in range(5):
        await talk.bus.problems.switch_to(GENERAL_PROBLEM)
        assert talk.view() == ["general", "re: general"]
        await talk.bus.problems.switch_to(first)
        assert talk.view() == ["first", "re: first"]
