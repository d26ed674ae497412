"""Recall that nobody asked for: what the tape and the notes say on the newest message."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from bot.clock import Clock
from bot.llm.base import estimate_tokens
from bot.memory.fold import SessionFold
from bot.memory.recall import Passage, recall
from bot.memory.words import words_of
from bot.memory.zone import MemoryZone
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService

MOST_PASSAGES = 6
MOST_TOKENS = 600

_FOUND = 60
"""Passages that are looked through: the best ones are often in view already."""

_ANY_DAYS = 3_650
_WORDS = re.compile(r"\w+")
_EMPTY = frozenset(
    "ok okay k yes yeah yep yup no nope nah thanks thank thx ty please hi hello hey bye goodbye cool "
    "great good nice fine perfect sure right exactly lol haha hm hmm go on stop continue more next "
    "again done well oh wow morning night evening ja nein danke bitte hallo moin gut genau weiter "
    "oui non merci bonjour salut si sí sì gracias hola vale grazie ciao obrigado não да нет спасибо "
    "привет ладно 好 好的 谢谢 你好 嗯 はい いいえ ありがとう こんにちは 네 아니요 감사합니다 안녕".split()
)


@dataclass(slots=True)
class Recalled:
    """What was recalled for the newest message: looked up once, the same for all steps of a turn.

    Attributes:
        asked: Id of that message.
        lines: What is in the tail for it.
    """

    asked: int = 0
    lines: list[str] = field(default_factory=list)

    async def read(
        self, tape: TapeService, fold: SessionFold, zone: MemoryZone, clock: Clock, prompt: str
    ) -> list[str]:
        """Return the records for the newest message; empty where nothing fits it.

        Args:
            tape: The session's.
            fold: Its state: what is in view is not recalled.
            zone: Its memory.
            clock: Tells the time.
            prompt: The system prompt: what it says is not recalled.
        """
        spoken = fold.window.spoken()
        newest = next((e for e in reversed(spoken) if e.payload.get("role") == "user"), None)
        if newest is None:
            return []
        if newest.id != self.asked:
            words = str(newest.payload.get("content", ""))
            found: list[Passage] = []
            if not says_little(words):
                found = await recall(
                    tape,
                    zone.read(),
                    words,
                    days=_ANY_DAYS,
                    now=clock.now(),
                    timezone=zone.timezone,
                    limit=_FOUND,
                )
            self.lines = _chosen(found, fold, spoken, prompt)
            self.asked = newest.id
        return self.lines


def says_little(text: str) -> bool:
    """Say whether a message gives nothing to look for: no words of its own, or one or two empty."""
    words = _WORDS.findall(text.lower())
    return not words_of(text) or (len(words) <= 2 and _EMPTY.issuperset(words))


def _chosen(
    found: Sequence[Passage], fold: SessionFold, spoken: Sequence[TapeEntry], prompt: str
) -> list[str]:
    """Return the best passages that are not in view, as one record."""
    seen = {entry.id for entry in spoken} | set(fold.window.queued)
    # What was saved since the prompt was made stands in the tail as a whole.
    saved = fold.zone.snapshot
    told = "\n".join([prompt, saved.long_term, *_changed(fold)])
    lines: list[str] = []
    room = MOST_TOKENS
    for passage in found:
        if passage.entry in seen or (passage.text in told and not _is_said(passage)):
            continue
        line = passage.render()
        room -= estimate_tokens(line)
        if room < 0 or len(lines) == MOST_PASSAGES:
            break
        lines.append(line)
    return ["From the tape and memory:\n" + "\n".join(lines)] if lines else []


def _changed(fold: SessionFold) -> list[str]:
    saved = fold.zone.snapshot
    return [note.content for note in saved.dailies if note not in fold.frozen.dailies]


def _is_said(passage: Passage) -> bool:
    """True for what somebody said: that memory holds the same words does not show who said them."""
    return passage.entry is not None and passage.who != "history"
