"""Parse a model request into messages, memory, notes, passages and tool results.

Rule 1: only the words before a quotation or records are the person's own.
Rule 2: current long-term memory is that of the ``<memory>`` block, with the changes that results of
        ``memory_save`` report, then with those in the records of the last message, a person's or a
        tool's. Records that tell all of memory stand alone.
Rule 3: a turn is everything after the last answer, including its tool calls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.core.patterns import LazyPattern
from bot.language.grammatical_person import USER
from bot.llm.base import ChatMessage, ModelRequest
from bot.llm.openai_format import part_text
from bot.memory.records.save_report import reported_changes
from bot.memory.session.state.zone_snapshot import numbered_fact_line
from bot.offline.files import FILE, FileDescription, files_of, without_files
from bot.offline.reference_parser import (
    ParsedReference,
    ProblemNotes,
    parse_beliefs,
    parse_problem,
    parse_values,
)

CORRECTION = "(corrects an earlier message)"
_HEADER = LazyPattern(r"\[(?P<date>\d{4}-\d\d-\d\d) (?P<time>\d\d:\d\d), (?P<who>[^\n]{1,200}?)\] ")
_MEMBER = LazyPattern(r".+ \([^()\s]+\)")
_ABOUT_MEMBER = LazyPattern(r"[^()\n]{1,80} \([^()\s]+\)")
_PASSAGE = LazyPattern(
    r"- (?:memory|(?P<when>\d{4}-\d\d-\d\d(?: \d\d:\d\d)?), (?P<who>[^\n]{1,200}?))(?: \[#\d+\])?: (?P<text>.*)"
)
_NUMBERED = LazyPattern(r"- \[(?P<number>\d{1,9})\] (?P<text>.*?)(?: \(\d{4}-\d\d-\d\d\))?")
_RECORDS = "\n\n<records>\n"
_QUOTED = "\n<quoted>\n"
_NEWER = LazyPattern(
    r"^(?:(?P<changes>Changes of long)|Long)-term memory, version \d+, saved [^\n]*:$", re.MULTILINE
)
_NEWER_END = "\n(end of long-term memory)"
_GONE = LazyPattern(r"Not in it(?: any more|, ended or for want of room): (?P<numbers>[\[\], \d]+)")
_NEWER_SECTION = LazyPattern(r"^(?P<name>Shared with everyone|Reference):$", re.MULTILINE)
_HANDOFF = LazyPattern(r"<handoff [^<>\n]*>\n")
_HANDOFF_END = "\n</handoff>"
_HANDOFF_FIELDS = frozenset(
    {"summary", "next_steps", "source", "owner", "reason", "name", "parent", "session", "previous"}
)
"""Fields of a handoff."""

_WRITTEN_AT = LazyPattern(r"^\[\d{4}-\d\d-\d\d(?: \d\d:\d\d)?\] ")
ASSISTANT = "tapebot"


@dataclass(frozen=True, slots=True)
class UserMessage:
    """A message of a person.

    Attributes:
        words: The person's own words.
        who: Name of the sender, with the id in a group; empty if the message has no header.
        date: ISO day; empty if the message has no header.
        time: Hour and minute, such as ``22:41``; empty if the message has no header.
        at: Position among the request's messages.
        files: Files of the message.
    """

    words: str
    who: str = ""
    date: str = ""
    time: str = ""
    at: int = 0
    files: tuple[FileDescription, ...] = ()

    @property
    def in_group(self) -> bool:
        """Whether the message is from a group, where facts must name the person."""
        return bool(_MEMBER.fullmatch(self.who))

    @property
    def subject(self) -> str:
        """Name that facts use for this person."""
        return self.who if self.in_group else USER

    @property
    def name(self) -> str:
        """Name of the sender without the id."""
        return self.who.rpartition(" (")[0] if self.in_group else self.who

    @property
    def when(self) -> str:
        """Day and minute."""
        return f"{self.date} {self.time}".strip()


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of text with its source.

    Attributes:
        text: Text of the passage.
        who: Source: a person's name, ``tapebot``, ``memory``, ``note``, ``history``, or ``file:``
            and a file's name.
        when: Day, or day and minute; empty for memory.
    """

    text: str
    who: str
    when: str = ""

    @property
    def from_person(self) -> bool:
        """Whether the source is a person."""
        return self.who not in (ASSISTANT, "memory", "note", "history") and not self.from_file

    @property
    def from_file(self) -> bool:
        """Whether the source is a file."""
        return self.who.startswith(FILE)


