"""``/memory``: what is added, changed, undone, cleared, explained and found, and who may do what."""

from __future__ import annotations

import re
from dataclasses import replace

import anyio
import pytest
from sampling import some

from bot.agent.commands.builtin import builtin_commands
from bot.agent.commands.memory import MEMORY_COMMAND
from bot.agent.commands.registry import CommandContext, CommandReply
from bot.testing.host import Host, HostLimits, session_host
from bot.testing.scripted_model import ScriptedModel, text_reply
from tests.bot.agent.telling import BOB, DAY, EVE, GROUP, pressed, say, talk


@pytest.fixture
async def host(tmp_path):
    bounds = HostLimits(timezone="Europe/Berlin")
    model = ScriptedModel(lambda _: text_reply("ok"))
    async with session_host(tmp_path, model, bounds=bounds) as host:
        yield host


async def memory(host: Host, form: str = "") -> str:
    return await say(host, f"/memory {form}".strip())


async def lines(host: Host) -> list[str]:
    told = await memory(host)
    found = re.findall(r"^\*\*(w?\d+\.)\*\* (.*?)(?: \([^()]*\))?$", told, re.MULTILINE)
    return [f"{number} {text}" for number, text in found]


@pytest.mark.slow
async def test_no_arguments_make_a_form_fail_and_every_answer_fits_every_platform(host):
    forms = (
        *("why", "add", "edit", "undo", "clear", "pending", "accept", "drop", "pause", "resume"),
        *("search", "history", "share", "unshare", "export", "", "nonsense"),
    )
    arguments = (
        *("", "0", "1", "w1", "1 2", "-1", "page 2", "1 page 99", "yes", "yes 1-2", "1 *_`[x](y)"),
        *("\x00", "é\u0301 \u202e", "1 " + "ß" * 3_000, "w" * 5_000, "all", "٣", '"', "('; --"),
    )
    for form in forms:
        await memory(host, "add I like tea")
        for given_to in some(arguments, apart=form):
            told = await memory(host, f"{form} {given_to}")
            assert 0 < len(told.strip()) < 2_000
            assert not re.search("did not work|went wrong", told)


async def test_what_is_replaced_or_edited_says_so_and_its_old_words_stay_in_the_chain(host):
    await talk(
        host,
        ("/memory add I live in Bonn", "Added to memory: **1.** I live in Bonn"),
        ("/memory add I live in Bonn", "I have that already: **1.** I live in Bonn"),
        (
            "/memory edit 1 I live in Graz",
            "Changed: **1.** I live in Bonn\n→ **2.** I live in Graz",
        ),
        ("/memory add My favourite color is blue",),
        ("/memory edit 3 My favourite colour is blue", "→ **4.** My favourite colour is blue"),
        ("/memory edit 3 tea", "no longer valid"),
        ("/memory why 4", "It replaced **3.** My favourite color is blue"),
        ("/memory undo", "restored: **3.** My", "removed: **4.** My"),
    )
    assert await lines(host) == ["2. I live in Graz", "3. My favourite color is blue"]


async def test_undo_goes_back_behind_a_new_session_and_a_clear_until_nothing_is_left(host):
    await talk(host, ("/memory add aleph",), ("/memory add beth",), ("/new now",))
    assert "(2 facts)" in await memory(host, "clear")
    assert await lines(host) == ["1. Aleph", "2. Beth"]
    assert "is cleared" in await memory(host, "clear yes")
    for left in ([], ["1. Aleph", "2. Beth"], ["1. Aleph"], []):
        assert await lines(host) == left
        told = await memory(host, "undo")
    assert "nothing to undo" in told


async def test_of_a_clear_a_copy_stays_whose_place_is_told(host, tmp_path):
    await memory(host, "add I like tea")
    told = await memory(host, "clear yes")
    [copy] = (tmp_path / "exports").iterdir()
    assert str(copy) in told


async def test_an_undo_that_a_kill_cut_short_before_its_answer_takes_back_one_thing(tmp_path):
    done = anyio.Event()

    async def killed_before_the_answer(arguments: str, context: CommandContext) -> CommandReply:
        reply = await MEMORY_COMMAND.run(arguments, context)
        if arguments == "undo":
            done.set()
            await anyio.sleep_forever()
        return reply

    commands = builtin_commands([replace(MEMORY_COMMAND, run=killed_before_the_answer)])
    async with session_host(tmp_path, ScriptedModel(), commands=commands) as host:
        await talk(host, ("/memory add aleph",), ("/memory add beth",))
        asked = await host.channel.send("/memory undo", message_id="undo")
        with anyio.fail_after(30):
            await done.wait()
    async with session_host(tmp_path, ScriptedModel()) as host:
        assert "removed: **2.** Beth" in await host.channel.wait_for_answer(asked)
        assert await lines(host) == ["1. Aleph"]


async def test_a_button_brings_back_the_clear_and_never_something_else(host):
    await talk(host, ("/memory add I like tea",), ("/memory clear yes",))
    [(_, back)] = pressed(host)
    await talk(
        host,
        *(("/memory add I like cake",), (back, "nothing was undone")),
        *(("/memory undo",), (back, "restored: **1.** I like tea")),
    )
    assert await lines(host) == ["1. I like tea"]


