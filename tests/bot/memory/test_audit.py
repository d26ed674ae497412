"""An audit finds each thing that is wrong with memory, and nothing in a memory that is in order."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import anyio.to_thread
import pytest

from bot.bus.messages import Sender
from bot.cli.main import main
from bot.cli.memory_audit import audit_memory
from bot.core.clock import format_time
from bot.memory.audit.audit_reader import AuditReader
from bot.memory.audit.findings import AuditedSession
from bot.memory.audit.rules import audit_scope, audit_session
from bot.memory.records.evidence import cite
from bot.memory.records.fact import Evidence, Fact
from bot.memory.records.fact_fold import FACTS_EVENT, FactFold
from bot.memory.records.tombstones import tombstone
from bot.memory.session.linking.scope_registry import WORKSPACE_SCOPE
from bot.memory.session.state.zone_snapshot import (
    LONG_TERM_EVENT,
    DailyNote,
    MemorySnapshot,
    zone_entries,
)
from bot.runtime.settings import load_settings
from bot.tape.entries import event, message, system, tool_call, tool_result
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.testing.host import HostLimits, session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    fact_operation,
    text_reply,
    tool_call_reply,
)

NOW = datetime(2026, 3, 10, 9, tzinfo=UTC)
SCOPE, CHAT = "person:fake:7", "fake:1"
ADA = {"id": "7", "name": "Ada", "role": "owner"}


class Planted:
    """Tapes on which a test puts facts by hand, as no gate would let them."""

    def __init__(self, scope: str = SCOPE) -> None:
        self.name = scope
        self.store = InMemoryTapeStore(clock=ManualClock(NOW))
        self.facts = FactFold()
        self.next = 1

    async def open(self):
        for name in dict.fromkeys((self.name, CHAT)):
            await self.store.create_tape(name)
        return self

    async def heard(self, text, *, days=-10, **meta):
        """Put a person's message on the chat's tape; return the evidence that cites it."""
        sent = format_time(NOW + timedelta(days=days))
        meta = {"sender": ADA, "private": True, "sent": sent, **meta}
        return await self.on_tape(message("user", text, **meta))

    async def on_tape(self, entry, tape=CHAT) -> Evidence:
        written = await self.store.append(tape, entry)
        return cite(tape, written)

    async def believed(self, text, *evidence: Evidence, **more) -> Fact:
        """Put a fact on the scope's tape as added."""
        first = evidence[0].when if evidence else format_time(NOW)
        fact = Fact(self.next, text, evidence=evidence, valid_from=first)
        fact = replace(fact, **{"changed": format_time(NOW - timedelta(days=10)), **more})
        await self.record({"op": "add", "fact": fact})
        return fact

    async def said(self, text, words=None, *, days=-10, **more) -> Fact:
        """Put a message on the chat's tape, and a fact that rests on it."""
        return await self.believed(text, await self.heard(words or text, days=days), **more)

    async def record(self, *operations, author="person", **more):
        """Put a batch on the scope's tape."""
        entry = await self.store.version(self.name) + 1
        ops = []
        for one in operations:
            made = {"verdict": "approved", "text": "", "reason": "approved", "signals": {}, **one}
            for place in {"fact", "closed"} & made.keys():
                fact = replace(made[place], batch=entry)
                fact = fact if fact.admitted else replace(fact, admitted=entry)
                self.next = max(self.next, fact.id + 1)
                made[place] = fact.as_json()
            ops.append(made)
        data = {
            "key": f"k{entry}",
            "author": author,
            "previous": self.facts.last_entry_id,
            "ops": ops,
        }
        written = await self.store.append(self.name, event(FACTS_EVENT, data | more))
        self.facts.apply(written)

    async def found(self):
        scope = await AuditReader(self.store, ManualClock(NOW)).read_scope(self.name)
        return audit_scope(scope, NOW)

    async def kinds(self):
        return [(one.kind, one.facts) for one in await self.found()]


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


# Whole homes.


def _answer(request):
    asked = "note that I was at the dentist" in str(request.messages[1:])
    if asked and not any(one.get("tool_calls") for one in request.messages[1:]):
        return tool_call_reply(("memory_daily", {"content": "Ada was at the dentist"}))
    return text_reply("fine")


class Home:
    """A home folder with a running bot, and audits beside it."""

    def __init__(self, folder, capsys):
        self.folder = folder
        self.capsys = capsys
        self.clock = ManualClock()
        learned = fact_operation(
            "The user works at Statkraft.", "I work at Statkraft in Oslo now.", 5
        )
        self.model = ScriptedModel(
            _answer,
            consolidation=lambda _: consolidation_reply("[2026-02-10] Ada told of work.", learned),
        )

    def host(self, **bounds):
        return session_host(self.folder, self.model, clock=self.clock, bounds=HostLimits(**bounds))

    async def audit(self, session=None):
        """Return the exit code and what was printed, as JSON."""
        settings = load_settings(home=self.folder)

        def run():
            return audit_memory(settings, session, as_json=True, clock=self.clock)

        code = await anyio.to_thread.run_sync(run)
        return code, json.loads(self.capsys.readouterr().out)


@pytest.fixture
def home(tmp_path, capsys):
    return Home(tmp_path, capsys)


