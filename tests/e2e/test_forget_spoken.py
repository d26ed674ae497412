"""A person asks in plain words to forget something, and only what they asked for goes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from folded import fold_entries
from forget_home import PERSON, home
from forget_traces import until_clean

from bot.bus import Sender
from bot.llm.base import ModelReply
from bot.testing.host import Host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import ScriptedModel, fact_change, text_reply, tool_call_reply

FIRST = (
    "Elsie is 6 and allergic to peanuts. Her EpiPen is in the red bag, next to the keys. "
    "She loves swimming and takes her EpiPen along."
)
ASKS = (
    "Also Elsie isn't 6 any more, she turned 7 on Sunday. And please forget the thing about the "
    "EpiPen"
)


class Family:
    """A chat whose model does what the test says, and then answers."""

    def __init__(self, host: Host, model: ScriptedModel, steps: list[ModelReply]) -> None:
        self.host = host
        self.model = model
        self._steps = steps

    async def say(
        self, text: str, *calls: tuple[str, dict[str, Any]], after: str = "", **who: Any
    ) -> str:
        self._steps += [tool_call_reply(call) for call in calls]
        self._steps += [text_reply(after)] if after else []
        sent = await self.host.channel.send(text, **who)
        return await self.host.channel.wait_for_answer(sent, within=20)

    async def save(self, text: str, *changes: dict[str, Any]) -> None:
        await self.say(text, ("memory_save", {"changes": list(changes)}))

    async def facts(self) -> dict[int, str]:
        fold = fold_entries(await self.host.store.read(PERSON))
        return {one.id: one.text for one in fold.active()}

    async def said(self) -> list[str]:
        tape = await self.host.tape()
        return [one.payload["content"] for one in tape if one.payload.get("role") == "user"]


@asynccontextmanager
async def family(folder: Path) -> AsyncIterator[Family]:
    steps: list[ModelReply] = []
    model = ScriptedModel(lambda _: steps.pop(0) if steps else text_reply("Fine."))
    async with home(folder, model) as host:
        chat = Family(host, model, steps)
        await chat.save(
            FIRST,
            fact_change("Elsie is 6.", "Elsie is 6"),
            fact_change("Elsie is allergic to peanuts.", "allergic to peanuts"),
            fact_change("Elsie's EpiPen is in the red bag.", "Her EpiPen is in the red bag"),
        )
        yield chat


async def ask_to_forget(chat: Family) -> str:
    return await chat.say(
        ASKS,
        (
            "memory_save",
            {"changes": [fact_change("Elsie is 7.", "she turned 7", op="change", facts=[1])]},
        ),
        ("memory_forget", {"what": "EpiPen"}),
    )


async def test_the_message_that_asks_goes_too_and_what_else_it_taught_stays(tmp_path: Path) -> None:
    async with family(tmp_path) as chat:
        question = await ask_to_forget(chat)
        assert "Elsie is 7" not in question
        done = await chat.say(chat.host.channel.answers[-1].buttons[0].command)
        assert done.startswith("Forgotten: 1 fact, 1 message and ")
        assert await chat.said() == ["", ""]
        facts = await chat.facts()
        assert (
            facts[2] == 'On 10 February 2026 the user said: "Elsie is 6 and allergic to peanuts."'
        )
        assert "she turned 7" in facts[4]
        await until_clean(chat.host, tmp_path, ["EpiPen"])


async def test_the_list_is_for_the_person_and_the_model_reads_nothing_of_it(tmp_path: Path) -> None:
    async with family(tmp_path) as chat:
        question = await ask_to_forget(chat)
        assert question.startswith("Fine.\n\nThis would be erased for good:")
        await chat.say("What is the weather like?")
        shown = [str(one["content"]) for one in chat.model.requests_for()[-1].messages[1:]]
        assert "would be erased for good" not in "".join(shown)
        (result,) = [one for one in shown if one.startswith("Nothing is erased yet")]
        assert "EpiPen" not in result.partition("\n\n<records>")[0]


@pytest.mark.parametrize("word", ["Yes!", "ja"])
async def test_a_plain_yes_right_after_the_question_erases_without_a_model(
    tmp_path: Path, word: str
) -> None:
    async with family(tmp_path) as chat:
        await ask_to_forget(chat)
        asked = len(chat.model.requests)
        assert (await chat.say(word)).startswith("Forgotten: 1 fact, 1 message and ")
        assert len(chat.model.requests) == asked
        await until_clean(chat.host, tmp_path, ["EpiPen"])


async def test_a_plain_no_erases_nothing(tmp_path: Path) -> None:
    async with family(tmp_path) as chat:
        await ask_to_forget(chat)
        assert await chat.say("No.") == "Nothing was erased."
        assert len(await chat.facts()) == 4
        assert await chat.say("yes") == "Fine."


@pytest.mark.slow
async def test_a_yes_that_may_mean_something_else_goes_to_the_model(tmp_path: Path) -> None:
    async with family(tmp_path) as chat:
        for texts, who in (
            (["It rains.", "yes"], {}),
            (["yes, but keep the rest"], {}),
            (["yes"], {"quote": "It rains."}),
            (["yes"], {"sender": Sender("8", "Bob"), "role": "member"}),
        ):
            await ask_to_forget(chat)
            assert [await chat.say(one, **who) for one in texts] == ["Fine."] * len(texts)
        await ask_to_forget(chat)
        assert isinstance(chat.host.clock, ManualClock)
        chat.host.clock.advance(11 * 60)
        assert await chat.say("yes") == "Fine."
        await chat.say("Forget the EpiPen.", ("memory_forget", {"what": "EpiPen"}), after="Fine?")
        assert await chat.say("yes") == "Fine."
        assert 3 in await chat.facts()


async def test_a_yes_erases_though_the_model_asks_too(tmp_path: Path) -> None:
    async with family(tmp_path) as chat:
        erase = "Shall I erase it?"
        await chat.say("Forget the EpiPen.", ("memory_forget", {"what": "EpiPen"}), after=erase)
        assert (await chat.say("yes")).startswith("Forgotten")


async def test_undo_revives_no_fact_whose_words_were_erased(tmp_path: Path) -> None:
    async with family(tmp_path) as chat:
        change = fact_change("Elsie is 7.", "Elsie turned 7", op="change", facts=[1])
        await chat.save("Elsie turned 7 on Sunday.", change)
        await chat.say("/memory accept 4")
        await chat.say('/memory forget "Elsie is 6"')
        yes = chat.host.channel.answers[-1].buttons[0].command
        assert (await chat.say(yes)).startswith("Forgotten: 2 facts, 1 message")
        await chat.say("/memory undo")
        assert all("Elsie is 6" not in fact for fact in (await chat.facts()).values())
