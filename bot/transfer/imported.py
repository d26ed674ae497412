"""What every importer yields, and what it notes besides.

An importer reads one conversation after the other and keeps none, so that gigabytes fit. What is
kept of all of them is counted and bounded.

Rule 1: imported data gets no meaning on our tapes that it did not have before.
Rule 2: the same files always give the same entries.
"""

from __future__ import annotations

import mimetypes
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from hashlib import sha256
from typing import Any

from bot.bus import Address
from bot.core.clock import format_time
from bot.core.errors import InvalidEntry, InvalidInbound
from bot.core.folding import split_sentences
from bot.core.i18n import N_, _
from bot.core.patterns import LazyPattern
from bot.memory.gate.memory_validation import is_placeholder
from bot.memory.records.fact import MAX_FACT_TEXT
from bot.memory.records.imports import ASSISTANTS
from bot.memory.session.long_term_memory import lines_with_headings
from bot.tape.codec import encode_entries
from bot.tape.entries import TapeEntry, message

CONSOLE_SESSION = "console:local"
MOST_MEMORY_LINES = 500
"""Lines of the other assistant's memory that are proposed."""

_NOT_IN_CHANNELS = LazyPattern(r"[^a-z0-9_-]+")
_NOT_IN_IDS = LazyPattern(r"[:\s]+")
_LATEST_SECOND = 32_503_680_000  # the year 3000: what is greater counts milliseconds
_PROBLEMS = 20
_PARAGRAPH = 200
"""Characters of a line of memory above which each of its sentences is proposed for itself."""


