"""``/memory`` add, edit, undo and clear, as a person meets them."""

from __future__ import annotations

import re
from dataclasses import replace

import anyio
import pytest

from bot.agent.commands.builtin import builtin_commands
from bot.agent.commands.memory import MEMORY_COMMAND
from bot.agent.commands.registry import CommandReply
from bot.tape.entries import TapeEntry
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply

PERSON = "person:fake:7"


@pytest.fixture
async def host(tmp_path):
    async with session_host(tmp_path, ScriptedModel(lambda _: text_reply("ok"))) as host:
        yield host


async def memory(host: Host, form: str = "") -> str:
    return await host.channel.ask(f"/memory {form}")


async def lines(host: Host, message_id: str | None = None) -> list[str]:
    """Return what ``/memory`` lists, without the ages."""
    listed = await host.channel.send("/memory", message_id=message_id)
    told = await host.channel.wait_for_answer(listed)
    found = re.findall(r"^\*\*(w?\d+\.)\*\* (.*?)(?: \([^()]*\))?$", told, re.MULTILINE)
    return [f"{number} {text}" for number, text in found]


async def test_what_takes_the_place_of_a_fact_says_so(host):
    await memory(host, "add I live in Bonn")
    told = await memory(host, "add I live in Graz")
    assert told == ("Added to memory: **2.** I live in Graz\nIt replaces **1.** I live in Bonn")
    assert await lines(host) == ["2. I live in Graz"]


@pytest.mark.parametrize(
    ("form", "answer"),
    [
        ("add", "What should I add?"),
        ("add " + "x" * 2_001, "too long: 2001 characters"),
        ("add (nothing)", "Not added: it says nothing."),
        ("edit", "Which one?"),
        ("edit tea", "Which one?"),
        ("edit 1", "What should it say?"),
        ("edit 1 " + "x" * 2_001, "too long"),
        ("edit 1 tea", "There is no fact 1."),
        ("edit w1 tea", "There is no fact w1."),
        ("undo", "There is nothing to undo"),
        ("undo everything", "nothing was undone"),
        ("clear", "There is nothing to clear."),
        ("clear yes", "There is nothing to clear."),
        ("udno", "Did you mean `/memory undo`?"),
        ("7", "Nothing yet"),
        ("99999999999999999999", "Nothing yet"),
    ],
)
async def test_nonsense_has_a_clear_answer(host, form, answer):
    assert answer in await memory(host, form)


async def test_an_edit_says_what_became_what_and_the_old_words_stay_in_the_chain(host):
    await memory(host, "add My favourite color is blue")
    # So little is changed that elsewhere it counts as the same.
    told = await memory(host, "edit 1 My favourite colour is blue")
    assert told == (
        "Changed: **1.** My favourite color is blue\n→ **2.** My favourite colour is blue"
    )
    assert await lines(host) == ["2. My favourite colour is blue"]
    assert "It replaced **1.** My favourite color is blue" in await memory(host, "why 2")
    assert "no longer valid" in await memory(host, "edit 1 tea")


async def test_undo_goes_back_further_each_time_until_there_is_nothing_left(host):
    for fact in ("aleph", "beth", "gimel"):
        await memory(host, f"add {fact}")
    for gone, left in (
        ("3.** Gimel", ["1. Aleph", "2. Beth"]),
        ("2.** Beth", ["1. Aleph"]),
        ("1.** Aleph", []),
    ):
        assert f"Undone:\n- removed: **{gone}" in await memory(host, "undo")
        assert await lines(host) == left
    assert "nothing to undo" in await memory(host, "undo")


async def test_undo_reaches_behind_a_new_session_and_a_clear(host):
    for form in ("add aleph", "add beth"):
        await memory(host, form)
    await host.channel.ask("/new now")
    assert "(2 facts)" in await memory(host, "clear")
    assert await lines(host) == ["1. Aleph", "2. Beth"]
    assert "is cleared" in await memory(host, "clear yes")
    assert await lines(host) == []
    await memory(host, "undo")
    assert await lines(host) == ["1. Aleph", "2. Beth"]
    await memory(host, "undo")
    assert await lines(host) == ["1. Aleph"]