async def test_why_tells_evidence_dates_confidence_decision_and_what_took_the_place(host):
    await say(host, "remember: I live in Bonn")
    host.clock.advance(DAY)
    [said] = await host.events("command")
    first, when = await memory(host, "why 1"), "2026-02-10 11:00"
    assert first.splitlines()[:4] == [
        "**1.** I live in Bonn",
        f"Believed since {when}; certain (0.95).",
        "Evidence:",
        f"- Ada, message of {when}, entry #{said.id}: “I live in Bonn”",
    ]
    assert first.endswith("nothing contradicts it, a mistake would affect only this memory.")
    await memory(host, "edit 1 I live in Graz")
    await talk(
        host,
        ("/memory why 1", f"Valid from {when} to 2026-02-11 11:00", "replaced by **2.** I live in"),
        ("/memory why 2", f"It replaced **1.** I live in Bonn (from {when} to"),
        ("/memory clear yes",),
        ("/memory why 2", "(you asked): all memory was cleared."),
    )


async def test_the_evidence_of_a_group_names_the_member_and_links_to_the_message(host):
    telegram = host.add_channel("telegram")
    member = {"chat": "-1001234567890", "private": False, "role": "member"}
    for number, (text, sender, wanted) in enumerate(
        (
            ("/memory add I bring the cake", BOB, "**1.** Bob (8): I bring the cake"),
            ("/memory why 1", BOB, "(https://t.me/c/1234567890/77), entry #"),
            ("/memory why 1", EVE, "(Bob (8) asked)"),
        ),
        start=77,
    ):
        sent = await telegram.send(text, message_id=str(number), sender=sender, **member)
        assert wanted in await telegram.wait_for_answer(sent)


async def test_a_search_finds_facts_notes_and_words_of_this_chat_in_pages(host):
    await say(host, "The secret of Bonn is xyzzy", chat="2")
    for number in range(15):
        await say(host, f"Bonn, day {number}, was {'x' * 300}")
    await memory(host, "add I live in Bonn")
    host.clock.advance(DAY)
    await memory(host, "edit 1 I live in Graz")
    pages = [await memory(host, "search bonn")]
    [(_, more)] = pressed(host)
    assert more == "/memory search bonn page 2"
    pages += [await say(host, more)]
    assert "**1.** I live in Bonn (from 2026-02-10 11:00 to 2026-02-11 11:00)" in pages[0]
    assert "- 2026-02-10 11:00, Ada [#" in pages[1]
    assert "Page 2 of" in pages[1]
    assert not re.search("Graz|xyzzy", "".join(pages))
    await memory(host, f"search Bonn {'ü' * 60}")
    assert all(len(command.encode()) <= 64 for _, command in pressed(host))


async def test_while_memory_is_paused_only_what_is_added_is_kept(host):
    await talk(
        host,
        *(("/memory pause", "paused"), ("remember: I like tea",)),
        *(("/memory", "Paused: I learn nothing"), ("/memory add I like cake",)),
        *(("/memory resume", "Memory is on again"),),
    )
    assert await lines(host) == ["1. I like tea", "2. I like cake"]


OWNERS = "In a group only an owner may do this"
MEMBER = {**GROUP, "sender": BOB, "role": "member"}
OWNER = {**GROUP, "sender": EVE}
HERS = {"chat": "e", "sender": EVE}
HIS = {"chat": "b", "sender": BOB, "role": "member"}


async def test_in_a_group_anybody_looks_and_adds_and_what_concerns_everybody_is_the_owners(host):
    await say(host, "/memory add Always say moo", **MEMBER)
    for form in ("", "why 1", "search tea", "history", "pending", "add I like cake"):
        assert "only an owner" not in (await say(host, f"/memory {form}", **MEMBER)).lower()
    for form in (
        *("accept 1", "drop all", "pause", "resume", "undo", "share 1", "unshare w1", "export"),
        *("CLEAR", "clear\nyes", "  pause  "),
    ):
        await talk(host, (f"/memory {form}", OWNERS), **MEMBER)
        assert OWNERS not in await say(host, f"/memory {form}", **OWNER)


async def test_in_a_group_a_member_edits_only_what_they_alone_said(host):
    await talk(host, ("/memory add I like tea",), **OWNER)
    await talk(host, ("/memory edit 1 I like rum", "only an owner may change"), **MEMBER)
    await talk(host, ("/memory add I like milk",), **MEMBER)
    await talk(host, ("/memory edit 2 I like rum", "→ **3.** Bob (8): I like rum"), **MEMBER)
    await talk(host, ("/memory edit 3 I like ale", "→ **4.** Bob (8): I like ale"), **OWNER)
    # Now it rests on the owner's words.
    await talk(host, ("/memory edit 4 I like gin", "only an owner may change"), **MEMBER)


async def test_what_is_shared_is_an_owners_to_change_seen_by_all_and_its_words_by_owners_alone(
    host,
):
    await talk(
        host,
        ("/memory add Our office is in Bonn",),
        ("/memory share 1", "Shared: **w1.** Our office is in Bonn\nEveryone who uses this bot"),
        ("/memory why w1", "- Eve, message of"),
        **HERS,
    )
    await say(host, "/memory add I like tea", **HIS)
    for form in ("share 1", "unshare w1", "edit w1 It is in Graz"):
        await talk(host, (f"/memory {form}", "Only an owner may do this"), **HIS)
    for who in (OWNER, HIS):
        await talk(host, ("/memory", "**w1.** Our office is in Bonn (today)"), **who)
        why = await say(host, "/memory why w1", **who)
        assert "Our office is in Bonn" in why
        assert "Eve" not in why
        assert "“" not in why
    await talk(
        host,
        ("/memory edit w1 Our office is in Graz", "→ **w2.** Our office is in Graz"),
        ("/memory unshare w2", "No longer shared: **w2.**"),
        ("/memory", "**1.** Our office is in Bonn"),
        **HERS,
    )
    assert "Graz" not in await say(host, "/memory", **OWNER)