@dataclass(slots=True)
class ImportedMemory:
    """What an assistant remembered for all of its conversations: Markdown, history events, notes by day."""

    text: str = ""
    history: list[TapeEntry] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether there is any memory."""
        return bool(self.text or self.history or self.notes)


@dataclass(slots=True)
class ImportedSession:
    """A conversation of the other assistant, under its key and ours, with the name of its file."""

    key: str
    session: str
    source: str
    entries: list[TapeEntry] = field(default_factory=list)  # each with a ``ts``, not appended yet
    history: list[TapeEntry] = field(default_factory=list)  # ``memory.history`` events of it alone
    consolidated_count: int = 0  # how many entries, from the first, are consolidated
    memory: ImportedMemory = field(default_factory=ImportedMemory)  # goes to it
    is_memory: bool = False  # its messages are lines of memory, which are proposed

    @property
    def messages(self) -> int:
        """Number of messages."""
        return sum(entry.kind == "message" for entry in self.entries)


@dataclass(slots=True)
class Reading:
    """One reading of another assistant's data, and what is counted of it."""

    bot: str  # the other assistant's name
    person: str  # whose it is, such as ``telegram:42``; empty if it keeps its channels and chats
    timezone: tzinfo  # of times without one
    memory_to: str | None = None  # gets the shared memory; else the only session, or the console's
    problems: list[str] = field(default_factory=list)  # the first ones
    problem_count: int = 0
    hidden: Counter[str] = field(default_factory=Counter)  # messages that are left out, by reason
    skipped: int = 0  # conversations without a message
    memory: dict[str, tuple[str, str]] = field(default_factory=dict)  # line: heading and time
    more_memory: int = 0  # lines beyond the limit, or too long for a fact
    shared: ImportedMemory = field(default_factory=ImportedMemory)  # for one conversation
    statuses: Counter[str] = field(default_factory=Counter)  # conversations by outcome
    messages: Counter[str] = field(default_factory=Counter)  # by role
    since: str = ""
    until: str = ""
    proposed: int = 0  # facts that wait for the person since
    _keys: dict[str, str] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        """The ``meta.origin`` of all entries."""
        return f"import:{self.bot}"

    def count(self, session: ImportedSession, status: str) -> None:
        """Count a session that was written, or not."""
        self.statuses[status] += 1
        for entry in session.entries:
            self.messages[str(entry.payload.get("role"))] += entry.kind == "message"
        times = [str(entry.meta["ts"]) for entry in session.entries]
        self.since = min(filter(None, [self.since, *times]), default="")
        self.until = max([self.until, *times])

    def report(self, problem: str) -> None:
        """Note a problem, as one line."""
        self.problem_count += 1
        if len(self.problems) < _PROBLEMS:
            self.problems.append(" ".join(problem.split())[:300])

    def session(self, key: str, source: str) -> ImportedSession | None:
        """Return a new session for a conversation; None if one with this key was read before.

        For a person all are sessions of a channel of the assistant's name. Keys that become the same
        session are told apart by their digests.
        """
        named = f"{self.bot}:{key.replace(':', '_')}" if self.person else key
        session = session_key(named, self.bot)
        if not self.person and session.startswith("cli:"):
            chat = session.removeprefix("cli:")
            session = CONSOLE_SESSION if chat == "direct" else f"console:{chat}"
        if self._keys.get(session, key) != key:
            session = f"{session[:230]}-{_digest(key)}"
        if session in self._keys:
            told = {"source": source, "key": key[:80]}
            self.report(_("{source}: another copy of conversation {key}; skipped", **told))
            return None
        self._keys[session] = key
        return ImportedSession(key, session, source)

    def add(self, session: ImportedSession, entry: TapeEntry, where: str = "") -> None:
        """Add an entry to a session, if a tape can hold it."""
        marked = entry.with_meta(origin=self.origin)
        try:
            encode_entries([TapeEntry(1, marked.kind, marked.payload, marked.meta)])
        except InvalidEntry:
            source = where or session.source
            self.report(_("{source}: a message is not valid text; skipped", source=source))
        else:
            session.entries.append(marked)

    def add_message(
        self,
        session: ImportedSession,
        role: str,
        text: str,
        *,
        ts: str,
        files: Sequence[dict[str, Any]] = (),
        **meta: Any,
    ) -> None:
        """Add a visible message of the person or the assistant; count it if it is empty."""
        if not text and not files:
            self.hidden["empty"] += 1
        elif role == "user":
            person = self.person.partition(":")[2]
            entry = user_message(text, session.session, ts=ts, person=person, files=files)
            self.add(session, entry.with_meta(**meta))
        else:
            self.add(session, message("assistant", text, ts=ts, **meta))

    def finished(self, session: ImportedSession) -> Iterator[ImportedSession]:
        """Yield a session that has messages; count another."""
        if session.entries:
            yield session
        else:
            self.skipped += 1

    def add_memory(self, text: str, *, when: str, subject: str = "") -> None:
        """Add the lines of a text to the memory, once each; long ones by their sentences."""
        for heading, line in _memory_lines(text):
            if is_placeholder(line) or line in self.memory:
                continue
            if len(self.memory) >= MOST_MEMORY_LINES or len(line) > MAX_FACT_TEXT:
                self.more_memory += 1
                continue
            self.memory[line] = (heading or subject, when)

    def memory_session(self) -> ImportedSession | None:
        """Return a session that holds the lines of memory as messages; None if there are none."""
        key = f"memory-{_digest(chr(10).join(sorted(self.memory)))}"
        session = self.session(key, "memory") if self.memory else None
        if session is not None:
            session.is_memory = True
            for line, (subject, when) in sorted(self.memory.items(), key=lambda one: one[1][1]):
                self.add_message(session, "assistant", line, ts=when, subject=subject)
            session.consolidated_count = len(session.entries)
        return session


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:8]


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


# Converting.


def parse_time(value: object, timezone: tzinfo) -> str | None:
    """Convert a time, ISO 8601 text or Unix time, to ISO 8601 in UTC; None if it is invalid."""
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value.strip())
            return format_time(moment if moment.tzinfo else moment.replace(tzinfo=timezone))
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
            seconds = value if value < _LATEST_SECOND else value / 1_000
            return format_time(datetime.fromtimestamp(seconds, UTC))
    except (ValueError, OverflowError, OSError):
        pass
    return None


