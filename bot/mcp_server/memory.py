"""What a program reads of a person's memory.

Rule 1: what only private models may see is never shown, and neither are commands and their replies,
    which may hold codes.
Rule 2: every result is bounded, whatever a session holds.
Rule 3: evidence is quoted from sessions that the program may read, and from no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import aclosing
from datetime import timedelta, tzinfo
from typing import TypeVar

from bot.agent.commands.memory.fact_numbers import parse_fact_number
from bot.agent.commands.memory.fact_text import AUTHOR_NAMES
from bot.core.clock import Clock
from bot.core.errors import MemoryRefused, TapeNotFound
from bot.mcp_server.arguments import (
    MOST_PASSAGES,
    RecalledWords,
    SearchArguments,
    TimelineArguments,
    WhyArguments,
)
from bot.mcp_server.client import MemoryClient
from bot.mcp_server.proposals import PROPOSED
from bot.mcp_server.results import (
    DecisionItem,
    EvidenceItem,
    FactItem,
    FoundPassage,
    RecallResult,
    SearchResult,
    SessionItem,
    TimelineResult,
    ValueItem,
    WhyResult,
)
from bot.mcp_server.sessions import ReadableSessions
from bot.memory.records.boundaries import boundary_summary
from bot.memory.records.event_names import HISTORY_EVENT
from bot.memory.records.evidence import is_local_only
from bot.memory.records.fact import Evidence, Fact
from bot.memory.records.proposals import find_fact_decision
from bot.memory.records.tombstones import is_erased
from bot.memory.records.transcript import (
    format_timestamp,
    format_timestamp_day,
    is_automation,
    message_author,
    sent_time,
)
from bot.memory.session.bus.shared_reference import readable_references
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.memory.session.recall import word_shares
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.tape.entries import TapeEntry
from bot.tape.search import Hit, SearchQuery
from bot.tape.store import TapeStore

_LONGEST_TEXT = 800
_OTHER_FACTS = 24
"""Most facts that are shown though they share no word with what was asked."""

_LONGEST_FACT = 500
_MOST_SESSIONS = 50
_MOST_LOOKED = 2_000
"""Entries that one page of a timeline looks at."""

_FOUND = frozenset({"message", "event"})
_WIDE = 4
"""Hits fetched per passage: some are not shown."""

ItemT = TypeVar("ItemT")


class ClientMemory:
    """Reads memory for programs.

    Attributes:
        sessions: Finds the sessions that a program may read.
    """

    def __init__(
        self, store: TapeStore, scopes: ScopeRegistry, clock: Clock, timezone: tzinfo
    ) -> None:
        self.sessions = ReadableSessions(store, scopes)
        self._store = store
        self._scopes = scopes
        self._clock = clock
        self._timezone = timezone

    async def search(self, client: MemoryClient, asked: SearchArguments) -> SearchResult:
        """Return the passages that fit a search.

        Raises:
            MemoryRefused: There is no such session for this program.
            TapeError: The storage failed.
        """
        tapes = await self.sessions.of(client)
        if asked.session is not None:
            tapes = [self._readable(asked.session, tapes)]
        return SearchResult(
            passages=await self._passages(asked.query, tapes, asked.limit, asked.days)
        )

    async def recall(self, client: MemoryClient, asked: RecalledWords) -> RecallResult:
        """Return facts, reference values and passages about something.

        Raises:
            TapeError: The storage failed.
        """
        home, workspace = await self._scopes_of(client)
        facts = [_item(one, self._timezone) for one in home.active()]
        facts += [_item(one, self._timezone, shared=True) for one in workspace.active()]
        values = [
            ValueItem(key=one.key, value=_cut(str(one.value), _LONGEST_FACT))
            for one in readable_references(home.compartments, workspace.compartments)
        ]
        passages: list[FoundPassage] = []
        if asked.about.strip():
            tapes = await self.sessions.of(client)
            passages = await self._passages(asked.about, tapes, asked.limit)
        about = asked.about.strip()
        fitting = _fitting(about, facts, [one.text for one in facts], asked.limit)
        others = [one for one in reversed(facts) if one not in fitting]
        return RecallResult(
            facts=fitting,
            # What is asked in other words, or in another language, is among these in a young memory.
            other_facts=others[: _OTHER_FACTS * (asked.limit - len(fitting)) // asked.limit],
            values=_fitting(
                about, values, [f"{one.key} {one.value}" for one in values], asked.limit
            ),
            passages=passages,
        )

    async def why(self, client: MemoryClient, asked: WhyArguments) -> WhyResult:
        """Return what a fact rests on, and what was decided about it.

        Raises:
            MemoryRefused: There is no such fact.
            TapeError: The storage failed.
        """
        number = parse_fact_number(asked.fact)
        home, workspace = await self._scopes_of(client)
        scope = workspace if number is not None and number.shared else home
        fact = scope.fold.get(number.id) if number is not None else None
        if number is None or fact is None or not fact.text:
            raise MemoryRefused(f"there is no fact {asked.fact}; recall shows the numbers")
        readable = frozenset(await self.sessions.of(client))
        return WhyResult(
            fact=_item(fact, self._timezone, shared=number.shared),
            status=fact.status,
            until=format_timestamp_day(fact.valid_to, self._timezone) if fact.valid_to else "",
            evidence=[await self._evidence(one, readable) for one in fact.evidence],
            decisions=[
                one
                for entry in dict.fromkeys((fact.admitted, fact.judged, fact.batch))
                if (one := await self._decision(scope, fact, entry)) is not None
            ],
        )

    async def timeline(self, client: MemoryClient, asked: TimelineArguments) -> TimelineResult:
        """Return a page of a session's entries, or the sessions.

        Raises:
            MemoryRefused: There is no such session for this program.
            TapeError: The storage failed.
        """
        tapes = await self.sessions.of(client)
        if asked.session is None:
            return await self._listed(tapes)
        session = self._readable(asked.session, tapes)
        found: list[FoundPassage] = []
        older = looked = 0
        async with aclosing(self._store.read_back(session, asked.before)) as entries:
            async for entry in entries:
                looked += 1
                if len(found) == asked.limit or looked > _MOST_LOOKED:
                    older = entry.id + 1
                    break
                if (passage := self._passage(session, entry)) is not None:
                    found.append(passage)
        return TimelineResult(entries=found[::-1], older=older)

    async def _listed(self, tapes: Iterable[str]) -> TimelineResult:
        found = []
        for tape in tapes:
            try:
                async with aclosing(self._store.read_back(tape)) as entries:
                    newest = await anext(entries, None)
                title = await self._store.get_title(tape)
            except TapeNotFound:
                continue
            stamp = str(newest.meta.get("ts") or "") if newest is not None else ""
            found.append((stamp, tape, title or ""))
        found.sort(reverse=True)
        return TimelineResult(
            sessions=[
                SessionItem(
                    session=tape,
                    title=_cut(title, 100),
                    last=format_timestamp(stamp, self._timezone),
                )
                for stamp, tape, title in found[:_MOST_SESSIONS]
            ]
        )

    async def _scopes_of(self, client: MemoryClient) -> tuple[ScopeMemory, ScopeMemory]:
        workspace = self._scopes.workspace()
        await workspace.open()
        return await self.sessions.home(client), workspace

    def _readable(self, session: str, tapes: Sequence[str]) -> str:
        if session not in tapes:
            raise MemoryRefused(
                f"there is no session {session[:80]!r} that this program may read; "
                "timeline without a session lists them"
            )
        return session

    async def _passages(
        self, query: str, tapes: Sequence[str], limit: int, days: int | None = None
    ) -> list[FoundPassage]:
        if not tapes:
            return []
        since = None if days is None else self._clock.now() - timedelta(days=days)
        hits: list[Hit] = await self._store.search(
            SearchQuery(
                query,
                tapes=tuple(tapes),
                kinds=_FOUND,
                since=since,
                limit=min(limit * _WIDE, _WIDE * MOST_PASSAGES),
            )
        )
        found = (self._passage(hit.tape, hit.entry) for hit in hits if hit.direct)
        return [passage for passage in found if passage is not None][:limit]

    def _passage(self, session: str, entry: TapeEntry) -> FoundPassage | None:
        """Return an entry as a passage; None if it is not shown."""
        if is_erased(entry) or is_local_only(entry):
            return None
        told = _told(entry)
        if told is None:
            return None
        who, text, outside = told
        moment = sent_time(entry)
        return FoundPassage(
            session=session,
            entry=entry.id,
            at=format_timestamp(moment.isoformat() if moment else None, self._timezone),
            who=who,
            text=_cut(text, _LONGEST_TEXT),
            outside=outside,
        )

    async def _evidence(self, evidence: Evidence, readable: frozenset[str]) -> EvidenceItem:
        shown = evidence.tape in readable and await self._may_quote(evidence)
        return EvidenceItem(
            who=evidence.who or evidence.origin,
            at=format_timestamp(evidence.when, self._timezone),
            origin=evidence.origin,
            session=evidence.tape if shown else "",
            entry=evidence.entry if shown else 0,
            quote=_cut(evidence.quote, _LONGEST_FACT) if shown else "",
        )

    async def _may_quote(self, evidence: Evidence) -> bool:
        found = await self._store.read(evidence.tape, evidence.entry, evidence.entry)
        return bool(found) and not is_erased(found[0]) and not is_local_only(found[0])

    async def _decision(self, scope: ScopeMemory, fact: Fact, entry_id: int) -> DecisionItem | None:
        entry = await scope.find_batch(entry_id) if entry_id else None
        decided = find_fact_decision(entry, fact.id) if entry is not None else None
        if entry is None or decided is None:
            return None
        author = str(entry.data.get("author"))
        return DecisionItem(
            at=format_timestamp(entry.meta.get("ts"), self._timezone),
            by=AUTHOR_NAMES.get(author, author),
            verdict=decided.verdict,
            reason=_cut(decided.reason, _LONGEST_FACT),
        )


def _told(entry: TapeEntry) -> tuple[str, str, bool] | None:
    """Return who says an entry, its text, and whether it is nobody's word; None if it is not shown."""
    if entry.kind == "message":
        text = str(entry.payload.get("content") or "")
        return (message_author(entry), text, is_automation(entry)) if text.strip() else None
    if entry.kind == "tool_call":
        names = ", ".join(dict.fromkeys(str(call.get("name")) for call in entry.calls))
        text = str(entry.payload.get("content") or "")
        return "tapebot", f"{text} (calls {names})".lstrip(), False
    if entry.kind == "tool_result" and entry.payload.get("name") == PROPOSED:
        who = str(entry.meta.get("client") or "a program")
        return f"{who}, proposing", str(entry.payload.get("content") or ""), True
    if entry.name == HISTORY_EVENT:
        return "history", str(entry.data.get("entry") or ""), False
    if entry.is_boundary and (summary := boundary_summary(entry.data)):
        return f"summary {entry.name}", summary, False
    return None


def _item(fact: Fact, timezone: tzinfo, *, shared: bool = False) -> FactItem:
    return FactItem(
        number=f"{'w' * shared}{fact.id}",
        text=_cut(fact.told(timezone), _LONGEST_FACT),
        since=format_timestamp_day(fact.valid_from, timezone),
        confidence=round(fact.confidence, 2),
        own_words=fact.is_own_words,
    )


def _fitting(query: str, items: Sequence[ItemT], texts: Sequence[str], limit: int) -> list[ItemT]:
    """Return the items that share words with a query, best first; without one, the newest."""
    if not query:
        return list(items[::-1][:limit])
    shares = word_shares(texts, query)
    best = sorted(
        (at for at, share in enumerate(shares) if share), key=lambda at: (-shares[at], -at)
    )
    return [items[at] for at in best[:limit]]


def _cut(text: str, most: int) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= most else f"{plain[:most].rstrip()}…"
