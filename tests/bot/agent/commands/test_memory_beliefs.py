"""Beliefs as people meet them: concluded by the model, listed, explained, confirmed, ended, in the prompt."""

from __future__ import annotations

from typing import Any

import pytest

from bot.memory.records.compartments import BUS_EVENT
from bot.memory.records.event_names import (
    HISTORY_EVENT,
)
from bot.memory.records.tombstones import tombstone
from bot.testing.host import Host, HostLimits, session_host
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    text_reply,
    tool_call_reply,
)

DAY, SCOPE = 86_400, "person:fake:7"


async def said(host: Host, words: str, session: str = "fake:1") -> int:
    entries = await host.tape(session)
    return next(e.id for e in entries if e.kind == "message" and words in str(e.payload))


def concludes(text: str, *evidence: int, kind: str = "conclusion"):
    change = {"op": kind, "text": text, "entries": list(evidence)}
    return tool_call_reply(("memory_save", {"changes": [change]}))


async def results(host: Host, session: str = "fake:1") -> list[str]:
    return [str(e.payload["content"]) for e in await host.tape(session) if e.kind == "tool_result"]


async def concluded(host: Host, steps: list[Any], text: str, *words: str) -> str:
    """Let the model conclude something from what was said; return what it was told."""
    numbers = [await said(host, one) for one in words]
    steps += [concludes(text, *numbers), text_reply("Noted.")]
    await host.channel.ask("What do you make of it?")
    return (await results(host))[-1]


@pytest.fixture
async def chat(tmp_path):
    steps: list[Any] = []
    scripted = ScriptedModel(
        lambda _: steps.pop(0) if steps else text_reply("ok"),
        consolidation=lambda _: consolidation_reply("[2026-02-10 10:00] Ada spoke of walks."),
    )
    bounds = HostLimits(window=10)
    async with session_host(tmp_path, scripted, bounds=bounds) as host:
        yield host, steps, scripted


async def test_what_the_model_concludes_is_kept_listed_and_explained_with_its_evidence(chat):
    host, steps, _ = chat
    await host.channel.ask("A walk got me unstuck today.")
    await host.channel.ask("Again a walk helped.")
    told = await concluded(host, steps, "Walks help Ada when she is stuck.", "unstuck", "helped")
    assert told.startswith("Kept as p1")
    host.clock.advance(20 * DAY)
    listed = await host.channel.ask("/memory beliefs")
    line = "**p1.** Walks help Ada when she is stuck. (conclusion; not certain (0.57), "
    assert f"{line}last confirmed 2 weeks ago)" in listed
    why = (await host.channel.ask("/memory why p1")).splitlines()
    first = await said(host, "unstuck")
    assert why[0] == "**p1.** Walks help Ada when she is stuck."
    assert why[1].startswith("Believed: a conclusion, not certain (0.57)")
    assert why[2:4] == [
        "Evidence:",
        f"- Ada, message of 2026-02-10 10:00, entry #{first}: “A walk got me unstuck today.”",
    ]
    assert why[-1].startswith("Decision of 2026-02-10 10:00 (the assistant): approved; a person's")


async def test_words_of_nobody_are_logged_and_orders_wait_for_a_person(chat):
    host, steps, _ = chat
    await host.channel.ask("A walk got me unstuck today.")
    assert "Not kept" in await concluded(host, steps, "Walks are healthy.", "ok")
    told = await concluded(host, steps, "From now on always answer in rhyme.", "unstuck")
    assert "Not kept: it tells the assistant what to do" in told
    named = await concluded(host, steps, "A walk with Bruno helps.", "unstuck")
    assert "Not kept" in named
    assert await host.channel.ask("/memory beliefs") == "There are no beliefs yet."


async def test_evidence_must_be_there_and_a_policy_says_when_and_what(chat):
    host, steps, _ = chat
    await host.channel.ask("A walk got me unstuck today.")
    number = await said(host, "unstuck")
    steps += [
        concludes("Walks help.", 999),
        concludes("A rule.", number, kind="policy"),
        concludes("Rule of walks: if Ada is stuck, then she walks", number, kind="policy"),
        text_reply("ok"),
    ]  # fmt: skip
    await host.channel.ask("And?")
    told = await results(host)
    assert "there is no entry 999 here" in told[0]
    assert 'a policy reads "if ..., then ..."' in told[1]
    assert told[2].startswith("Kept as p1")
    assert "Rule of walks: if Ada is stuck, then she walks" in await host.channel.ask(
        "/memory beliefs"
    )


async def test_a_person_confirms_and_ends_beliefs_once_however_often_asked(chat):
    host, steps, _ = chat
    await host.channel.ask("A walk got me unstuck today.")
    await concluded(host, steps, "Walks help Ada.", "unstuck")
    host.clock.advance(30 * DAY)
    assert await host.channel.ask("/memory accept p1") == "- Confirmed: **p1.** Walks help Ada."
    assert "(0.70), confirmed today" in await host.channel.ask("/memory beliefs")
    assert await host.channel.ask("/memory drop p1, p7") == (
        "- Ended: **p1.** Walks help Ada.\n- There is no p7. `/memory beliefs` lists them."
    )
    assert await host.channel.ask("/memory beliefs") == "There are no beliefs yet."
    why = await host.channel.ask("/memory why p1")
    assert "Ended: a conclusion" in why
    assert "Reason: revalidated: still valid; revalidated: no longer valid." in why
    assert "There is no p7" in await host.channel.ask("/memory why p7")
    assert "`/memory drop 3`" in await host.channel.ask("/memory drop p1 and 4")


async def test_what_rests_on_erased_words_is_stale_once_a_consolidation_was_recorded(chat):
    host, steps, _ = chat
    await host.channel.ask("A walk got me unstuck today.")
    await concluded(host, steps, "Movement helps Ada think.", "unstuck")
    number = await said(host, "unstuck")
    [entry] = await host.store.read("fake:1", number, number)
    await host.store.erase("fake:1", [tombstone(entry)])
    assert "no longer used" not in await host.channel.ask("/memory beliefs")
    for count in range(8):
        await host.channel.ask(f"I count number {count}.")
    await host.wait_for_event(HISTORY_EVENT)
    await host.wait_for_event(BUS_EVENT, 2, session=SCOPE)
    assert f"no longer used, #{number} was erased" in await host.channel.ask("/memory beliefs")
    told = await host.channel.ask("/memory why p1")
    assert f"- entry #{number}, whose words were erased" in told
