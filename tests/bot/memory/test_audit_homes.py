"""An audit of a whole home finds nothing in a memory that was used as people do, and prints what it finds elsewhere."""

from __future__ import annotations

import json
from dataclasses import replace

import anyio.to_thread
import pytest
from audit_rig import CHAT, SCOPE, Planted

from bot.bus.messages import Sender
from bot.cli.main import main
from bot.cli.memory_audit import audit_memory
from bot.core.clock import format_time
from bot.memory.audit.audit_reader import AuditReader
from bot.memory.audit.rules import audit_scope
from bot.memory.records.fact_fold import FACTS_EVENT
from bot.memory.session.linking.scope_registry import WORKSPACE_SCOPE
from bot.memory.session.state.zone_snapshot import (
    MemorySnapshot,
    zone_entries,
)
from bot.runtime.settings import load_settings
from bot.tape.entries import message
from bot.tape.stores.file import FileTapeStore
from bot.testing.host import HostLimits, session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    fact_operation,
    text_reply,
    tool_call_reply,
)


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
