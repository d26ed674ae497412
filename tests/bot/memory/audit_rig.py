"""Tapes on which facts are planted that no gate would let in, for an audit to find."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from bot.core.clock import format_time
from bot.memory.audit.audit_reader import AuditReader
from bot.memory.audit.rules import audit_scope
from bot.memory.records.evidence import cite
from bot.memory.records.fact import Evidence, Fact
from bot.memory.records.fact_fold import FACTS_EVENT, FactFold
from bot.tape.entries import event, message
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.testing.manual_clock import ManualClock

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
