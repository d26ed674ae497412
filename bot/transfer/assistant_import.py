"""Import another assistant's conversations for a person: read, count, write, propose.

Conversations pass through one after the other, so that the memory that is needed does not depend on
their number. A dry run reads all of them and writes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import tzinfo
from pathlib import Path

import anyio.to_thread

from bot.transfer.chatgpt import read_chatgpt
from bot.transfer.claude import read_claude
from bot.transfer.import_writer import ImportResult, ImportWriter
from bot.transfer.imported import ImportedSession
from bot.transfer.memory_proposals import propose_memory
from bot.transfer.openclaw import read_openclaw
from bot.transfer.reading import Reading

Reader = Callable[[Path, Reading], Iterator[ImportedSession]]

READERS: dict[str, Reader] = {
    "chatgpt": read_chatgpt,
    "claude": read_claude,
    "openclaw": read_openclaw,
}
"""What yields the conversations at a path, by assistant."""


@dataclass(slots=True)
class AssistantImport:
    """One import of an assistant's data.

    Attributes:
        path: Where the data is.
        reading: What was found besides the conversations.
        statuses: Number of conversations by outcome.
        messages: Number of messages by role.
        since: Time of the oldest message; empty if there is none.
        until: Time of the newest one.
        proposed: Number of lines of memory that wait for the person now.
    """

    path: Path
    reading: Reading
    statuses: Counter[str] = field(default_factory=Counter)
    messages: Counter[str] = field(default_factory=Counter)
    since: str = ""
    until: str = ""
    proposed: int = 0

    @property
    def conversations(self) -> int:
        """Number of conversations with messages."""
        return self.statuses.total()

    async def run(self, writer: ImportWriter) -> AsyncGenerator[ImportResult, None]:
        """Import one conversation after the other, then the memory; yield each outcome.

        Raises:
            TapeWriteError: The storage failed; what was yielded before is done.
        """
        reading = self.reading
        sessions = READERS[reading.bot](self.path, reading)
        while (session := await anyio.to_thread.run_sync(next, sessions, None)) is not None:
            result = await writer.write_for(reading.person, reading.bot, session)
            self._count(session, result)
            yield result
        memory = reading.memory_session()
        if memory is not None:
            result = await writer.write_for(reading.person, reading.bot, memory)
            if not writer.dry_run and result.status in ("imported", "known"):
                self.proposed = await propose_memory(
                    writer.store, writer.clock, reading.person, memory.session
                )
            if result.status == "refused":
                yield result

    def _count(self, session: ImportedSession, result: ImportResult) -> None:
        self.statuses[result.status] += 1
        for entry in session.entries:
            self.messages[str(entry.payload.get("role"))] += entry.kind == "message"
        times = [str(entry.meta["ts"]) for entry in session.entries]
        self.since = min(filter(None, [self.since, *times]))
        self.until = max(self.until, *times)


def start_import(bot: str, path: Path, person: str, timezone: tzinfo) -> AssistantImport:
    """Return an import that has not begun."""
    return AssistantImport(path, Reading(bot, person, timezone))
