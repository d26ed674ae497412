"""Fold whether text from outside could have shaped what a conversation shows the model. Pure.

Rule 1: once text from outside is on the tape, whatever the model writes may repeat it: answers,
    summaries, notes. So a window that moves on does not end it.
Rule 2: it ends with a reset, and with a new phase whose summary is a person's own words alone.
Rule 3: in a group, the words of several people are outside for each other.
Rule 4: what was looked up for a step, such as recalled passages, is from the whole tape. So is what
    returns with a problem. Passages of files are from outside, also where the tape has no such text.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.memory.records.conversation_entries import (
    LOOP_STEP,
    TURN_START,
    joined_message_ids,
    switched_problem,
)
from bot.memory.records.evidence import FROM_OUTSIDE
from bot.memory.records.outside_text import outside_texts
from bot.memory.records.transcript import sender_id
from bot.tape.entries import SESSION_FORK, SESSION_NEW, TapeEntry

OWN_WORDS_ONLY = "own_words_only"
"""Key in the state of a new phase whose summary is a person's own words alone."""


@dataclass(slots=True)
class OutsideFold:
    """Where text from outside began.

    Attributes:
        first: Id of the first entry with such text on the tape; 0 if there is none.
        since: Id of the first entry that could have shaped what is in view; 0 if there is none.
        speaker: Id of the last group member who spoke; empty in a private chat.
    """

    first: int = 0
    since: int = 0
    speaker: str = ""

    def apply(self, entry: TapeEntry) -> None:
        """Apply one entry."""
        if entry.is_reset:
            self.first, self.since, self.speaker = 0, 0, ""
        elif entry.is_boundary and entry.name == SESSION_NEW:
            if entry.data.get(OWN_WORDS_ONLY) is True:
                self.since = 0
        elif self._brings_outside(entry):
            self.mark(entry.id)

    def _brings_outside(self, entry: TapeEntry) -> bool:
        if self._another_speaks(entry) or (entry.is_boundary and entry.name == SESSION_FORK):
            return True
        if self.since:
            return False
        if entry.name == LOOP_STEP and entry.meta.get(FROM_OUTSIDE) is True:
            return True
        if entry.name == TURN_START and entry.kind == "event":
            client = entry.data.get("client")
            return isinstance(client, dict) and client.get("advised") is True
        return bool(outside_texts(entry)) or (self.first > 0 and self._brings_back(entry))

    def _brings_back(self, entry: TapeEntry) -> bool:
        """Return whether an entry brings back what was said before the phase; a summary is not shown."""
        looked_up = entry.name == LOOP_STEP and bool(entry.data.get("extra"))
        return looked_up or bool(joined_message_ids(entry)) or switched_problem(entry) is not None

    def mark(self, entry: int) -> None:
        """Note that an entry brought in text from outside."""
        self.first = self.first or entry
        self.since = self.since or entry

    def _another_speaks(self, entry: TapeEntry) -> bool:
        if entry.kind != "message" or entry.meta.get("private") is not False:
            return False
        before, self.speaker = self.speaker, sender_id(entry) or self.speaker
        return before not in ("", self.speaker)
