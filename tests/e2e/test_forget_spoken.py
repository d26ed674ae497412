"""A person asks in plain words to forget something, and only what they asked for goes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from forget_home import PERSON, home
from forget_steps import erase, until_clean

from bot.bus import Attachment, Sender
from bot.bus.media.blobs import FolderBlobs
from bot.llm.base import ModelReply
from bot.memory.records.fact_fold import fold_entries
from bot.testing.host import Host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import ScriptedModel, judgement_reply, text_reply, tool_call_reply

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
            {"op": "add", "text": "Elsie is 6."},
            {"op": "add", "text": "Elsie is allergic to peanuts."},
            {"op": "add", "text": "Elsie's EpiPen is in the red bag."},
        )
        yield chat


async def ask_to_forget(chat: Family) -> str:
    return await chat.say(
        ASKS,
        ("memory_save", {"changes": [{"op": "change", "fact": 1, "text": "Elsie is 7."}]}),
        ("memory_forget", {"what": "EpiPen"}),
    )


async def test_only_the_sentence_that_asks_goes_of_the_message_that_asks(tmp_path: Path) -> None:
    async with family(tmp_path) as chat:
        question = await ask_to_forget(chat)
        assert "Elsie is 7" not in question
        done = await chat.say(chat.host.channel.answers[-1].buttons[0].command)
        assert done.startswith("Forgotten: 1 fact, 0 messages, words of 1 message and ")
        assert await chat.said() == [
            "Elsie is 6 and allergic to peanuts. [erased].",
            "Also Elsie isn't 6 any more, she turned 7 on Sunday. [erased]",
        ]
        fact = fold_entries(await chat.host.store.read(PERSON)).facts[4]
        assert [one.quote for one in fact.evidence] == [
            "Also Elsie isn't 6 any more, she turned 7 on Sunday"
        ]
        await until_clean(chat.host, tmp_path, ["EpiPen"])


async def test_a_fact_that_nobody_asked_to_forget_stays_unless_it_is_picked(tmp_path: Path) -> None:
    async with family(tmp_path) as chat:
        question = await ask_to_forget(chat)
        going, kept = question.split("From the same message, and kept unless you pick it:\n\n")
        assert "\n\n1. Elsie's EpiPen is in the red bag. (fact 3)\n\n" in going
        assert "allergic" not in going
        assert kept.startswith("2. Elsie is allergic to peanuts. (fact 2)\n3. The rest of the ")
        assert "To choose yourself" in kept
        await chat.say(chat.host.channel.answers[-1].buttons[0].command)
        assert await chat.facts() == {2: "Elsie is allergic to peanuts.", 4: "Elsie is 7."}


async def test_what_is_listed_as_kept_goes_if_it_is_picked(tmp_path: Path) -> None:
    async with family(tmp_path) as chat:
        await ask_to_forget(chat)
        yes = chat.host.channel.answers[-1].buttons[0].command
        exactly = await chat.say(f"{yes.replace('yes', 'only')} 1 2")
        assert "Elsie is allergic to peanuts. (fact 2)" in exactly
        await chat.say(chat.host.channel.answers[-1].buttons[0].command)
        assert await chat.facts() == {4: "Elsie is 7."}
        await until_clean(chat.host, tmp_path, ["EpiPen"])


async def test_the_list_is_for_the_person_and_the_model_reads_counts(tmp_path: Path) -> None:
    async with family(tmp_path) as chat:
        question = await ask_to_forget(chat)
        assert question.startswith("Fine.\n\nThis would be erased for good:")
        await chat.say("What is the weather like?")
        shown = [str(one["content"]) for one in chat.model.requests_for()[-1].messages[1:]]
        assert "would be erased for good" not in "".join(shown)
        (result,) = [one for one in shown if one.startswith("Found:")]
        assert result.partition("\n\n<records>")[0] == (
            "Found: 1 fact, 0 messages, sentences of 1 message; 2 items from the same messages stay "
            "unless picked. Nothing is erased yet: below your answer the user sees the list and is "
            "asked to confirm with a button or a plain yes."
        )


@pytest.mark.parametrize("word", ["yes", "Yes, please!", "ja", "do it"])
async def test_a_plain_yes_right_after_the_question_erases_without_a_model(
    tmp_path: Path, word: str
) -> None:
    async with family(tmp_path) as chat:
        await ask_to_forget(chat)
        asked = len(chat.model.requests)
        assert (await chat.say(word)).startswith("Forgotten: 1 fact, 0 messages, words of 1 ")
        assert len(chat.model.requests) == asked
        await until_clean(chat.host, tmp_path, ["EpiPen"])


async def test_a_plain_no_erases_nothing(tmp_path: Path) -> None:
    async with family(tmp_path) as chat:
        await ask_to_forget(chat)
        assert await chat.say("No, thanks") == "Nothing was erased."
        assert len(await chat.facts()) == 3
        assert await chat.say("yes") == "Fine."


async def test_a_yes_to_a_selection_erases_that_selection(tmp_path: Path) -> None:
    async with family(tmp_path) as chat:
        await chat.say("/memory forget EpiPen")
        yes = chat.host.channel.answers[-1].buttons[0].command
        await chat.say(f"{yes.replace('yes', 'only')} 1 2")
        assert (await chat.say("yes")).startswith("Forgotten: 2 facts")
        assert await chat.facts() == {2: "Elsie is allergic to peanuts."}


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
        erase = "Shall I erase it?"
        await chat.say("Forget the EpiPen.", ("memory_forget", {"what": "EpiPen"}), after=erase)
        assert (await chat.say("yes")).startswith("Forgotten")


async def test_undo_revives_no_fact_whose_words_were_erased(tmp_path: Path) -> None:
    async with family(tmp_path) as chat:
        change = {"op": "change", "fact": 1, "text": "Elsie is 7."}
        await chat.save("Elsie turned 7 on Sunday.", change)
        await chat.say("/memory forget 3")
        yes = chat.host.channel.answers[-1].buttons[0].command
        exactly = await chat.say(f"{yes.replace('yes', 'only')} 1 3")
        assert "so undo does not bring them back:\n- Elsie is 6. (fact 1)\n" in exactly
        assert (await chat.say("yes")).startswith("Forgotten: 1 fact, 1 message")
        undone = await chat.say("/memory undo")
        assert "- removed: **4.** Elsie is 7." in undone
        assert "not restored, because the words that it rested on were erased: **1.** " in undone
        assert await chat.facts() == {2: "Elsie is allergic to peanuts."}


async def test_it_is_said_that_the_words_of_a_fact_were_erased(tmp_path: Path) -> None:
    async with family(tmp_path) as chat:
        await chat.say("/memory forget 3")
        yes = chat.host.channel.answers[-1].buttons[0].command
        await chat.say(f"{yes.replace('yes', 'only')} 4")
        await chat.say("yes")
        why = await chat.say("/memory why 2")
        assert "\n- Ada, message of 2026-02-10 10:00, entry #6: its words were erased\n" in why
        assert "a person's own words supported it, which were erased since (1.00)" in why


async def test_a_message_that_a_fact_cites_beside_the_one_that_tells_it_stays(
    tmp_path: Path,
) -> None:
    """A fact may take one word from an earlier message, which is not about what goes."""
    trip = "We plan a weekend in Prague with Ida, by train."
    steps: list[ModelReply] = []
    model = ScriptedModel(
        lambda _: steps.pop(0) if steps else text_reply("Fine."),
        judgement=lambda request: judgement_reply(request, lambda _: "supported"),
    )
    async with home(tmp_path, model) as host:
        chat = Family(host, model, steps)
        await chat.save(trip, {"op": "add", "text": "Ada plans a weekend in Prague with Ida."})
        await chat.save(
            "At most 140 euros a night. Jonas recommended the quarter Vinohrady.",
            {"op": "add", "text": "Jonas recommended the quarter Vinohrady in Prague to Ada."},
        )
        fact = fold_entries(await host.store.read(PERSON)).facts[2]
        assert len({one.entry for one in fact.evidence}) == 2
        asks = "Jonas is leaving the choir, sadly. But please forget what he recommended."
        leaves = {"op": "add", "text": "Jonas is leaving Ada's choir."}
        steps.append(
            tool_call_reply(
                ("memory_save", {"changes": [leaves]}), ("memory_forget", {"what": "Vinohrady"})
            )
        )
        question = await chat.say(asks, after="Please confirm.")
        going, kept = question.split("From the same message, and kept unless you pick it:")
        assert "Prague to Ada" in going
        assert trip not in going
        assert trip in kept
        await host.channel.ask(host.channel.answers[-1].buttons[0].command)
        assert list((await chat.facts()).values()) == [
            "Ada plans a weekend in Prague with Ida.",
            "Jonas is leaving Ada's choir.",
        ]
        said = await chat.said()
        assert said[0] == trip
        assert said[1] == "At most 140 euros a night. [erased]."
        assert said[2] == "Jonas is leaving the choir, sadly. [erased]."
        await until_clean(host, tmp_path, ["Vinohrady"])

        await chat.say("How are you?")
        sent = model.requests_for("turn")[-1].messages
        called = [one["function"] for message in sent for one in message.get("tool_calls") or ()]
        assert [one["name"] for one in called] == ["memory_save"] * 2
        assert "{}" not in [one["arguments"] for one in called]


@pytest.mark.parametrize("came_with", ["file", "quotation"])
async def test_such_a_message_goes_if_what_came_with_it_tells_what_goes(
    tmp_path: Path, came_with: str
) -> None:
    guide = "Stay in Vinohrady!"
    steps: list[ModelReply] = []
    model = ScriptedModel(
        lambda _: steps.pop(0) if steps else text_reply("Fine."),
        judgement=lambda request: judgement_reply(request, lambda _: "supported"),
    )
    async with home(tmp_path, model) as host:
        chat = Family(host, model, steps)
        more: dict[str, Any] = {"quote": guide}
        if came_with == "file":
            blob = await FolderBlobs(tmp_path / "blobs").put(guide.encode())
            file = Attachment("document", "guide.txt", "text/plain", len(guide), blob, guide)
            more = {"attachments": (file,)}
        trip = {"op": "add", "text": "Ada plans a weekend in Prague with Ida."}
        said = "We plan a weekend in Prague with Ida, by train."
        await chat.say(said, ("memory_save", {"changes": [trip]}), **more)
        await chat.save(
            "At most 140 euros a night. Jonas recommended the quarter Vinohrady.",
            {"op": "add", "text": "Jonas recommended the quarter Vinohrady in Prague to Ada."},
        )
        fact = fold_entries(await host.store.read(PERSON)).facts[2]
        assert len({one.entry for one in fact.evidence}) == 2
        await chat.say(
            "Please forget what Jonas recommended.",
            ("memory_forget", {"what": "Vinohrady"}),
            after="Please confirm.",
        )
        await host.channel.ask(host.channel.answers[-1].buttons[0].command)
        assert (await chat.said())[:2] == ["", "At most 140 euros a night. [erased]."]
        await until_clean(host, tmp_path, ["Vinohrady"])


async def test_what_only_shares_a_name_or_a_word_of_the_request_stays_in_answers(
    tmp_path: Path,
) -> None:
    job = "Tom started at the city library this week, before that he was at Siemens."
    shed = "You thought of a shed with a workbench for Tom's birthday."
    both = f"Tom works at the city library. {shed} Rosa doesn't eat walnuts, and everything else she likes."
    async with family(tmp_path) as chat:
        await chat.say("My husband Tom would like a shed.", after=shed)
        await chat.save(job, {"op": "add", "text": "Tom started at the city library this week."})
        await chat.say("What do you know?", after=both)
        await chat.say(
            "Forget everything about Tom's jobs, he doesn't like that I tell you.",
            ("memory_forget", {"what": "Tom city library"}),
        )
        await chat.say("yes")
        told = [one.payload["content"] for one in await chat.host.tape() if one.kind == "message"]
        assert shed in told
        assert f"[erased] {shed} Rosa doesn't eat walnuts, and everything else she likes." in told
        await until_clean(chat.host, tmp_path, ["city library", "Siemens"])


@pytest.mark.parametrize(
    ("said", "answered", "asked"),
    [
        (
            "My therapist Wexlerová is kind.",
            "Ask the therapist Wexler. Wexler helps. Be well.",
            "therapist Wexler",
        ),
        (
            "My dealer is called Bo Lindqvist.",
            "Bo Lindqvist it is. Ask Bo. Be well.",
            "Bo Lindqvist",
        ),
        (
            "The affair with Wexler was in 2019.",
            "The affair of 2019? 2019 is over. Be well.",
            "affair 2019",
        ),
    ],
)
async def test_what_no_text_that_stays_holds_goes_from_answers_in_each_form(
    tmp_path: Path, said: str, answered: str, asked: str
) -> None:
    async with family(tmp_path) as chat:
        await chat.say(said)
        await chat.say("Well?", after=answered)
        await erase(chat.host, asked)
        told = [one.payload["content"] for one in await chat.host.tape() if one.kind == "message"]
        assert told[-1] == "[erased] [erased] Be well."
