"""What is found while another assistant's data is read, besides its conversations.

Conversations are read one after the other and never kept, so that gigabytes fit. What is kept of all
of them is counted and bounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from hashlib import sha256
from typing import Any

from bot.core.errors import InvalidEntry
from bot.core.folding import split_sentences
from bot.core.i18n import _
from bot.memory.gate.memory_validation import is_placeholder
from bot.memory.records.fact import MAX_FACT_TEXT
from bot.memory.session.long_term_memory import lines_with_headings
from bot.tape.codec import encode_entries
from bot.tape.entries import TapeEntry, message
from bot.transfer.conversion import session_key, user_message
from bot.transfer.imported import ImportedSession

MOST_MEMORY_LINES = 500
"""Lines of the other assistant's memory that are proposed."""

_PROBLEMS = 20
_PARAGRAPH = 200
"""Characters of a line of memory above which each of its sentences is proposed for itself."""


@dataclass(frozen=True, slots=True)
class MemoryLine:
    """A line of the other assistant's memory.

    Attributes:
        text: The line.
        subject: Its heading.
        when: When it was written, ISO 8601.
    """

    text: str
    subject: str
    when: str


@dataclass(slots=True)
class Reading:
    """One reading of another assistant's data.

    Attributes:
        bot: The other assistant's name, which is the channel of its sessions.
        person: The identity whose conversations they are, such as ``telegram:42``.
        timezone: Time zone of times without one.
        problems: The first problems, one line each.
        problem_count: Number of all.
        hidden: Number of messages that are left out, by reason.
        skipped: Number of conversations without a message.
        memory: Lines of its memory, by text.
        more_memory: Number of lines of memory beyond the limit, or too long for a fact.
    """

    bot: str
    person: str
    timezone: tzinfo
    problems: list[str] = field(default_factory=list)
    problem_count: int = 0
    hidden: Counter[str] = field(default_factory=Counter)
    skipped: int = 0
    memory: dict[str, MemoryLine] = field(default_factory=dict)
    more_memory: int = 0
    _taken: set[bytes] = field(default_factory=set)

    @property
    def origin(self) -> str:
        """The ``meta.origin`` of all entries."""
        return f"import:{self.bot}"

    def report(self, problem: str) -> None:
        """Note a problem, as one line."""
        self.problem_count += 1
        if len(self.problems) < _PROBLEMS:
            self.problems.append(" ".join(problem.split())[:300])

    def session(self, key: str, source: str) -> ImportedSession | None:
        """Return a new session for a conversation; None if one with this key was read before."""
        session = session_key(f"{self.bot}:{key.replace(':', '_')}", self.bot)
        taken = sha256(session.encode()).digest()
        if taken in self._taken:
            self.report(
                _(
                    "{source}: another copy of conversation {key}; skipped",
                    source=source,
                    key=key[:80],
                )
            )
            return None
        self._taken.add(taken)
        return ImportedSession(key, session, source)

    def add_message(
        self,
        session: ImportedSession,
        role: str,
        text: str,
        *,
        ts: str,
        files: Sequence[dict[str, str]] = (),
        **meta: Any,
    ) -> None:
        """Add a visible message of the person or the assistant to a session."""
        if role == "user":
            person = self.person.partition(":")[2]
            entry = user_message(text, session.session, ts=ts, person=person, files=files)
        else:
            entry = message("assistant", text, ts=ts)
        entry = entry.with_meta(origin=self.origin, **meta)
        try:
            encode_entries([TapeEntry(1, entry.kind, entry.payload, entry.meta)])
        except InvalidEntry:
            self.report(_("{source}: a message is not valid text; skipped", source=session.source))
            return
        session.entries.append(entry)

    def hide(self, why: str, count: int = 1) -> None:
        """Count messages that are left out."""
        self.hidden[why] += count

    def add_memory(self, text: str, *, when: str, subject: str = "") -> None:
        """Add the lines of a text to the memory, once each; long ones by their sentences."""
        for heading, line in _memory_lines(text):
            if is_placeholder(line) or line in self.memory:
                continue
            if len(self.memory) >= MOST_MEMORY_LINES or len(line) > MAX_FACT_TEXT:
                self.more_memory += 1
                continue
            self.memory[line] = MemoryLine(line, heading or subject, when)

    def memory_session(self) -> ImportedSession | None:
        """Return a session that holds the lines of memory as messages; None if there are none."""
        if not self.memory:
            return None
        digest = sha256("\n".join(sorted(self.memory)).encode("utf-8", "replace")).hexdigest()[:8]
        session = self.session(f"memory-{digest}", "memory")
        if session is None:
            return None
        for line in sorted(self.memory.values(), key=lambda one: one.when):
            self.add_message(session, "assistant", line.text, ts=line.when, subject=line.subject)
        session.consolidated_count = len(session.entries)
        return session


def _memory_lines(text: str) -> Iterator[tuple[str, str]]:
    # A tape cannot hold lone surrogates.
    text = text.encode("utf-8", "replace").decode().replace("\0", "")
    text = "\n".join(map(_as_heading, text.splitlines()))
    for heading, line in lines_with_headings(text.replace("**", "")):
        for part in split_sentences(line) if len(line) > _PARAGRAPH else [line]:
            if part.strip():
                yield heading, " ".join(part.split())


def _as_heading(line: str) -> str:
    """Return a line that is bold as a whole as a heading."""
    bare = line.strip()
    bold = bare.startswith("**") and bare.endswith("**") and bare.count("**") == 2
    return f"# {bare.strip('*: ')}" if bold and len(bare) > 4 else line


def path_to(leaf: str, parents: dict[str, str]) -> list[str]:
    """Return the ids on the way from a root to a leaf; a cycle or a missing parent ends it."""
    found: list[str] = []
    seen: set[str] = set()
    while leaf in parents and leaf not in seen:
        seen.add(leaf)
        found.append(leaf)
        leaf = parents[leaf]
    return found[::-1]


def newest_leaf(parents: dict[str, str], times: dict[str, float]) -> str:
    """Return the newest id that is nobody's parent; the newest of all if there is none."""
    inner = {parent for one, parent in parents.items() if parent != one}
    leaves: Iterable[str] = [one for one in parents if one not in inner] or parents
    return max(leaves, key=lambda one: (times.get(one, 0.0), one), default="")
