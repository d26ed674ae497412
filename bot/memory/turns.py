"""What a tape says of its turns: the open one, what was answered, what was not delivered. Pure.

Rule 1: a turn is open from its ``turn.start`` to its ``turn.end``; there is one at most.
Rule 2: an inbound is settled once a ``turn.end`` lists it; each is listed in exactly one.
Rule 3: a ``turn.end`` with ``answered`` answers with the message or reply before it in its append.
Rule 4: an answer is delivered once a final ``delivery`` event names its turn, whatever it says; one
    that is not final names platform messages that carry a part of it.
Rule 5: what was only overheard, and an edit that takes another message's place, is owed nothing.
Rule 6: a turn that ends as ``split`` gives the messages that it names back, each for a turn of its own.
Rule 7: what a turn that ends as ``interrupted`` was to answer can be asked for again (``/retry``) until it is
    answered, or the conversation begins anew.
Rule 8: what waits by rule 6 or 7 is in view of no turn but its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bot.llm.base import Usage
from bot.memory.spoken import LOOP_STEP, TURN_END, TURN_START, is_owed
from bot.tape.entries import SESSION_FORK, SESSION_NEW, TapeEntry

TURN_RESUME = "turn.resume"
DELIVERY = "delivery"
REPLY = "reply"
"""An answer that is no message of the assistant's: a command's, a notice. Not in the view."""
COMMAND = "command"
"""A command that was heard; it is no part of the conversation."""


@dataclass(slots=True)
class OpenTurn:
    """A turn that has begun.

    Attributes:
        id: The turn's id.
        start: Id of its ``turn.start`` entry.
        inbound: Platform ids of the messages it answers.
        steps: Model calls whose outcome is on the tape.
        resumes: How often it was taken up again after a kill.
        spent: What its model calls consumed.
        retries: Platform ids of messages of interrupted turns that it answers.
    """

    id: str
    start: int
    inbound: list[str]
    steps: int = 0
    resumes: int = 0
    spent: Usage = field(default_factory=Usage)
    retries: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Undelivered:
    """An answer on the tape without a receipt."""

    turn: str
    text: str
    entry: int
    reply_to: str | None
    inbound: tuple[str, ...]
    buttons: tuple[tuple[str, str], ...] = ()
    replaces: str | None = None
    files: tuple[tuple[str, str], ...] = ()
    via: str | None = None
    """Key of the conversation that it is shown in, where that is another: a command came from there."""

    @classmethod
    def of(
        cls, turn: str, said: TapeEntry, reply_to: str | None, inbound: tuple[str, ...]
    ) -> Undelivered:
        """Return the answer that an entry holds: a message of the assistant's, or a reply."""
        data = said.data
        replaces, via = data.get("replaces"), data.get("via")
        return cls(
            turn,
            str(said.payload.get("content") or data.get("text") or ""),
            said.id,
            reply_to,
            inbound,
            _pairs(data.get("buttons") or said.payload.get("buttons")),
            replaces if isinstance(replaces, str) else None,
            _pairs(data.get("files")),
            via if isinstance(via, str) else None,
        )


