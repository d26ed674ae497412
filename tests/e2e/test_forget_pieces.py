"""A person erases some of what was found: what they keep stays believed, with the words that it rests on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from folded import fold_entries
from forget_home import PERSON, TOWN, home
from forget_traces import traces

from bot.llm.base import ModelReply, ModelRequest
from bot.memory.records.fact import Fact
from bot.memory.records.tombstones import is_erased
from bot.tape.stores.folder_verification import verify_folder
from bot.testing.host import Host
from bot.testing.scripted_model import (
    ScriptedModel,
    fact_change,
    text_reply,
    tool_call_reply,
)

BOTH = f"I live in {TOWN}. My sister Ola is a nurse."
OLA = 'On 10 February 2026 the user said: "My sister Ola is a nurse."'


def learning(request: ModelRequest) -> ModelReply:
    """Save both facts of ``BOTH``, and echo nothing."""
    newest = request.messages[-1]
    if newest["role"] == "user" and BOTH in str(newest["content"]):
        told = (
            fact_change(f"The user lives in {TOWN}.", f"I live in {TOWN}."),
            fact_change("The user's sister Ola is a nurse.", "My sister Ola is a nurse."),
        )
        return tool_call_reply(("memory_save", {"changes": [*told]}))
    return text_reply("Noted.")


@asynccontextmanager
async def told(folder: Path, *texts: str) -> AsyncIterator[Host]:
    """A home whose model learns where Ada lives and what her sister is, and has been told this."""
    async with home(folder, ScriptedModel(learning)) as host:
        for text in texts:
            await host.channel.ask(text)
        yield host


async def facts(host: Host) -> dict[str, Fact]:
    return {one.text: one for one in fold_entries(await host.store.read(PERSON)).active()}


def commands(host: Host) -> list[str]:
    return [one.command for one in host.channel.answers[-1].buttons]


async def until_clean(host: Host, folder: Path) -> None:
    await host.bus.drain()
    await host.wait_until(lambda: not traces(folder / "bus", [TOWN]))
    assert traces(folder, [TOWN]) == []


async def test_what_the_same_message_taught_beside_it_stays_with_its_words(tmp_path: Path) -> None:
    async with told(tmp_path, BOTH, "It rains today.") as host:
        before = await host.tape()
        number = next(one.id for one in before if one.payload.get("content") == BOTH)
        question = await host.channel.ask(f"/memory forget {TOWN}")
        first, kept = question.split("From the same message, and kept unless you pick it:")
        assert first.splitlines()[2:4] == [
            f"1. On 10 February 2026 you said: “I live in {TOWN}.” (fact 1)",
            f"2. Message of 2026-02-10 10:00, Ada: {BOTH}",
        ]
        assert kept.splitlines()[2] == (
            "3. On 10 February 2026 you said: “My sister Ola is a nurse.” (fact 2)"
        )
        confirm, *_only, keep = commands(host)
        assert keep == confirm.replace("yes", "no")
        assert f"send `{confirm}`" in question
        assert traces(tmp_path, [TOWN])
        done = await host.channel.ask(confirm)
        assert done.startswith("Forgotten: 1 fact, 1 message and ")
        await until_clean(host, tmp_path)

        after = await host.tape()
        assert [one.id for one in after[: len(before)]] == [one.id for one in before]
        assert is_erased(after[number - before[0].id])
        kept = (await facts(host))[OLA]
        assert [(one.entry, one.quote) for one in kept.evidence] == [
            (number, "My sister Ola is a nurse.")
        ]
        assert "My sister Ola is a nurse" in await host.channel.ask("/memory why 2")
        assert "It rains today." in [one.payload.get("content") for one in after]
        assert await host.channel.ask(confirm) == done
        await until_clean(host, tmp_path)
    assert not verify_folder(tmp_path / "tapes", "").problems
    async with home(tmp_path) as host:
        assert list(await facts(host)) == [OLA]


async def test_only_what_is_picked_goes_to_the_letter(tmp_path: Path) -> None:
    async with told(tmp_path, BOTH, "It rains today.") as host:
        question = await host.channel.ask("/memory forget 1")
        assert "1 message in all" in question
        exactly = commands(host)[0].replace("yes", "only") + " 1 3"
        shown = await host.channel.ask(exactly)
        assert "Ola" in shown
        assert BOTH not in shown
        assert (await host.channel.ask(commands(host)[0])).startswith("Forgotten: 2 facts, 0 mess")
        assert await facts(host) == {}
        said = [one.payload.get("content") for one in await host.tape()]
        assert BOTH in said


async def test_what_no_message_holds_in_full_is_searched_for_and_goes_if_it_is_picked(
    tmp_path: Path,
) -> None:
    async with told(tmp_path, BOTH, "It rains today.") as host:
        question = await host.channel.ask(f"/memory forget my old house in {TOWN}")
        assert question.startswith("No message has all of these words.")
        only, keep = commands(host)
        assert keep.startswith("/memory forget no")
        assert await host.channel.ask("yes") == "Noted."
        await host.channel.ask(f"/memory forget our old house in {TOWN}")
        shown = await host.channel.ask(commands(host)[0])
        assert BOTH in shown
        done = await host.channel.ask(commands(host)[0])
        assert done.startswith("Forgotten: 0 facts, 1 message")
        assert only.startswith("/memory forget only")
        said = [one.payload.get("content") for one in await host.tape()]
        assert BOTH not in said
        assert list(await facts(host)) != []


async def test_numbers_that_were_not_shown_erase_nothing(tmp_path: Path) -> None:
    async with told(tmp_path, BOTH) as host:
        await host.channel.ask(f"/memory forget {TOWN}")
        yes = commands(host)[0]
        for form in (f"{yes} 9", f"{yes} 0", f"{yes.replace('yes', 'only')} 9"):
            assert "the numbers of what was shown are 1 to 3" in await host.channel.ask(form)
        assert "no such request" in await host.channel.ask("/memory forget only 1 1")
        assert len(await facts(host)) == 2
        await host.channel.ask(f"/memory forget {TOWN}")
        assert "newest" in await host.channel.ask(f"{yes} 1")
