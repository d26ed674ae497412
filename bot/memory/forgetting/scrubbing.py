"""Takes what repeats erased words out of an entry, and leaves the rest of it. Pure.

Rule 1: what a line or a sentence repeats costs that line or sentence; others stay to the letter.
Rule 2: structure stays: keys, numbers, ids, pointers; so every fold works as before.
Rule 3: a person's own message is not touched; what it quotes of somebody's is.
Rule 4: lines of the memory zone go without a trace, for the zone is what is believed now.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bot.memory.bus.entries import EPISODE
from bot.memory.fold import CONSOLIDATION_FAILED, SCOPE, SESSION_MARK
from bot.memory.forgetting.tombstones import ERASED, kept_meta
from bot.memory.forgetting.wanted import Wanted
from bot.memory.forgetting.wording import Wording, folded, joined
from bot.memory.snapshot import DAILY, HISTORY, LONG_TERM, REFERENCE, SHARED
from bot.memory.spoken import LOOP_STEP, PROBLEM, TURN_END, TURN_START, switched_to
from bot.memory.turns import COMMAND, DELIVERY, REPLY, TURN_RESUME
from bot.memory.versions import UNDONE
from bot.tape.entries import TapeEntry
from bot.tape.search import GENERAL
from bot.tape.store import HEADER, REPAIR

_SENTENCES = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])")
_LISTED = re.compile(r"^[\s>*•\-]*(?:\d+[.)]\s+)?")

_KNOWN = frozenset(
    {
        TURN_START,
        TURN_END,
        TURN_RESUME,
        LOOP_STEP,
        DELIVERY,
        REPLY,
        COMMAND,
        LONG_TERM,
        DAILY,
        SHARED,
        REFERENCE,
    }
    | {HISTORY, UNDONE, SCOPE, SESSION_MARK, CONSOLIDATION_FAILED, HEADER, REPAIR, "task.run"}
)
"""Events whose links are under known names; of all others every text is looked at."""

_LINKS = frozenset(
    {"turn", "inbound", "joined", "reply_to", "builder", "bounds", "prefix", "status", "model"}
    | {"platform_ids", "pointers", "replaces", "session", "home", "previous", "parent", "date"}
    | {"updated_at", "range", "from", "to", "usage", "spent", "name", "files", "via"}
)
_ANCHOR_LINKS = frozenset({"owner", "parent", "reason", "source"})
_OWN_ANCHORS = ("session/", "auto_handoff/", "memory/")
_ZONE = frozenset({LONG_TERM, DAILY, SHARED, REFERENCE})


@dataclass(frozen=True, slots=True)
class Scrubber:
    """Knows what is erased, and what stays.

    Attributes:
        wording: What nothing that stays says.
        wanted: The words asked for: an entry that holds all of them loses each.
        kept: Texts of facts that stay; lines that are these are left.
    """

    wording: Wording
    wanted: Wanted = field(default_factory=Wanted)
    kept: Collection[str] = ()
    _kept: frozenset[str] = field(init=False, default=frozenset())
    _asked: Wording = field(init=False, default_factory=Wording)

    def __post_init__(self) -> None:
        """Fold what is compared."""
        object.__setattr__(self, "_kept", frozenset(joined(folded(one)) for one in self.kept))
        asked = self.wanted.wording()
        asked.words |= self.wording.words
        asked.pairs |= self.wording.pairs
        asked.passages |= self.wording.passages
        object.__setattr__(self, "_asked", Wording(asked.words, asked.pairs, asked.passages))

    @property
    def idle(self) -> bool:
        """True where it finds nothing in any entry."""
        return self.wording.empty and not self.wanted.by_words

    def entry(self, entry: TapeEntry) -> TapeEntry:
        """Return an entry without what repeats erased words; itself where it repeats none."""
        if self.idle:
            return entry
        wording = self.sought(texts_of(entry))
        if wording is None:
            return entry
        scrub = _Scrub(wording, self._kept)
        changed = replace(entry, payload=scrub.payload(entry), meta=scrub.meta(entry, entry.meta))
        return entry if changed == entry else changed

    def sought(self, texts: Collection[str]) -> Wording | None:
        """Return what must go from texts that belong together; None where nothing does."""
        if self.wanted.is_in(texts):
            return self._asked
        return self.wording if any(map(self.wording.is_in, texts)) else None

    def value(self, value: Any, wording: Wording) -> Any:
        """Return any JSON without what repeats erased words."""
        return _Scrub(wording, self._kept).value(value)


@dataclass(frozen=True, slots=True)
class _Scrub:
    """Scrubs one entry."""

    wording: Wording
    kept: frozenset[str]
    keys: bool = False

    def payload(self, entry: TapeEntry) -> dict[str, Any]:
        payload = entry.payload
        if entry.kind == "message" and payload.get("role") == "user":
            return payload
        if entry.kind in ("message", "system", "tool_result"):
            return {**payload, "content": self.value(payload.get("content", ""))}
        if entry.kind == "tool_call":
            return {
                **payload,
                "content": self.value(payload.get("content", "")),
                "calls": [self.call(one) for one in payload.get("calls") or []],
            }
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
            if key != "layer" or not self.wording.is_in(str(value))
        }

    def label(self, key: str, value: Any) -> Any:
        if key == "tags" and isinstance(value, list):
            return [one for one in value if not self.wording.is_in(str(one))]
        return self.value(value)

    def call(self, call: Any) -> Any:
        if not isinstance(call, dict):
            return self.value(call)
        return {**call, "arguments": self.arguments(call.get("arguments"))}

    def arguments(self, text: Any) -> Any:
        """Return a call's arguments as valid JSON still."""
        if not isinstance(text, str) or not self.wording.is_in(text):
            return text
        try:
            told = json.dumps(self.value(json.loads(text)), ensure_ascii=False)
        except (ValueError, RecursionError):
            return "{}"
        return "{}" if self.wording.is_in(told) else told

    def anchor(self, entry: TapeEntry) -> dict[str, Any]:
        name = entry.name or ""
        problem = switched_to(entry)
        if problem is not None and name == f"{PROBLEM}{problem}":
            return {**entry.payload, "state": self.problem(entry.data)}
        own = name.startswith(_OWN_ANCHORS)
        before, slash, _ = name.rpartition("/")
        if not own and self.wording.is_in(name):
            kept = before and not self.wording.is_in(before)
            name = f"{before if kept else ERASED}{slash}{ERASED}" if slash else ERASED
        state = self.data(entry.data, _ANCHOR_LINKS if own else None)
        return {**entry.payload, "name": name, "state": state}

    def problem(self, state: dict[str, Any]) -> dict[str, Any]:
        fresh = self.data(state, _ANCHOR_LINKS | {"problem", "name"})
        if self.wording.is_in(str(state.get("name"))) and state["problem"] != GENERAL:
            fresh["name"] = f"{ERASED} {state['problem']}"
        return fresh

    def event(self, entry: TapeEntry) -> dict[str, Any]:
        data = entry.data
        if entry.name == HEADER:
            # A header may lose its title, and nothing else.
            fresh = {key: value for key, value in data.items() if key != "title"}
            if "title" in data:
                fresh["title"] = self.value(data["title"])
        elif entry.name in _ZONE:
            fresh = {**data, "content": self.zone(data.get("content"), entry.name)}
            if "facts" in data:
                fresh["facts"] = self._numbers(data) if fresh["content"] else []
        elif entry.name == EPISODE:
            fresh = {**data, "content": replace(self, keys=True).value(data.get("content"))}
        else:
            links = _LINKS - {"name"} if entry.name == COMMAND else _LINKS
            fresh = self.data(data, links if entry.name in _KNOWN else None)
            if fresh.get("buttons") != data.get("buttons"):
                fresh.pop("buttons", None)
        return {**entry.payload, "data": fresh}

    def zone(self, content: Any, name: str) -> Any:
        if not isinstance(content, str):
            return self.value(content)
        lines = [line for line in content.splitlines() if not self.goes(line)]
        left = "\n".join(lines).strip()
        if left and self.wording.is_in(self.unkept(left)):
            left = ""
        return left or (ERASED if name == DAILY else "")

    def _numbers(self, data: dict[str, Any]) -> Any:
        """Return the numbers and days of the facts whose lines stay."""
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
        """Return data whose links are under these keys; with None, keys may be words, too."""
        if links is None:
            found: dict[str, Any] = replace(self, keys=True).value(data)
            return found
        return {key: value if key in links else self.value(value) for key, value in data.items()}

    def text(self, text: str) -> str:
        if not self.wording.is_in(text):
            return text
        lines = text.split("\n")
        told = "\n".join(self.line(line) if self.goes(line) else line for line in lines)
        # What stands across lines, or within escapes that span them, is found in none of them.
        return ERASED if self.wording.is_in(self.unkept(told)) else told

    def line(self, line: str) -> str:
        parts = [part for part in _SENTENCES.split(line) if part]
        told = " ".join(ERASED if self.wording.is_in(part) else part for part in parts)
        return ERASED if len(parts) == 1 or self.wording.is_in(told) else told

    def goes(self, line: str) -> bool:
        return self.wording.is_in(line) and not self.is_kept(line)

    def is_kept(self, line: str) -> bool:
        return joined(folded(_LISTED.sub("", line))) in self.kept

    def unkept(self, text: str) -> str:
        return "\n".join(line for line in text.split("\n") if not self.is_kept(line))


def texts_of(entry: TapeEntry) -> list[str]:
    """Return all texts of an entry that may be words of somebody."""
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
