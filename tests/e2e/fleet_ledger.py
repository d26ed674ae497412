"""What was said to a fleet, and what was shown of it, taken down as it happens."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from platform_stage import TOKEN

from testkit.telegram.records import BotMessage, TelegramRecords

_SHOWS = frozenset(["sendMessage", "editMessageText"])


@dataclass(slots=True)
class Said:
    chat: int
    id: str
    token: str
    at: float
    scene: str
    shown_at: float | None = None

    @property
    def waited(self) -> float:
        assert self.shown_at is not None, f"not answered: {self}"
        return self.shown_at - self.at


@dataclass(frozen=True, slots=True)
class Blow:
    """What was done to a process, from when to when; until it has recovered, it may show things twice."""

    what: str
    whom: str
    at: float
    until: float


@dataclass
class Ledger:
    said: list[Said] = field(default_factory=list)
    open: dict[str, Said] = field(default_factory=dict)
    blows: list[Blow] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)
    _by_token: dict[str, Said] = field(default_factory=dict)
    _looked: int = 0

    def note(self, said: Said) -> None:
        assert said.token not in self._by_token, f"said twice: {said}"
        self.said.append(said)
        if said.token:
            self._by_token[said.token] = self.open[said.token] = said

    def look(self, books: TelegramRecords) -> None:
        for call in islice(books.calls, self._looked, None):
            if call.method in _SHOWS and call.performed and call.chat is not None:
                self._shown(call.chat, str(call.params.get("text", "")), call.at)
        self._looked = len(books.calls)

    def in_chat(self, chat: int) -> list[Said]:
        return [one for one in self.said if one.chat == chat]

    def chats(self) -> list[int]:
        return list(dict.fromkeys(one.chat for one in self.said))

    def waits(self, scene: str | None = None) -> list[float]:
        """Return the seconds to each answer that was shown, of one scene or of all."""
        return [
            one.waited
            for one in self.said
            if one.shown_at is not None and scene in (None, one.scene)
        ]

    def copies(self, shown: Iterable[BotMessage]) -> dict[str, list[BotMessage]]:
        """Return the messages that show an answer more than once, by the token of what they answer."""
        found: dict[str, list[BotMessage]] = defaultdict(list)
        for one in shown:
            if one.deleted_at is None:
                for token in set(TOKEN.findall(one.text)):
                    found[token].append(one)
        return {token: those for token, those in found.items() if len(those) > 1}

    def _shown(self, chat: int, text: str, at: float) -> None:
        for token in TOKEN.findall(text):
            said = self._by_token.get(token)
            if said is None or said.chat != chat:
                self.strange.append(f"{token} was shown in {chat}, and asked for by {said}")
                continue
            if said.shown_at is None:
                said.shown_at = at
                self.open.pop(token, None)