async def test_a_button_brings_back_the_clear_and_never_something_else(host):
    await memory(host, "add I like tea")
    await memory(host, "clear yes")
    (back,) = host.channel.answers[-1].buttons
    await memory(host, "add I like cake")
    assert "nothing was undone" in await host.channel.ask(back.command)
    assert await lines(host) == ["2. I like cake"]
    await memory(host, "undo")
    assert "restored: **1.** I like tea" in await host.channel.ask(back.command)
    assert await lines(host) == ["1. I like tea"]


def noting(*notes: str) -> list[object]:
    """Return what a model says that makes a note of each message."""
    return [
        step
        for one in notes
        for step in (tool_call_reply(("memory_daily", {"content": one})), text_reply("ok"))
    ]


MILK, BREAD = "I bought milk", "I baked bread"


async def test_each_clear_brings_back_its_own_notes_also_when_a_tool_cleared(tmp_path):
    clear = [tool_call_reply(("memory_clear", {})), text_reply("ok")]
    steps = [*noting(MILK), *clear, *noting(BREAD)]
    async with session_host(tmp_path, ScriptedModel(steps)) as host:
        for step in (MILK, "clear it", BREAD):
            host.clock.advance(1)
            await host.channel.ask(step)
        host.clock.advance(1)
        await memory(host, "clear yes")
        assert "**Notes of" not in await memory(host)
        await memory(host, "undo")
        assert f"**Notes of 2026-02-10**\n{BREAD}\n" in await memory(host)
        await memory(host, "undo")
        assert f"**Notes of 2026-02-10**\n{MILK}\n{BREAD}\n" in await memory(host)


@pytest.mark.parametrize(
    "form", ["add I like tea", "edit 1 I like coffee", "undo", "undo ID", "clear yes"]
)
async def test_a_kill_between_the_facts_and_the_reply_changes_nothing_twice(tmp_path, form):
    """The command is run again after the restart: its facts are there once, and it is answered."""
    reached = anyio.Event()

    async def killed_before_the_reply(arguments: str, context: object) -> CommandReply:
        reply = await MEMORY_COMMAND.run(arguments, context)
        if arguments.split(maxsplit=1)[0] != form.split()[0] or len(facts) < len(before):
            return reply
        reached.set()
        await anyio.sleep_forever()
        return reply

    half = replace(MEMORY_COMMAND, run=killed_before_the_reply)
    before = ("add My cat is called Tom", "add I drive a red car")
    facts: list[TapeEntry] = []
    async with session_host(tmp_path, ScriptedModel(), commands=builtin_commands([half])) as host:
        for one in before:
            await memory(host, one)
        facts = await host.events("memory.facts", PERSON)
        asked = await host.channel.send(f"/memory {form}".replace("ID", str(facts[-1].id)))
        with anyio.fail_after(30):
            await reached.wait()
        changed = len(await host.events("memory.facts", PERSON))
    async with session_host(tmp_path, ScriptedModel()) as host:
        told = await host.channel.wait_for_answer(asked)
        assert len(await host.events("memory.facts", PERSON)) == changed == 3
        expected = {
            "add": ("Added to memory: **3.**", ["1. My cat is called Tom", "2. I drive a red car",
                                                "3. I like tea"]),
            "edit": ("→ **3.** I like coffee", ["2. I drive a red car", "3. I like coffee"]),
            "undo": ("removed: **2.** I drive a red car", ["1. My cat is called Tom"]),
            "clear": ("Memory is cleared", []),
        }  # fmt: skip
        words, left = expected[form.split()[0]]
        assert words in told
        # The channel counts its messages anew.
        assert sorted(await lines(host, "later")) == sorted(left)


async def test_every_fact_is_on_some_page_however_many_there_are(host):
    for number in range(5):
        await memory(host, f"add {number} {'x' * 1_900}")
    pages = "".join([await memory(host, str(page)) for page in range(1, 12)])
    shown = re.findall(r"\*\*(\d+)\.\*\*", pages)
    assert sorted(set(shown)) == ["1", "2", "3", "4", "5"]
    assert all(len(answer.text) < 2_000 for answer in host.channel.answers)
