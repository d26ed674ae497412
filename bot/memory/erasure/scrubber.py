"""Remove from an entry the text that repeats erased words. Pure.

Rule 1: a line or sentence with erased words is replaced whole; all others stay to the letter.
Rule 2: structure stays: keys, numbers, ids, pointers; so every fold works as before.
Rule 3: a person's own message stays; only its quotation of others and other metadata are scrubbed.
Rule 4: lines of the memory zone are removed without a mark, since the zone shows present memory.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bot.core.patterns import LazyPattern
from bot.core.reasons import recorded_words
from bot.memory.erasure.erasure_query import ErasureQuery
from bot.memory.erasure.text_matcher import TextMatcher, normalize_for_match, pad_words
from bot.memory.records.conversation_entries import (
    LOOP_STEP,
    PROBLEM_ANCHOR_PREFIX,
    QUESTION,
    TURN_END,
    TURN_START,
    switched_problem,
)
from bot.memory.records.episodes import EPISODE_EVENT
from bot.memory.records.event_names import (
    COMMAND,
    FILE_EVENTS,
    HISTORY_EVENT,
    REPLY,
)
from bot.memory.records.outside_text import LINKS
from bot.memory.records.schedules import SCHEDULE_EVENTS
from bot.memory.records.tombstones import ERASED_TEXT, kept_meta
from bot.memory.session.state.session_fold import (
    CONSOLIDATION_FAILED_EVENT,
    SCOPE_EVENT,
    SESSION_MARK_EVENT,
)
from bot.memory.session.state.turn_fold import (
    DELIVERY,
    TURN_RESUME,
)
from bot.memory.session.state.zone_snapshot import (
    DAILY_EVENT,
    LONG_TERM_EVENT,
    REFERENCE_EVENT,
    SHARED_EVENT,
)
from bot.memory.session.state.zone_versions import MEMORY_UNDONE_EVENT
from bot.tape.entries import TapeEntry
from bot.tape.search import GENERAL_PROBLEM
from bot.tape.store import HEADER_EVENT

_SENTENCES = LazyPattern(r"(?<=[.!?…])\s+|(?<=[。！？])")
_LISTED = LazyPattern(r"^[\s>*•\-]*(?:\d+[.)]\s+)?")

_KNOWN = frozenset(
    {
        TURN_START,
        TURN_END,
        TURN_RESUME,
        LOOP_STEP,
        DELIVERY,
        REPLY,
        COMMAND,
        LONG_TERM_EVENT,
        DAILY_EVENT,
        SHARED_EVENT,
        REFERENCE_EVENT,
    }
    | {
        HISTORY_EVENT,
        MEMORY_UNDONE_EVENT,
        SCOPE_EVENT,
        SESSION_MARK_EVENT,
        CONSOLIDATION_FAILED_EVENT,
        HEADER_EVENT,
        "task.run",
    }
    | SCHEDULE_EVENTS
)
"""Events whose ids and links have known keys; in all other events every text is scrubbed."""

_LINKS = frozenset(
    {"turn", "inbound", "joined", "reply_to", "builder", "bounds", "prefix", "status", "model"}
    | {"platform_ids", "pointers", "replaces", "session", "home", "previous", "parent", "date"}
    | {"schedule", "kind", "rule", "zone", "next", "instant", "author", "created"}
    | {"updated_at", "range", "from", "to", "usage", "spent", "name", "files", "via"}
)
_ANCHOR_LINKS = frozenset({"owner", "parent", "reason", "source"})
_OWN_ANCHORS = ("session/", "auto_handoff/", "memory/")
_ZONE = frozenset({LONG_TERM_EVENT, DAILY_EVENT, SHARED_EVENT, REFERENCE_EVENT})


@dataclass(frozen=True, slots=True)
class Scrubber:
    """Replace erased text in entries and JSON values.

    Attributes:
        matcher: Matches text that repeats what is erased.
        query: The words of the request. An entry that holds all of them loses each, unless texts
            that stay hold some and not all: of these it loses what holds two.
        kept: Texts of facts that stay; a line equal to one of them is left as it is.
    """

    matcher: TextMatcher
    query: ErasureQuery = field(default_factory=ErasureQuery)
    kept: Collection[str] = ()
    _kept: frozenset[str] = field(init=False, default=frozenset())
    _asked: TextMatcher = field(init=False, default_factory=TextMatcher)

    def __post_init__(self) -> None:
        """Normalize the kept texts, and join the matcher with the words of the query."""
        object.__setattr__(
            self, "_kept", frozenset(pad_words(normalize_for_match(one)) for one in self.kept)
        )
        text_matcher = self.query.text_matcher()
        if not text_matcher.words.isdisjoint(self.matcher.words):
            text_matcher.together = set(text_matcher.words)
            text_matcher.words -= self.matcher.staying
        text_matcher.words |= self.matcher.words
        text_matcher.pairs |= self.matcher.pairs
        text_matcher.passages |= self.matcher.passages
        # Its index of words is built anew.
        object.__setattr__(self, "_asked", text_matcher.copy())

    @property
    def is_noop(self) -> bool:
        """Whether no entry can match."""
        return self.matcher.empty and not self.query.searches_words

    def scrub_entry(self, entry: TapeEntry) -> TapeEntry:
        """Return an entry without erased text; the entry itself if nothing changes."""
        if self.is_noop or (entry.kind == "event" and entry.name in FILE_EVENTS):
            # A file goes as a whole, or stays as it is.
            return entry
        wording = self.scrub_texts(entry_texts(entry))
        if wording is None:
            return entry
        scrub = _Scrub(wording, self._kept)
        changed = replace(entry, payload=scrub.payload(entry), meta=scrub.meta(entry, entry.meta))
        return entry if changed == entry else changed

    def scrub_texts(self, texts: Collection[str]) -> TextMatcher | None:
        """Return the matcher to apply to texts that belong together; None if no text matches."""
        if self.query.matches(texts):
            return self._asked
        return self.matcher if any(map(self.matcher.matches, texts)) else None

    def scrub_value(self, value: Any, wording: TextMatcher) -> Any:
        """Return a JSON value without the text that ``wording`` matches."""
        return _Scrub(wording, self._kept).value(value)

    def scrub_reason(self, record: Any, wording: TextMatcher | None = None) -> Any:
        """Return a recorded reason without erased text; its code stays.

        Args:
            record: The reason as ``bot.core.reasons`` records it.
            wording: What to remove; None for what matches the reason's own words.
        """
        wording = wording or self.scrub_texts(list(recorded_words(record)))
        if wording is None:
            return record
        if isinstance(record, dict):
            return {
                name: value if name == "code" else self.scrub_reason(value, wording)
                for name, value in record.items()
            }
        if isinstance(record, list):
            return [self.scrub_reason(one, wording) for one in record]
        return self.scrub_value(record, wording)


@dataclass(frozen=True, slots=True)
class _Scrub:
    """Scrub the parts of one entry with one matcher."""

    wording: TextMatcher
    kept: frozenset[str]
    keys: bool = False

    def payload(self, entry: TapeEntry) -> dict[str, Any]:
        payload = entry.payload
        if entry.kind == "message" and payload.get("role") == "user":
            return payload
        if entry.kind in ("message", "system", "tool_result"):
            texts = [key for key in ("content", QUESTION) if key in payload]
            scrubbed = {**payload, **{key: self.value(payload[key]) for key in texts}}
            return self.sent_files(scrubbed)
        if entry.kind == "tool_call":
            scrubbed = {
                **payload,
                "content": self.value(payload.get("content", "")),
                "calls": [self.call(one) for one in payload.get("calls") or []],
            }
            # Some providers sign the model's reasoning: it stays whole or goes.
            if "reasoning" in payload and self.value(payload["reasoning"]) != payload["reasoning"]:
                del scrubbed["reasoning"]
            return scrubbed
        if entry.kind == "anchor":
            return self.anchor(entry)
        return self.event(entry)

    def meta(self, entry: TapeEntry, meta: Mapping[str, Any]) -> dict[str, Any]:
        own = entry.kind == "message" and entry.payload.get("role") == "user"
        left = {"attachments"} if own else set()
        fixed = kept_meta(dict(meta))
        return {
            key: value if key in fixed or key in left else self.label(key, value)
            for key, value in meta.items()
            if (key != "layer" or not self.wording.matches(str(value)))
            # A page goes as a whole: its words are not searched.
            and (key not in ("attachments", LINKS) or entry.kind != "tool_result")
        }

    def label(self, key: str, value: Any) -> Any:
        if key == "tags" and isinstance(value, list):
            return [one for one in value if not self.wording.matches(str(one))]
        return self.value(value)

    def call(self, call: Any) -> Any:
        if not isinstance(call, dict):
            return self.value(call)
        kept = {
            name: one for name, one in call.items() if name != "extra" or self.value(one) == one
        }
        return {**kept, "arguments": self.arguments(call.get("arguments"))}

    def arguments(self, text: Any) -> Any:
        """Return a call's scrubbed arguments, which remain valid JSON."""
        if not isinstance(text, str) or not self.wording.matches(text):
            return text
        try:
            told = json.dumps(self.value(json.loads(text)), ensure_ascii=False)
        except (ValueError, RecursionError):
            return "{}"
        return "{}" if self.wording.spans(told) else told

    def anchor(self, entry: TapeEntry) -> dict[str, Any]:
        name = entry.name or ""
        problem = switched_problem(entry)
        if problem is not None and name == f"{PROBLEM_ANCHOR_PREFIX}{problem}":
            return {**entry.payload, "state": self.problem(entry.data)}
        own = name.startswith(_OWN_ANCHORS)
        before, slash, _ = name.rpartition("/")
        if not own and self.wording.matches(name):
            kept = before and not self.wording.matches(before)
            name = (
                f"{before if kept else ERASED_TEXT}{slash}{ERASED_TEXT}" if slash else ERASED_TEXT
            )
        state = self.data(entry.data, _ANCHOR_LINKS if own else None)
        return {**entry.payload, "name": name, "state": state}

    def problem(self, state: dict[str, Any]) -> dict[str, Any]:
        fresh = self.data(state, _ANCHOR_LINKS | {"problem", "name"})
        if self.wording.matches(str(state.get("name"))) and state["problem"] != GENERAL_PROBLEM:
            fresh["name"] = f"{ERASED_TEXT} {state['problem']}"
        return fresh

    def event(self, entry: TapeEntry) -> dict[str, Any]:
        data = entry.data
        if entry.name == HEADER_EVENT:
            # Of a header, only the title may change.
            fresh = {key: value for key, value in data.items() if key != "title"}
            if "title" in data:
                fresh["title"] = self.value(data["title"])
        elif entry.name in _ZONE:
            fresh = {**data, "content": self.zone(data.get("content"), entry.name)}
            if "facts" in data:
                fresh["facts"] = self._numbers(data) if fresh["content"] else []
        elif entry.name == EPISODE_EVENT:
            fresh = {**data, "content": replace(self, keys=True).value(data.get("content"))}
        else:
            links = _LINKS - {"name"} if entry.name == COMMAND else _LINKS
            fresh = self.sent_files(self.data(data, links if entry.name in _KNOWN else None))
            if fresh.get("buttons") != data.get("buttons"):
                fresh.pop("buttons", None)
        return {**entry.payload, "data": fresh}

    def sent_files(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return data without the files that are sent under a matching name."""
        files = data.get("files")
        if not isinstance(files, list):
            return data
        return {**data, "files": [one for one in files if not self.wording.matches(str(one))]}

    def zone(self, content: Any, name: str) -> Any:
        if not isinstance(content, str):
            return self.value(content)
        lines = [line for line in content.splitlines() if not self.goes(line)]
        left = "\n".join(lines).strip()
        if left and self.wording.spans(self.unkept(left)):
            left = ""
        return left or (ERASED_TEXT if name == DAILY_EVENT else "")

    def _numbers(self, data: dict[str, Any]) -> Any:
        """Return the ``facts`` records of the lines that stay."""
        content, facts = data.get("content"), data["facts"]
        lines = content.splitlines() if isinstance(content, str) else []
        if not isinstance(facts, list) or len(facts) != len(lines):
            return facts
        return [fact for line, fact in zip(lines, facts, strict=True) if not self.goes(line)]

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(one) for one in value]
        if isinstance(value, dict):
            return {
                self.text(str(key)) if self.keys else key: self.value(one)
                for key, one in value.items()
            }
        return value

    def data(self, data: dict[str, Any], links: frozenset[str] | None) -> dict[str, Any]:
        """Return scrubbed data except under the keys in ``links``; with None, scrub keys, too."""
        if links is None:
            found: dict[str, Any] = replace(self, keys=True).value(data)
            return found
        return {key: value if key in links else self.value(value) for key, value in data.items()}

    def text(self, text: str) -> str:
        if not self.wording.matches(text):
            return text
        lines = text.split("\n")
        told = "\n".join(self.line(line) if self.goes(line) else line for line in lines)
        # A match that spans several lines, or escapes across them, is found in no single line.
        return ERASED_TEXT if self.wording.spans(self.unkept(told)) else told

    def line(self, line: str) -> str:
        parts = [part for part in _SENTENCES.split(line) if part]
        told = " ".join(ERASED_TEXT if self.wording.matches(part) else part for part in parts)
        return ERASED_TEXT if len(parts) == 1 or self.wording.spans(told) else told

    def goes(self, line: str) -> bool:
        return self.wording.matches(line) and not self.is_kept(line)

    def is_kept(self, line: str) -> bool:
        return pad_words(normalize_for_match(_LISTED.sub("", line))) in self.kept

    def unkept(self, text: str) -> str:
        return "\n".join(line for line in text.split("\n") if not self.is_kept(line))


def entry_texts(entry: TapeEntry) -> list[str]:
    """Return all texts of an entry, keys included, except metadata that is never erased."""
    found: list[str] = []
    if entry.kind in ("anchor", "event"):
        if entry.kind == "anchor":
            found.append(entry.name or "")
        _gather(entry.data, found)
    else:
        _gather(entry.payload, found)
    kept = kept_meta(entry.meta)
    _gather({key: value for key, value in entry.meta.items() if key not in kept}, found)
    return found


def _gather(value: Any, found: list[str]) -> None:
    if isinstance(value, str):
        found.append(value)
    elif isinstance(value, list):
        for one in value:
            _gather(one, found)
    elif isinstance(value, dict):
        for key, one in value.items():
            found.append(str(key))
            _gather(one, found)