async def converse(host, home):
    """Use memory in all the ways that people have."""
    bob = Sender("9", "Bob")
    lines = (
        "remember that I live in Rome",
        "remember that my cat is called Miso",
        "/memory add I have 2 kayaks",
        "/memory add Always answer in short sentences",
        "/memory edit 3 I have 3 kayaks",
        "/memory undo",
        "/memory share 2",
        "/memory pause",
        "/memory resume",
        "I work at Statkraft in Oslo now.",
        "note that I was at the dentist",
        "and so on",
        "/new",
        "remember that I own a red bicycle",
    )
    for line in lines:
        home.clock.advance(60)
        await host.channel.ask(line)
    for sender, line in ((bob, "remember that I like tea"), (bob, "/memory add I own a boat")):
        home.clock.advance(60)
        sent = await host.channel.send(line, chat="-5", sender=sender, private=False, role="member")
        await host.channel.wait_for_answer(sent)
    home.clock.advance(60)
    await host.channel.ask("hello again")


async def test_a_memory_that_was_used_as_people_do_is_clean_beside_the_running_bot(home):
    async with home.host() as host:
        await converse(host, home)
        code, report = await home.audit()
        assert report["findings"] == []
        assert code == 0
        assert report["scopes"]["person:fake:7"] >= 4
        assert report["scopes"]["fake:-5"] == 2
        assert report["scopes"][WORKSPACE_SCOPE] == 1
        facts = (await AuditReader(host.store, home.clock).read_scope(SCOPE)).fold.active()
        assert {"The user works at Statkraft.", "I own a red bicycle"} <= {
            one.text for one in facts
        }
        shown, _ = await AuditReader(host.store, home.clock).read_session(CHAT)
        assert [note.content for note in shown.dailies] == ["Ada was at the dentist"]
        assert shown.rendered is not None
        code, report = await home.audit("fake:1")
        assert (code, list(report["scopes"])) == (0, ["person:fake:7"])


async def test_a_prompt_that_shows_other_than_the_facts_is_found_in_that_session(home):
    async with home.host() as host:
        await converse(host, home)
    # While nobody works on it: a worker would notice that somebody else writes to its tape.
    async with home.host() as host:
        home.clock.advance(60)
        zone = MemorySnapshot(1_000, "- The user lives in Paris.")
        await host.store.append_many(CHAT, zone_entries(zone, format_time(home.clock.now())))
        code, report = await home.audit()
    assert code == 1
    kinds = {(one["kind"], one["scope"]) for one in report["findings"]}
    assert kinds == {("bookkeeping", CHAT)}
    assert "send a message to this chat" in report["findings"][0]["do"]


async def test_another_chat_of_the_same_person_may_lag_until_it_is_used_again(home):
    async with home.host() as host:
        await host.channel.ask("remember that I live in Rome", chat="1")
        home.clock.advance(60)
        await host.channel.ask("remember that I like tea", chat="2")
        code, report = await home.audit()
    assert (code, report["findings"]) == (0, [])


async def test_findings_are_printed_by_scope_and_kind_and_end_with_code_1(tmp_path, capsys):
    store = FileTapeStore(tmp_path / "tapes", sync=False)
    planted = Planted()
    planted.store = store
    await planted.open()
    fact = await planted.believed("The user has a cat\x1b[31m named Miso.")
    [record] = [entry for entry in await store.read(SCOPE) if entry.name == FACTS_EVENT]
    today = record.meta["ts"][:10]
    await planted.record({"op": "restate", "fact": replace(fact, changed=record.meta["ts"])})
    await store.close()

    def run(*arguments):
        code = main(["memory", "audit", *arguments])
        return code, capsys.readouterr()

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAPEBOT_HOME", str(tmp_path))
        code, shown = await anyio.to_thread.run_sync(run)
        assert code == 1
        assert shown.out.splitlines() == [
            SCOPE,
            "  unsupported",
            f"    1: it has no evidence (a person asked for it on {today}): "
            '"The user has a cat[31m named Miso."',
            "      → /memory edit 1 … in your own words, or /memory forget 1",
            "",
            "scopes: 2, facts: 1; findings: 1",
        ]
        code, shown = await anyio.to_thread.run_sync(run, "--json", SCOPE)
        assert (code, json.loads(shown.out)["scopes"]) == (1, {SCOPE: 1})
        code, shown = await anyio.to_thread.run_sync(run, CHAT)
        assert (code, shown.out) == (0, "scopes: 1, facts: 0; no findings\n")
        code, shown = await anyio.to_thread.run_sync(run, "fake:none")
        assert (code, shown.out) == (2, "")
        assert "no tape fake:none" in shown.err


async def test_evidence_is_read_by_id_and_a_long_tape_costs_no_whole_read(home):
    async with home.host() as host:
        await host.channel.ask("remember that I live in Rome")
        for first in range(0, 20_000, 2_000):
            entries = [message("assistant", f"entry {first + n}") for n in range(2_000)]
            await host.store.append_many(CHAT, entries)
        store = Counting(host.store)
        scope = await AuditReader(store, home.clock).read_scope(SCOPE)
        assert [fact.text for fact in scope.fold.active()] == ["I live in Rome"]
        assert audit_scope(scope, home.clock.now()) == []
        assert store.read_entries < 100


class Counting:
    """A store that counts the entries that are read of it."""

    def __init__(self, store):
        self._store = store
        self.read_entries = 0

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def read(self, *range_):
        found = await self._store.read(*range_)
        self.read_entries += len(found)
        return found