@dataclass(slots=True)
class TurnFold:
    """Turns of one tape.

    Attributes:
        open: The open turn.
        unsettled: Platform ids of messages on the tape that no ``turn.end`` lists, with entry ids.
        commands: The same of commands.
        undelivered: Answers by turn id.
        shown: Platform messages that carry a part of an undelivered answer, by turn id.
        usage: Of all turns and consolidations.
        turns: How many have ended, commands not counted.
        prompt: Hash and entry id of the last system prompt written.
        last_prompt_tokens: What the provider counted in the last turn's prompt.
        split: Platform ids of messages that each wait for a turn of their own, with entry ids.
        interrupted: The same of messages whose turn was given up.
    """

    open: OpenTurn | None = None
    unsettled: dict[str, int] = field(default_factory=dict)
    commands: dict[str, int] = field(default_factory=dict)
    undelivered: dict[str, Undelivered] = field(default_factory=dict)
    shown: dict[str, tuple[str, ...]] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    turns: int = 0
    prompt: tuple[str, int] = ("", 0)
    last_prompt_tokens: int = 0
    split: dict[str, int] = field(default_factory=dict)
    interrupted: dict[str, int] = field(default_factory=dict)
    _said: TapeEntry | None = None

    def set_aside(self) -> frozenset[int]:
        """Return the ids of messages that are not in view of the turn that runs, or of the next one."""
        own = set() if self.open is None else {*self.open.inbound, *self.open.retries}
        waiting = {**self.split, **self.interrupted}
        return frozenset(entry for inbound, entry in waiting.items() if inbound not in own)

    def apply(self, entry: TapeEntry) -> None:
        """Take one entry in."""
        inbound = entry.meta.get("inbound")
        if entry.kind == "message" and isinstance(inbound, str) and is_owed(entry):
            self.unsettled[inbound] = entry.id
        if entry.kind == "message" and entry.payload.get("role") == "assistant":
            self._said = entry
        elif entry.kind == "system":
            self.prompt = (str(entry.meta.get("hash", "")), entry.id)
        elif entry.kind == "event":
            self._apply_event(entry)
        elif entry.kind == "anchor" and entry.name == SESSION_FORK:
            # Who began it is the parent's affair: a child answers for nothing that it copied.
            self.open = None
            self.unsettled, self.commands, self.undelivered, self.shown = {}, {}, {}, {}
            self.usage, self.turns = Usage(), 0
            self.split, self.interrupted = {}, {}
        elif entry.kind == "anchor" and entry.name == SESSION_NEW:
            self.interrupted = {}

    def _apply_event(self, entry: TapeEntry) -> None:
        data = entry.data
        if entry.name == TURN_START:
            self.open = OpenTurn(
                str(data.get("turn")),
                entry.id,
                texts(data.get("inbound")),
                retries=texts(data.get("retries")),
            )
        elif entry.name == TURN_END:
            self._end(data)
        elif entry.name == REPLY:
            self._said = entry
        elif entry.name == COMMAND and isinstance(inbound := entry.meta.get("inbound"), str):
            self.commands[inbound] = entry.id
        elif entry.name == DELIVERY:
            self._delivered(str(data.get("turn")), data)
        elif self.open is not None and entry.name == LOOP_STEP:
            self.open.steps = max(self.open.steps, _number(data.get("step")))
            self.open.spent += usage_from(data.get("spent", {}))
            self.open.inbound += texts(data.get("inbound"))
        elif self.open is not None and entry.name == TURN_RESUME:
            self.open.resumes += 1
        if (spent := data.get("usage")) is not None:
            self.usage += usage_from(spent)

    def _delivered(self, turn: str, data: dict[str, Any]) -> None:
        if data.get("final") is False:
            self.shown[turn] = tuple(texts(data.get("platform_ids")))
        else:
            self.undelivered.pop(turn, None)
            self.shown.pop(turn, None)

    def _end(self, data: dict[str, Any]) -> None:
        turn, status = str(data.get("turn")), data.get("status")
        if self.open is not None and self.open.id == turn:
            if status == "ok":
                for inbound in self.open.retries:
                    self.interrupted.pop(inbound, None)
            self.open = None
        self.turns += status not in ("command", "split")
        for inbound in texts(data.get("split")):
            if (entry := self.unsettled.get(inbound)) is not None:
                self.split[inbound] = entry
        for inbound in texts(data.get("inbound")):
            entry = self.unsettled.pop(inbound, None)
            if status == "interrupted" and entry is not None:
                self.interrupted[inbound] = entry
            self.commands.pop(inbound, None)
            self.split.pop(inbound, None)
        if data.get("answered") is True and self._said is not None:
            reply_to = data.get("reply_to")
            self.undelivered[turn] = Undelivered.of(
                turn,
                self._said,
                reply_to if isinstance(reply_to, str) else None,
                tuple(texts(data.get("inbound"))),
            )
        tokens = data.get("prompt_tokens")
        if type(tokens) is int and tokens:
            self.last_prompt_tokens = tokens


def usage_from(record: object) -> Usage:
    """Return the usage that an event carries; zero where it carries none that can be read."""
    if not isinstance(record, dict):
        return Usage()
    cost = record.get("cost", 0.0)
    return Usage(
        _number(record.get("prompt_tokens")),
        _number(record.get("cached_tokens")),
        _number(record.get("completion_tokens")),
        cost if isinstance(cost, (int, float)) else None,
        _number(record.get("calls")),
    )


def _number(value: object) -> int:
    return value if type(value) is int else 0


def _pairs(value: object) -> tuple[tuple[str, str], ...]:
    pairs = [texts(pair) for pair in value] if isinstance(value, list) else []
    return tuple((pair[0], pair[1]) for pair in pairs if len(pair) == 2)


def texts(value: object) -> list[str]:
    """Return the texts of a list, as a tape may hold anything in its place."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