@dataclass(frozen=True, slots=True)
class CompletedCall:
    """A tool call of this turn with its result.

    Attributes:
        name: Name of the tool.
        arguments: Parsed arguments; empty if they were no JSON object.
        result: Text of the result.
        at: Position of the call among the request's messages.
    """

    name: str
    arguments: dict[str, Any]
    result: str
    at: int


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A parsed request.

    Attributes:
        turn: Messages to answer, in order.
        earlier: People's earlier messages, oldest first.
        memory: Current long-term memory as text, without fact numbers.
        notes: Daily notes in view.
        handoff: Summary and next steps from the former session.
        completed_calls: Tool calls of this turn with results.
        first: The view holds no answer yet.
        tools: Names of the tools that may be called.
        recalled: Passages in the records of the last message.
        numbers: Numbers of the facts in memory, by line.
        shared: Facts shared with everyone, as text.
        values: Values of shared reference.
        beliefs: Texts of the beliefs.
        problem: The problem at hand; None if the records name none.
    """

    turn: tuple[UserMessage, ...]
    earlier: tuple[UserMessage, ...]
    memory: str
    notes: tuple[Passage, ...]
    handoff: str
    completed_calls: tuple[CompletedCall, ...]
    first: bool
    tools: frozenset[str]
    recalled: tuple[Passage, ...] = ()
    numbers: Mapping[str, int] = field(default_factory=dict)
    shared: str = ""
    values: tuple[ParsedReference, ...] = ()
    beliefs: tuple[str, ...] = ()
    problem: ProblemNotes | None = None


def names_a_member(line: str) -> bool:
    """Return whether a line of memory is about one member of a group, by name and id."""
    return bool(_ABOUT_MEMBER.match(line))


def chat_message_text(message: ChatMessage) -> str:
    """Return the text of a message whose content is a text or a list of parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(map(part_text, content))
    return ""


def without_quoted_parts(content: str) -> str:
    """Return a message without quotation, file descriptions and records."""
    cuts = [at for at in (content.find(_QUOTED), content.find(_RECORDS)) if at >= 0]
    return without_files(content[: min(cuts)] if cuts else content)


def parse_user_message(content: str, at: int = 0) -> UserMessage:
    """Parse a user message with its header and files."""
    own, files = without_quoted_parts(content), files_of(content.partition(_RECORDS)[0])
    header = _HEADER.match(own)
    if header is None:
        return UserMessage(own.strip(), at=at, files=files)
    # A correction is a newer statement like any other.
    own = own[header.end() :].strip().removeprefix(CORRECTION).strip()
    return UserMessage(own, header["who"].strip(), header["date"], header["time"], at, files)


def parse_passages(text: str) -> tuple[Passage, ...]:
    """Parse the passages in a recall result or in records; skip other lines."""
    passages = []
    for line in text[:200_000].split("\n"):
        match = _PASSAGE.fullmatch(line.rstrip())
        if match:
            passages.append(
                Passage(match["text"].strip(), match["who"] or "memory", match["when"] or "")
            )
    return tuple(passages)


def _records(content: str) -> str:
    if not content.endswith("</records>"):
        return ""
    return content[content.rfind(_RECORDS) + len(_RECORDS) :] if _RECORDS in content else ""


def _handoff_text(note: str) -> str:
    """Return the summary and the next steps of a handoff."""
    fields: dict[str, list[str]] = {}
    current = ""
    for line in note.split("\n"):
        name, sep, rest = line.partition(": ")
        if sep and name in _HANDOFF_FIELDS:
            current = name
            fields.setdefault(current, []).append(rest)
        elif current:
            fields[current].append(line)
    summary = _WRITTEN_AT.sub("", "\n".join(fields.get("summary", ())).strip())
    try:
        steps = json.loads("\n".join(fields.get("next_steps", ())))
    except ValueError:
        steps = []
    listed = [str(step) for step in steps] if isinstance(steps, list) else []
    return "\n".join([summary, *([f"Next: {'; '.join(listed)}"] if listed else ())]).strip()


def _memory_block(system: str) -> str:
    start = system.find("\n<memory>\n")
    if system.startswith("<memory>\n"):
        start = -1
    elif start < 0:
        return ""
    end = system.find("\n</memory>", start + 1)
    return system[start + 1 : end if end >= 0 else len(system)]


def _sections(block: str) -> dict[str, str]:
    names = (
        "## Long-term Memory",
        "## Shared with Everyone",
        "## Reference",
        "## Today's Notes",
        "## Recent Notes",
    )
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    for line in block.split("\n"):
        if line in names and line not in sections:
            current = sections.setdefault(line, [])
        else:
            current.append(line)
    return {name: "\n".join(lines).strip("\n") for name, lines in sections.items()}


def _memory(system: str, records: str, messages: Sequence[ChatMessage]) -> str:
    body = _sections(_memory_block(system)).get("## Long-term Memory", "")
    for fact, text in reported_changes(messages):
        lines = [
            line
            for line in body.split("\n")
            if line and not ((hit := _NUMBERED.fullmatch(line)) and int(hit["number"]) == fact)
        ]
        body = "\n".join([*lines, *([numbered_fact_line(fact, text, "")] if text else [])])
    if newer := _NEWER.search(records):
        end = records.find(_NEWER_END, newer.end())
        newer_text = records[newer.end() : end if end >= 0 else len(records)].strip("\n")
        body = _with_changes(body, newer_text) if newer["changes"] else newer_text
    return "" if body.strip() == "(empty)" else body


