"""An audit finds each thing that is wrong with the facts of a memory, and nothing where all is in order."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from audit_rig import CHAT, NOW, SCOPE, Planted

from bot.core.clock import format_time
from bot.memory.audit.findings import AuditedSession
from bot.memory.audit.rules import audit_session
from bot.memory.records.tombstones import tombstone
from bot.memory.session.linking.scope_registry import WORKSPACE_SCOPE
from bot.memory.session.state.zone_snapshot import (
    LONG_TERM_EVENT,
    DailyNote,
)
from bot.tape.entries import event, message, system, tool_call, tool_result


@pytest.fixture
async def planted():
    return await Planted().open()


async def test_a_memory_in_order_has_no_findings(planted):
    await planted.said("The user lives in Rome.", "I live in Rome.")
    await planted.said("The user has a cat named Miso.", "I have a cat named Miso!")
    await planted.said("The user was born on 1990-05-03.", "I was born on 1990-05-03.")
    await planted.said("The user goes running on Mondays.", "I go running on Mondays.", days=-300)
    await planted.said("The user has an exam on 2026-03-12.", "My exam is on 2026-03-12.")
    await planted.said("I swim in the lake three days a week", days=-200)
    assert await planted.found() == []


async def test_facts_that_say_the_same_beside_each_other_are_found(planted):
    await planted.said("The user has a cat named Miso.", "I have a cat named Miso.")
    await planted.said("The user lives in Rome.", "I live in Rome.")
    await planted.said("The user has a cat, named Miso", "I have a cat named Miso.")
    [found] = await planted.found()
    assert (found.kind, found.facts, found.scope) == ("duplicates", (1, 3), SCOPE)
    assert found.do == "/memory forget 3"


async def test_facts_that_cannot_both_hold_are_found_and_the_older_is_to_go(planted):
    await planted.said("The user lives in Oslo.", "I live in Oslo.", days=-5)
    await planted.said("The user lives in Rome.", "I live in Rome.", days=-20)
    [found] = await planted.found()
    assert (found.kind, found.facts) == ("contradictions", (1, 2))
    assert found.do == "/memory forget 2, or /memory edit 2 …"


async def test_what_nobody_confirmed_for_a_year_is_stale_and_said_again_is_not(planted):
    await planted.said("The user plays the piano.", "I play the piano.", days=-400)
    old, new = await planted.heard("I love chess.", days=-400), await planted.heard("I love chess.")
    await planted.believed("The user loves chess.", old, new)
    [found] = await planted.found()
    assert (found.kind, found.facts) == ("stale", (1,))
    assert "nobody has said it since 2025-02-03" in found.why


@pytest.mark.parametrize(
    "text",
    [
        "The user has an appointment on 2026-03-05.",
        "Der Nutzer hat am 5. März 2026 einen Termin.",
        "The user has an exam tomorrow (said on 2026-03-01).",
        "The user has an exam tomorrow",
        "The user travels to Rome next week.",
        "L'utilisateur a un examen demain.",
        "用户明天有考试",
    ],
)
async def test_what_was_ahead_when_it_was_said_and_is_past_is_stale(planted, text):
    await planted.believed(text, await planted.heard(text, days=-20), confidence=0.9)
    assert ("stale", (1,)) in await planted.kinds()


@pytest.mark.parametrize(
    "text",
    [
        "The user moved to Rome on 2026-02-18.",
        "The user was in Rome last week.",
        "The user has an exam on 2026-03-10.",
        "The user's birthday is on May 3.",
        "The user has a lease from 2026-01-01 to 2027-01-01.",
        "The user has yoga on Fridays.",
    ],
)
async def test_a_date_that_was_past_already_or_is_still_ahead_is_not_stale(planted, text):
    await planted.believed(text, await planted.heard(text, days=-20))
    assert await planted.found() == []


async def test_evidence_that_does_not_exist_is_found(planted):
    gone = replace(await planted.heard("I live in Rome."), entry=999)
    await planted.believed("The user lives in Rome.", gone)
    nowhere = replace(gone, tape="fake:none", entry=2)
    await planted.believed("The user has a cat named Miso.", nowhere)
    assert [(f.kind, f.facts) for f in await planted.found()] == [
        ("unsupported", (1,)),
        ("unsupported", (2,)),
    ]


async def test_one_piece_of_evidence_that_holds_is_enough(planted):
    gone = replace(await planted.heard("I live in Rome."), entry=999)
    await planted.believed("The user lives in Rome.", gone, await planted.heard("I live in Rome!"))
    assert await planted.found() == []


async def test_evidence_that_was_erased_is_found(planted):
    evidence = await planted.heard("I live in Rome.")
    [entry] = await planted.store.read(CHAT, evidence.entry, evidence.entry)
    await planted.store.erase(CHAT, [tombstone(entry)])
    await planted.believed("The user lives in Rome.", evidence)
    [found] = await planted.found()
    assert (found.kind, found.facts) == ("unsupported", (1,))
    assert "was erased" in found.why


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        ("The user lives in Rome.", "I live in Oslo."),
        ("The user has 3 cats.", "I have 2 cats."),
        ("The user likes tea.", "I do not like tea."),
        ("The user lives in Rome.", "Should I live in Rome?"),
    ],
)
async def test_evidence_that_does_not_carry_the_claim_is_found(planted, fact, words):
    await planted.said(fact, words)
    assert await planted.kinds() == [("unsupported", (1,))]


async def test_a_quote_that_is_not_in_its_message_is_found(planted):
    evidence = await planted.heard("I live in Rome.")
    await planted.believed("The user lives in Rome.", replace(evidence, quote="I moved to Rome"))
    [found] = await planted.found()
    assert (found.kind, found.facts) == ("unsupported", (1,))
    assert "its quote is not in" in found.why


async def test_a_fact_without_evidence_is_found_with_who_let_it_in(planted):
    fact = await planted.believed("The user lives in Rome.")
    await planted.record({"op": "accept", "fact": replace(fact, admitted=0)}, asker="42")
    [found] = await planted.found()
    assert (found.kind, found.facts) == ("unsupported", (1,))
    assert "it has no evidence (accepted by 42 on 2026-03-10)" in found.why


async def test_a_fact_of_foreign_origin_is_found_with_who_accepted_it(planted):
    evidence = await planted.heard("look at this", quote="Rome is Ada's home.")
    quoted = replace(evidence, quote="Rome is Ada's home.", origin="quoted")
    fact = await planted.believed("Rome is Ada's home.", quoted, origin="quoted", status="pending")
    accepted = replace(fact, status="active", admitted=0)
    await planted.record({"op": "accept", "fact": accepted}, asker="42")
    [found] = await planted.found()
    assert (found.kind, found.facts) == ("origin", (1,))
    assert "quoted or forwarded text says it, no person (accepted by 42 on 2026-03-10)" in found.why


@pytest.mark.parametrize("status", ["active", "pending"])
async def test_what_looks_like_a_secret_is_found_and_not_repeated(planted, status):
    text = "The user's password is hunter2xyz."
    words = "My password is hunter3abc."
    await planted.said(text, words, status=status, changed=format_time(NOW - timedelta(days=50)))
    found = await planted.found()
    assert ("secrets", (1,)) in [(one.kind, one.facts) for one in found]
    assert "hunter2xyz" not in json.dumps([one.as_json() for one in found])


def test_a_daily_note_that_looks_like_a_secret_is_found_and_not_repeated():
    notes = (DailyNote("2026-03-01", "tea"), DailyNote("2026-03-02", "My password: hunter2xyz"))
    [found] = audit_session(AuditedSession(CHAT, notes))
    assert (found.kind, found.scope, found.facts) == ("secrets", CHAT, ())
    assert "2026-03-02" in found.why
    assert "hunter2xyz" not in found.why + found.do


async def test_orders_count_where_nobody_said_them_who_may(planted):
    orders = "Always answer in German."
    await planted.said(orders)
    assert await planted.found() == []
    group = await Planted("fake:-1").open()
    member = {"id": "9", "name": "Mallory", "role": "member"}
    by_owner = await group.heard(orders, private=False)
    by_member = await group.heard("Never mention the weather.", private=False, sender=member)
    await group.believed(f"Ada (7): {orders}", by_owner)
    await group.believed("Mallory (9): Never mention the weather.", by_member)
    assert await group.kinds() == [("orders", (2,))]
    shared = await Planted(WORKSPACE_SCOPE).open()
    theirs = await shared.heard("Never mention the weather.", sender=member)
    await shared.believed("Never mention the weather.", theirs)
    [found] = await shared.found()
    assert (found.kind, found.do) == ("orders", "/memory unshare w1")


@pytest.mark.parametrize(
    "entry",
    [
        tool_result("c", "memory_recall", "- The user lives in Rome."),
        event(LONG_TERM_EVENT, {"content": "- The user lives in Rome."}),
        event("memory.history", {"content": "The user lives in Rome."}),
        system("<memory>\nThe user lives in Rome.\n</memory>"),
        message("assistant", "You live in Rome, as you told me."),
        tool_call("The user lives in Rome: I look it up.", []),
        event("reply", {"text": "1. The user lives in Rome."}),
    ],
)
async def test_a_fact_that_rests_on_its_own_echo_is_found(planted, entry):
    evidence = await planted.on_tape(entry)
    await planted.believed("The user lives in Rome.", evidence, origin="assistant")
    assert await planted.kinds() == [("loops", (1,))]


async def test_a_tool_result_that_is_no_echo_is_of_foreign_origin(planted):
    evidence = await planted.on_tape(tool_result("c", "web_fetch", "The user lives in Rome."))
    await planted.believed("The user lives in Rome.", evidence, origin="tool")
    assert await planted.kinds() == [("origin", (1,))]


async def test_two_facts_that_rest_on_renderings_of_each_other_are_found_together(planted):
    cats = await planted.on_tape(event(LONG_TERM_EVENT, {"content": "- The user has a cat."}))
    rome = await planted.on_tape(event(LONG_TERM_EVENT, {"content": "- The user lives in Rome."}))
    await planted.believed("The user lives in Rome.", cats)
    await planted.believed("The user has a cat.", rome)
    [found] = await planted.found()
    assert (found.kind, found.facts) == ("loops", (1, 2))
    assert "they are each other's evidence" in found.why


async def test_chains_with_a_missing_link_or_a_circle_are_found(planted):
    await planted.said("The user lives in Rome.", "I live in Rome.", supersedes=77)
    await planted.said("I like tea", supersedes=3)
    await planted.said("I own a kayak", supersedes=2, status="superseded")
    assert await planted.kinds() == [("loops", (1,)), ("loops", (2, 3))]


async def test_what_is_added_and_ended_again_and_again_is_found(planted):
    for times in range(3):
        fact = await planted.said("The user lives in Rome.", "I live in Rome.")
        assert await planted.found() == [], times
        await planted.record({"op": "retire", "fact": replace(fact, status="retired")})
    [found] = await planted.found()
    assert (found.kind, found.facts) == ("loops", (1, 2, 3))
    assert "added and ended 3 times" in found.why


async def test_a_whole_state_that_is_not_what_the_tape_says_is_found(planted):
    await planted.said("The user lives in Rome.", "I live in Rome.")
    state = planted.facts.state()
    await planted.record(state=state)
    assert await planted.found() == []
    state["facts"][0] |= {"text": "The user lives in Rome!"}
    await planted.record(state=state)
    assert await planted.kinds() == [("bookkeeping", (1,))]


async def test_a_tape_whose_beginning_was_reset_is_taken_from_its_whole_state(planted):
    await planted.said("The user lives in Rome.", "I live in Rome.")
    await planted.store.reset(SCOPE)
    await planted.record(state=planted.facts.state())
    assert await planted.found() == []


async def test_a_tape_whose_beginning_was_reset_has_what_is_left(planted):
    await planted.said("The user lives in Rome.", "I live in Rome.")
    await planted.store.reset(SCOPE)
    await planted.said("I like tea")
    assert await planted.found() == []


async def test_what_has_waited_for_a_month_is_found(planted):
    for days in (31, 29):
        text = f"I own {days} kayaks"
        changed = format_time(NOW - timedelta(days=days))
        await planted.said(text, status="pending", changed=changed)
    [found] = await planted.found()
    assert (found.kind, found.facts) == ("bookkeeping", (1,))
    assert found.do == "/memory accept 1, or /memory drop 1"
