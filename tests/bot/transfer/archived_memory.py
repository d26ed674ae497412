"""A session with a past and facts to put into an archive of memory, and what such an archive holds."""

from __future__ import annotations

import zipfile
from datetime import UTC as ZULU
from datetime import datetime
from pathlib import Path

from bot.core.clock import SystemClock
from bot.memory.records.event_names import HISTORY_EVENT
from bot.memory.records.fact import Evidence
from bot.memory.records.proposals import Proposal, ProposalBatch
from bot.memory.session.linking.scope_registry import WORKSPACE_SCOPE, person_scope, scope_entry
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.memory.session.state.zone_snapshot import DailyNote, MemorySnapshot, zone_entries
from bot.tape.entries import TapeEntry, event, message
from bot.tape.service import TapeService
from bot.tape.stores.file import FileTapeStore

ADA = "telegram:42"
HOME = person_scope("telegram", "42")
NOON = datetime(2026, 3, 6, 12, tzinfo=ZULU)
SUBJECTS = ["home", "work", "food", ""]
NAMES = [
    "README.txt",
    "MEMORY.md",
    "HISTORY.md",
    "notes/2026-03-05.md",
    "notes/2026-03-06.md",
    "facts.json",
    "references.md",
    "reference.json",
    "beliefs.md",
    "problems.md",
    "decisions.jsonl",
    "conversation.md",
    "conversation.jsonl",
]


def history(text: str, moment: str = "2026-03-06T10:00:00.000+00:00") -> TapeEntry:
    return event(HISTORY_EVENT, {"entry": text, "from": moment, "to": moment})


async def believe(store: FileTapeStore, home: str, texts: list[str], key: str = "k") -> None:
    kind = "workspace" if home == WORKSPACE_SCOPE else "person" if home == HOME else "session"
    evidence = Evidence(ADA, 3, "as I said", "Ada", "2026-03-01T10:00:00.000+00:00", sender="42")
    proposals = tuple(
        Proposal("add", text, subject=SUBJECTS[place % len(SUBJECTS)], evidence=(evidence,))
        for place, text in enumerate(texts)
    )
    scope = ScopeMemory(TapeService(store, home), kind, SystemClock())
    await scope.apply(ProposalBatch(f"{home}:{key}", "person", proposals))


async def live(store: FileTapeStore, session: str = ADA, home: str = HOME) -> None:
    """Let a session have a past in two parts, of which one is sealed, and facts."""
    tape = TapeService(store, session)
    await tape.ensure_bootstrap_anchor()
    await tape.append_many(
        [
            message("user", "I live in Oslo, naïvely: 你好", sender={"id": "42", "name": "Ada"}),
            message("assistant", "Noted."),
            history("[2026-03-05 09:00] Ada told that she lives in Oslo.\n\nAnd that it is cold."),
        ]
    )
    await tape.archive()
    notes = (DailyNote("2026-03-05", "It rained."), DailyNote("2026-03-06", "The sun."))
    await tape.append_many(
        [
            scope_entry(home),
            *zone_entries(MemorySnapshot(1, "- The user lives in Oslo.", notes), "2026-03-06"),
            message("user", "And I have a cat", sender={"id": "42", "name": "Ada"}),
            history("A cat was mentioned."),
        ]
    )
    await believe(store, home, ["The user lives in Oslo.", "The user works at Statkraft."])
    scope = ScopeMemory(TapeService(store, home), "person", SystemClock())
    moved = Proposal("supersede", "The user lives in Bergen.", fact=1, subject="home")
    await scope.apply(ProposalBatch("moved", "person", (moved,)))
    await believe(store, WORKSPACE_SCOPE, ["The office is in Harbour Street."])


def unzipped(path: Path) -> dict[str, str]:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name).decode() for name in archive.namelist()}