def _with_changes(memory: str, changes: str) -> str:
    """Apply a list of changes to long-term memory."""
    new = changes.split("\n")
    removed: set[str] = set()
    while new and (hit := _GONE.fullmatch(new[-1])):
        removed |= set(re.findall(r"\d+", hit["numbers"]))
        del new[-1]
    changed_lines = [_NUMBERED.fullmatch(line) for line in new]
    removed |= {hit["number"] for hit in changed_lines if hit}
    unchanged = [
        line
        for line in memory.split("\n")
        if line != "(empty)"
        and not ((hit := _NUMBERED.fullmatch(line)) and hit["number"] in removed)
    ]
    return "\n".join([*unchanged, *new])


def _unnumbered(memory: str) -> tuple[str, dict[str, int]]:
    """Return long-term memory without fact numbers and days, and the numbers by line."""
    lines = []
    numbers = {}
    for line in memory.split("\n"):
        hit = _NUMBERED.fullmatch(line)
        lines.append(f"- {hit['text']}" if hit else line)
        if hit:
            numbers[lines[-1]] = int(hit["number"])
    return "\n".join(lines), numbers


def _newer_section(records: str, name: str) -> str | None:
    """Return a section of memory saved after the block was rendered; None if there is none."""
    # No fact can be a line like the title, and notes, which can, follow the real one.
    start = records.find(_NEWER_END) + 1
    hit = next(
        (match for match in _NEWER_SECTION.finditer(records, start) if match["name"] == name), None
    )
    if hit is None:
        return None
    body = records[hit.end() + 1 :].partition("\n\n")[0].removesuffix("\n</records>")
    return "" if body.strip() == "(empty)" else body


def _memory_section(system: str, records: str, name: str) -> str:
    newer = _newer_section(records, name)
    heading = {"Reference": "## Reference", "Shared with everyone": "## Shared with Everyone"}[name]
    return _sections(_memory_block(system)).get(heading, "") if newer is None else newer


def _notes(system: str, today: str) -> tuple[Passage, ...]:
    sections = _sections(_memory_block(system))
    notes: list[Passage] = []
    for name, date in (("## Today's Notes", today), ("## Recent Notes", "")):
        for line in sections.get(name, "").split("\n"):
            heading = re.fullmatch(r"#{1,4} (\d{4}-\d\d-\d\d)", line.strip())
            if heading:
                date = heading[1]  # noqa: PLW2901 - the notes below a date are of that date
            elif line.strip() and not line.startswith("#"):
                notes.append(Passage(line.strip().lstrip("-* "), "note", date))
    return tuple(notes)


def _completed_calls(messages: Sequence[ChatMessage], start: int) -> tuple[CompletedCall, ...]:
    results = {
        str(message.get("tool_call_id")): chat_message_text(message).partition(_RECORDS)[0]
        for message in messages[start:]
        if message.get("role") == "tool"
    }
    calls = []
    for at in range(start, len(messages)):
        for tool_call in messages[at].get("tool_calls") or ():
            function = tool_call.get("function") or {}
            if str(tool_call.get("id")) in results:
                arguments = arguments_of(str(function.get("arguments", "")))
                calls.append(
                    CompletedCall(
                        str(function.get("name")), arguments, results[str(tool_call["id"])], at
                    )
                )
    return tuple(calls)


def arguments_of(text: str) -> dict[str, Any]:
    """Parse a call's arguments; return an empty dict if the text is no JSON object."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _allowed_tools(request: ModelRequest) -> frozenset[str]:
    names = frozenset(tool.name for tool in request.tools)
    if request.tool_choice == "none":
        return frozenset()
    return names & {request.tool_choice} if request.tool_choice in names else names


def parse_request(request: ModelRequest) -> ParsedRequest:
    """Parse the request of a turn."""
    messages = list(request.messages)
    system = "\n".join(chat_message_text(m) for m in messages if m.get("role") == "system")
    answers = [
        at
        for at, m in enumerate(messages)
        if m.get("role") == "assistant" and not m.get("tool_calls")
    ]
    start = answers[-1] + 1 if answers else 0
    users = [(at, chat_message_text(m)) for at, m in enumerate(messages) if m.get("role") == "user"]
    people = [parse_user_message(text, at) for at, text in users]
    records = _records(chat_message_text(messages[-1])) if messages else ""
    handoff = _HANDOFF.search(system)
    handed, ended, _ = system[handoff.end() :].partition(_HANDOFF_END) if handoff else ("", "", "")
    reference = _memory_section(system, records, "Reference")
    memory, numbers = _unnumbered(_memory(system, records, messages))
    return ParsedRequest(
        turn=tuple(message for message in people if message.at >= start),
        earlier=tuple(message for message in people if message.at < start),
        memory=memory,
        numbers=numbers,
        notes=_notes(system, people[-1].date if people else ""),
        handoff=_handoff_text(handed) if ended else "",
        completed_calls=_completed_calls(messages, start),
        first=not answers,
        tools=_allowed_tools(request),
        recalled=parse_passages(_NEWER.sub("", records)),
        shared=_memory_section(system, records, "Shared with everyone"),
        values=parse_values(reference),
        beliefs=parse_beliefs(reference),
        problem=parse_problem(records),
    )
