"""An audit finds each thing that is wrong with a memory, and nothing in one that was used as people do."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import anyio.to_thread
import pytest

from bot.bus.messages import Sender
from bot.cli.memory_audit import audit_memory
from bot.core.clock import format_time
from bot.memory.records.evidence import cite
from bot.memory.records.fact import Evidence, Fact
from bot.memory.records.fact_fold import FACTS_EVENT, FactFold
from bot.memory.records.tombstones import tombstone
from bot.runtime.settings import load_settings
from bot.tape.entries import event, message, tool_result
from bot.tape.stores.file import FileTapeStore
from bot.testing.host import HostLimits, session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    fact_change,
    text_reply,
    tool_call_reply,
)

NOW = datetime(2026, 3, 10, 9, tzinfo=UTC)
SCOPE, CHAT = "person:fake:7", "fake:1"
OWNER = {"id": "7", "name": "Ada", "role": "owner"}


class Home:
    """A home folder on whose tapes facts are put by hand, as no gate would let them."""

    def __init__(self, folder, capsys):
        self.folder, self.capsys = folder, capsys
        self.store = FileTapeStore(folder / "tapes", sync=False, clock=ManualClock(NOW))
        self.facts = FactFold()

    async def on_tape(self, entry) -> Evidence:
        await self.store.create_tape(CHAT)
        return cite(CHAT, await self.store.append(CHAT, entry))

    async def heard(self, text, *, days=-10, **meta):
        sent = format_time(NOW + timedelta(days=days))
        meta = {"sender": OWNER, "private": True, "sent": sent, **meta}
        return await self.on_tape(message("user", text, **meta))

    async def believed(self, text, *evidence: Evidence, **more) -> Fact:
        when = evidence[0].when if evidence else format_time(NOW)
        fact = Fact(self.facts.next_id, text, evidence=evidence, valid_from=when)
        fact = replace(fact, **{"changed": format_time(NOW - timedelta(days=10)), **more})
        await self.record({"op": "add", "fact": fact})
        return fact

    async def said(self, text, words=None, *, days=-10, **more) -> Fact:
        return await self.believed(text, await self.heard(words or text, days=days), **more)

    async def record(self, *operations, **more):
        await self.store.create_tape(SCOPE)
        entry = await self.store.version(SCOPE) + 1
        ops = []
        for one in operations:
            fact = replace(one["fact"], batch=entry, admitted=one["fact"].admitted or entry)
            told = {"verdict": "approved", "text": "", "reason": "approved", "signals": {}}
            ops.append(told | one | {"fact": fact.as_json()})
        data = {"key": f"k{entry}", "author": "person"}
        written = await self.store.append(SCOPE, event(FACTS_EVENT, data | {"ops": ops} | more))
        self.facts.apply(written)

    async def audit(self, session=None, *, as_json=True, clock=None):
        settings = load_settings(home=self.folder, timezone="UTC")

        def run():
            return audit_memory(settings, session, as_json=as_json, clock=clock or ManualClock(NOW))

        code = await anyio.to_thread.run_sync(run)
        printed = self.capsys.readouterr().out
        return code, json.loads(printed) if as_json else printed


@pytest.fixture
async def home(tmp_path, capsys):
    made = Home(tmp_path, capsys)
    yield made
    await made.store.close()


async def _missing(home):
    gone = replace(await home.heard("I live in Rome."), entry=999)
    await home.believed("The user lives in Rome.", gone)


async def _altered(home):
    evidence = replace(await home.heard("I have 2 cats."), quote="I have 3 cats.")
    await home.believed("The user has 3 cats.", evidence)


async def _erased(home):
    evidence = await home.heard("I live in Rome.")
    [entry] = await home.store.read(CHAT, evidence.entry, evidence.entry)
    await home.store.erase(CHAT, [tombstone(entry)])
    await home.believed("The user lives in Rome.", evidence)


async def _foreign(home):
    evidence = await home.on_tape(tool_result("c", "web_fetch", "The user lives in Rome."))
    await home.believed("The user lives in Rome.", evidence, origin="tool")


async def _echo(home):
    evidence = await home.on_tape(tool_result("c", "memory_recall", "- The user lives in Rome."))
    await home.believed("The user lives in Rome.", evidence, origin="assistant")


async def _circle(home):
    await home.said("I like tea", supersedes=2)
    await home.said("I own a kayak", supersedes=1, status="superseded")


async def _again_and_again(home):
    for _ in range(3):
        fact = await home.said("The user lives in Rome.", "I live in Rome.")
        await home.record({"op": "retire", "fact": replace(fact, status="retired")})


def _saying(text, words=None, **more):
    return lambda home: home.said(text, words, **more)


@pytest.mark.parametrize(
    ("plant", "kind", "facts", "why"),
    [
        (_saying("I play the piano.", days=-400), "stale", [1], "since 2025-02-03"),
        (_missing, "unsupported", [1], ""),
        (_erased, "unsupported", [1], "was erased"),
        (_altered, "unsupported", [1], "its quote is not in its evidence"),
        (_foreign, "origin", [1], ""),
        (_saying("My password is hunter2xyz."), "secrets", [1], ""),
        (_echo, "loops", [1], ""),
        (_circle, "loops", [1, 2], ""),
        (_again_and_again, "loops", [1, 2, 3], "added and ended 3 times"),
        (_saying("I own a kayak", status="pending",
                 changed=format_time(NOW - timedelta(days=31))), "bookkeeping", [1], ""),
    ],
)  # fmt: skip
async def test_what_is_wrong_is_found_with_its_reason_and_no_secret(home, plant, kind, facts, why):
    await plant(home)
    code, report = await home.audit()
    assert code == 1
    [found] = [one for one in report["findings"] if one["kind"] == kind]
    assert (found["facts"], found["scope"]) == (facts, SCOPE)
    assert why in found["why"]
    assert "hunter2xyz" not in json.dumps(report)


async def test_what_is_in_order_is_no_finding(home):
    await home.said("The user lives in Rome.", "I live in Rome.")
    await home.said("The user goes running on Mondays.", "I go running on Mondays.", days=-300)
    await home.said("The user has an exam on 2026-03-12.", "My exam is on 2026-03-12.")
    await home.said("Always answer in German.")
    assert await home.audit(as_json=False) == (0, "scopes: 2, facts: 4; no findings\n")


async def test_findings_are_printed_by_scope_and_kind_with_a_remedy(home):
    await home.believed("The user has a cat\x1b[31m named Miso.")
    code, printed = await home.audit(SCOPE, as_json=False)
    assert code == 1
    assert printed.splitlines()[:2] == [SCOPE, "  unsupported"]
    assert "\x1b" not in printed
    assert "→ /memory edit 1 … in your own words, or /memory forget 1" in printed
    assert await home.audit("fake:none", as_json=False) == (2, "")


def _answer(request):
    asked = "note that I was at the dentist" in str(request.messages[1:])
    if asked and not any(one.get("tool_calls") for one in request.messages[1:]):
        return tool_call_reply(("memory_daily", {"content": "Ada was at the dentist"}))
    return text_reply("fine")


@pytest.mark.slow
async def test_a_memory_that_was_used_as_people_do_is_clean_beside_the_running_bot(home):
    learned = fact_change("The user works at Statkraft.", "I work at Statkraft in Oslo now.")
    told = consolidation_reply("[2026-02-10] Ada told of work.", learned)
    model, clock = ScriptedModel(_answer, consolidation=lambda _: told), ManualClock()
    await home.store.close()
    async with session_host(home.folder, model, clock=clock, bounds=HostLimits()) as host:
        for line in (
            "remember: I live in Rome", "remember: my cat is called Miso",
            "/memory add I have 2 kayaks", "/memory edit 3 I have 3 kayaks", "/memory undo",
            "/memory share 2", "/memory pause", "/memory resume", "I work at Statkraft in Oslo now.",
            "note that I was at the dentist", "/new", "remember: I own a red bicycle",
            "/reference set deadline Friday", "/problem new Trip", "To Rome",
            "/problem note ask when?", "/problem switch general", "hello again",
        ):  # fmt: skip
            clock.advance(60)
            await host.channel.ask(line)
        sender = {"chat": "-5", "sender": Sender("9", "Bob"), "private": False, "role": "member"}
        sent = await host.channel.send("remember: I like tea", **sender)
        await host.channel.wait_for_answer(sent)
        clock.advance(60)
        await host.channel.ask("and so on")
        code, report = await home.audit(clock=clock)
        assert (code, report["findings"]) == (0, [])
        assert report["scopes"][SCOPE] >= 4
        assert report["scopes"]["fake:-5"] == 1
