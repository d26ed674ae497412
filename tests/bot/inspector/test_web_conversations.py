"""Conversations, and what each works on, knows, plans and costs, are shown as they are and changed by commands alone."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import anyio
import pytest

from bot.bus import Sender
from bot.llm.base import Usage
from bot.llm.spender import Spender
from bot.memory.records.compartment_records import SynthesizedPattern
from bot.memory.records.episodes import episode_id
from bot.memory.records.spending_amounts import EACH, NANO, Limit
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.state.fold_loader import load_fold
from bot.memory.session.state.zone import MemoryZone
from bot.tape.service import TapeService
from bot.tape.store import header_entry

TAPE = "telegram:42"
HOSTILE = "<script>alert(1)</script> & \"more'"
NOTES = (
    "/problem new Taxes",
    "/problem note must keep receipts",
    "/problem note must-not call the office",
    "/problem note ask which year?",
    "/problem note assume the year is 2025",
    "/problem note decide file online because it is faster",
    "/problem note draft letter Dear Sir,",
)


async def all_read(rig):
    """Ask until all conversations were read: a request reads for a bounded time."""
    with anyio.fail_after(60):
        while (await rig.get("/sessions"))["unread"]:
            pass


async def test_a_conversation_is_told_as_it_stands(rig):
    await rig.talk(
        "fake:1",
        ("Where is the sea?", "In the north."),
        "/problem new Boats",
        "/memory add I like tea",
    )
    one = await rig.get("/session", tape="fake:1")
    assert (one["channel"], one["people"], one["turns"]) == ("fake", ["Ada"], 1)
    assert (one["problem"], one["problem_name"]) == ("p1", "Boats")
    assert (one["home"], one["state"]) == ("person:fake:7", "idle")
    assert (one["prompt_tokens"], one["cached_tokens"], one["completion_tokens"]) == (10, 4, 5)
    assert one["cost"] == pytest.approx(0.001)
    assert one["entries"] == await rig.store.version("fake:1")
    assert await rig.get("/memories") == [{"tape": "person:fake:7", "identities": ["fake:7"]}]
    assert (await rig.client.get("/api/v1/session?tape=person:fake:7")).status_code == 404


async def test_conversations_are_in_the_order_of_their_use_and_found_by_name_and_title(rig):
    for number in range(5):
        rig.host.clock.advance(60)
        await rig.talk(f"fake:{number}", ("Hello", "Hi"))
    rig.host.clock.advance(60)
    await rig.talk("telegram:5", ("Hello", "Hi"), sender=Sender("5", "Grace Hopper"))
    rig.host.clock.advance(60)
    await rig.talk("fake:3", ("Again", "Yes"))
    await all_read(rig)
    seen, cursor = [], ""
    while cursor is not None:
        answer = await rig.get("/sessions", limit=2, cursor=cursor)
        seen += [one["tape"] for one in answer["sessions"]]
        cursor = answer["next"]
    assert seen == ["fake:3", "telegram:5", "fake:4", "fake:2", "fake:1", "fake:0"]
    await rig.long_tape(20)
    await all_read(rig)

    async def found(**asked):
        return [one["tape"] for one in (await rig.get("/sessions", **asked))["sessions"]]

    assert await found(words="grace hop") == await found(channel="telegram") == ["telegram:5"]
    assert await found(words="LONG conversation") == ["fake:long"]
    assert await found(words="nobody") == []
    # A title that is erased is shown nowhere afterwards.
    [first, *_] = await rig.store.read("fake:long", 1, 1)
    bare = header_entry("fake:long", None)
    await rig.store.erase("fake:long", [replace(first, payload=bare.payload)])
    assert "A long conversation" not in await rig.page("/sessions")


async def test_a_problem_tells_its_state_and_all_that_is_noted(rig):
    await rig.talk(TAPE, "Hello there.", *NOTES, "/problem new Trip", "/problem done 2")
    found = await rig.get("/problems", tape=TAPE)
    assert [(one["id"], one["state"]) for one in found["problems"]] == [
        ("general", "active"), ("p1", "paused"), ("p2", "completed"),
    ]  # fmt: skip
    taxes = await rig.get("/working-set", tape=TAPE, problem="p1")
    assert taxes["must"] == ["keep receipts"]
    assert taxes["must_not"] == ["call the office"]
    assert taxes["questions"] == ["which year?"]
    assert taxes["decisions"] == [{"text": "file online", "why": "it is faster"}]
    assert taxes["drafts"] == [{"name": "letter", "text": "Dear Sir,"}]
    assert [one["text"] for one in taxes["assumptions"]] == ["the year is 2025"]
    html = await rig.page("/problems", tape=TAPE)
    assert 'data-command="/problem switch general"' not in html
    command = re.search(r'data-session="([^"]+)" data-command="(/problem switch p1)"', html)
    await rig.talk(command[1], command[2])
    assert (await rig.get("/problems", tape=TAPE))["active"] == "p1"


async def test_each_button_takes_away_the_note_that_it_stands_by_and_an_old_page_no_other(rig):
    await rig.talk(TAPE, *NOTES, f"/problem note ask {HOSTILE} {'and more ' * 9}?")
    shown = await rig.page("/problems", tape=TAPE)
    assert "<script>alert" not in shown
    drops = re.findall(r'data-command="(/problem note drop [^"]+)"', shown)
    assert len(drops) == 7
    for one in reversed(drops):
        (answer,) = await rig.talk(TAPE, unescape(one))
        assert answer.startswith("Left for")
    left = await rig.get("/working-set", tape=TAPE, problem="p1")
    assert not any(left[kind] for kind in ("must", "must_not", "questions", "decisions", "drafts"))
    await rig.talk(TAPE, "/problem new Trip", "/problem note ask which hotel?")
    (answer,) = await rig.talk(TAPE, "/problem note drop ask 1 which year?")
    assert "another one by now" in answer


async def test_versions_of_a_value_tell_who_when_what_and_what_it_rests_on(rig):
    await rig.talk(TAPE, "/reference set deadline Friday the 13th", "/reference set deadline Monday",
                   f"/reference set two {HOSTILE}")  # fmt: skip
    html = await rig.page("/reference", tape=TAPE, key="deadline")
    assert "<del>" in html
    assert "<script>alert" not in html
    command = re.search(r'data-session="([^"]+)" data-command="(/reference rollback [^"]+)"', html)
    await rig.talk(command[1], command[2])
    await rig.talk(TAPE, "/reference remove deadline")
    found = await rig.get("/reference/versions", tape=TAPE, key="deadline")
    fourth, third, second, first = found["versions"]
    assert (fourth["state"], fourth["current"]) == ("removed", True)
    assert (third["restores"], third["value"], third["by"]) == (1, "Friday the 13th", "rollback")
    assert (second["rests"]["who"], second["rests"]["quote"]) == ("Ada", "set deadline Monday")
    assert second["reason"] == "approved"
    assert [one["kind"] for one in first["changes"]] == ["added"]
    place = re.fullmatch(r"/timeline\?tape=telegram%3A42&entry=(\d+)", second["rests"]["href"])
    (entry,) = await rig.store.read(TAPE, int(place[1]), int(place[1]))
    assert "Monday" in str(entry.payload)


async def believes(rig, text: str, *evidence: str) -> str:
    """Add a belief past the gate; return its name. Nobody may talk there afterwards."""
    service, clock = TapeService(rig.store, TAPE), rig.host.clock
    fold = await load_fold(service)
    service.observe(fold.apply)
    zone = MemoryZone(service, retention_days=30, fold=fold.zone, clock=clock)
    memory = LongTermMemory(service, fold, zone, ScopeRegistry(rig.store, clock))
    await memory.open()
    now = clock.now()
    made = SynthesizedPattern("", "conclusion", {"text": text}, [*evidence], 0.8, now, now)
    record = {"decision": {"approved": True, "reason": "it is grounded"}, "by": "assistant"}
    record["signals"] = {"source_quality": 1}
    return await memory.bus.semantic.add_pattern(made, record=record)


async def test_why_a_belief_is_held_leads_to_a_persons_words(rig):
    await rig.talk(TAPE, "I walk when I am stuck.")
    (said, *_) = [one.id for one in await rig.host.tape(TAPE) if one.kind == "message"]
    first = await believes(rig, "Walks help Ada.", episode_id(TAPE, said))
    second = await believes(rig, "Ada thinks on foot.", first)
    why = await rig.get("/belief", tape=TAPE, name=second)
    assert why["belief"]["evidence"][0]["kind"] == "belief"
    (end,) = why["chain"]
    assert (end["who"], end["quote"], end["state"]) == ("Ada", "I walk when I am stuck.", "there")
    assert (why["reason"], why["by"]) == ("it is grounded", "assistant")
    rig.host.clock.advance(50 * 86_400)
    beliefs = {one["name"]: one for one in (await rig.get("/beliefs", tape=TAPE))["beliefs"]}
    assert beliefs[first]["confidence"] == pytest.approx(0.8 * 0.99**50)
    html = await rig.page("/reference", tape=TAPE, belief=second)
    assert end["href"].replace("&", "&amp;") in html
    assert f'data-command="/memory drop {second}"' in html


async def test_schedules_are_told_with_what_comes_next(rig):
    await rig.talk("fake:1", "/remind in 20 minutes to call <b>mom</b>",
                   "/schedules task every day at 12:00 look at <i>mail</i>", "/schedules pause 2")  # fmt: skip
    first, second = (await rig.get("/schedules", tape="fake:1"))["schedules"]
    assert first["next"].startswith("2026-02-10T10:20:00")
    assert "every day at 12:00" in second["when"]
    assert (second["paused"], second["next"]) == (True, None)
    page = await rig.page("/schedules", tape="fake:1")
    assert "call &lt;b&gt;mom&lt;/b&gt;" in page
    assert 'data-command="/schedules pause 1"' in page
    assert 'data-command="/schedules resume 2"' in page


async def spend(rig, identity: str, cost: float | None, *, role: str = "turn") -> None:
    """Count one call for somebody."""
    spending = rig.web.agent.spending
    call = await spending.reserve(Spender(identity, "fake:1"), role, "a/b", lambda: (100, 100))
    spending.settle(call, Usage(100, 0, 100, cost, 1))


async def test_a_member_sees_what_was_spent_for_them_and_an_owner_what_for_everybody(rig):
    await rig.web.agent.spending.set_limit(Limit(EACH, "day", "usd", 2 * NANO))
    await spend(rig, "web:telegram.8", 0.5)
    await spend(rig, "web:local", 1.25)
    await spend(rig, "", None, role="embedding")
    found = (await rig.member.get("/api/v1/spending?days=7")).json()
    assert found["today"] == {"calls": 1, "tokens": 200, "cost": 0.5, "assumed": 0}
    [limit] = found["limits"]
    assert limit["used"] == "$0.50 of $2.00 today (for each person), $1.50 left"
    assert (await rig.member.get("/api/v1/spending/all")).status_code == 403
    page = (await rig.member.get("/budget?whose=all")).text
    assert "$0.50 of $2.00 today" in page
    assert "1.25" not in page
    found = await rig.get("/spending/all")
    assert {one["name"] for one in found["people"]} == {"web:telegram.8", "web:local", ""}
    assert {one["name"] for one in found["roles"]} == {"turn", "embedding"}
    page = (await rig.client.get("/budget?whose=all")).text
    for words in ("web:telegram.8", "nobody in particular", "answers", "embeddings", "By model"):
        assert words in page