def session_key(key: str, bot: str) -> str:
    """Convert another assistant's key ``channel:chat``, whatever it contains, to a session key."""
    channel, colon, rest = key.partition(":")
    if not colon:
        channel, rest = bot, key
    chat, _, topic = rest.partition(":")
    for marker in ("topic:", "thread:"):
        topic = topic.removeprefix(marker)
    channel = _NOT_IN_CHANNELS.sub("-", channel.lower()).lstrip("-_0123456789")[:32] or bot
    try:
        return Address(channel, _id(chat) or "unnamed", _id(topic) or None).session
    except InvalidInbound:
        return Address(bot, "unnamed").session


def _id(text: str) -> str:
    # A tape's name must be encodable as UTF-8.
    text = text.encode("utf-8", "replace").decode()
    return _NOT_IN_IDS.sub("_", text.strip())[:256]


def is_private(session: str) -> bool | None:
    """Return whether a chat has only one person, judging by its key; None if unknown."""
    channel, _, chat = session.partition(":")
    if channel == "telegram":
        return not chat.startswith("-")
    return True if channel in ("console", "cli", *ASSISTANTS) else None


def user_message(
    text: str,
    session: str,
    *,
    ts: str,
    person: str,
    sender_id: str = "",
    sender_name: str = "",
    files: Sequence[dict[str, Any]] = (),
) -> TapeEntry:
    """Convert a person's message."""
    private = is_private(session)
    known = sender_id or (person if private else "unknown")
    meta: dict[str, Any] = {"sender": {"id": known, "name": sender_name or "user"}}
    meta |= {} if private is None else {"private": private}
    meta |= {"attachments": [*files]} if files else {}
    return message("user", text, ts=ts, sent=ts, **meta)


def attachment(name: str, kind: str | None = None) -> dict[str, Any]:
    """Return an attachment that stands for a file that was not imported."""
    mime = mimetypes.guess_type(name)[0] or ""
    found = kind or mime.partition("/")[0]
    known = found if found in ("image", "audio", "video", "voice") else "document"
    return {"kind": known, "name": name, "mime": mime, "note": {"code": "file_elsewhere"}}


def text_and_files(content: object, hidden: Counter[str]) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the texts of a message's parts, and what stands for its files; count thoughts and tools."""
    texts: list[str] = []
    files: list[dict[str, Any]] = []
    for part in content if isinstance(content, list) else [content]:
        text = part.get("text") if isinstance(part, dict) else part
        named = (part.get("type") or part.get("content_type")) if isinstance(part, dict) else ""
        kind = str(named or "file")
        if "thinking" in kind:
            hidden["thoughts"] += 1
        elif "tool" in kind:
            hidden[N_("to and from tools")] += 1
        elif isinstance(text, str):
            texts.append(text)
        elif isinstance(part, dict):
            kind = kind.removeprefix("input_").partition("_")[0]
            files.append(attachment(kind, kind))
    return texts, files


def dict_of(value: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the object under a name; an empty one if there is none."""
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def dicts_in(value: object) -> list[dict[str, Any]]:
    """Return the objects in a list; none if it is no list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def path_to(leaf: str, parents: dict[str, str]) -> list[str]:
    """Return the ids on the way from a root to a leaf; a cycle or a missing parent ends it."""
    found: dict[str, None] = {}
    while leaf in parents and leaf not in found:
        found[leaf] = None
        leaf = parents[leaf]
    return list(found)[::-1]


def newest_leaf(parents: dict[str, str], times: dict[str, float]) -> str:
    """Return the newest id that is nobody's parent; the newest of all if there is none."""
    inner = {parent for one, parent in parents.items() if parent != one}
    leaves = [one for one in parents if one not in inner] or list(parents)
    return max(leaves, key=lambda one: (times.get(one, 0.0), one), default="")
