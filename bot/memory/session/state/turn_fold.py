"""Fold a tape's turns: the open turn, unanswered messages, undelivered answers, usage. Pure.

Rule 1: a turn is open from its ``turn.start`` to its ``turn.end``; at most one is open.
Rule 2: a message or command is settled once a ``turn.end`` lists it; exactly one does.
Rule 3: the answer of a ``turn.end`` with ``answered`` is the message or reply before it in its
    append.
Rule 4: an answer is delivered once a final ``delivery`` event names its turn, whatever its outcome.
    One that is not final names the platform messages that carry a part of it.
Rule 5: overheard messages, and edits that replace a message, need no answer.
Rule 6: a turn that ends as ``split`` returns the messages it names, each for a turn of its own.
Rule 7: messages of a turn that ends as ``interrupted`` can be retried (``/retry``) until they are
    answered, or the conversation starts anew.
Rule 8: messages that wait by rule 6 or 7 are visible only to their own turn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bot.llm.base import Usage
from bot.memory.records.conversation_entries import (
    LOOP_STEP,
    NO_TURNS,
    TURN_END,
    TURN_START,
    needs_answer,
)
from bot.memory.records.event_names import CLIENT_INSTRUCTIONS, COMMAND, REPLY
from bot.memory.records.transcript import answer_text
from bot.tape.entries import SESSION_FORK, SESSION_NEW, TapeEntry

TURN_RESUME = "turn.resume"
DELIVERY = "delivery"


@dataclass(slots=True)
class OpenTurn:
    """A turn in progress.

    Attributes:
        id: The turn's id.
        start: Id of the ``turn.start`` entry.
        inbound: Platform ids of the messages it answers.
        steps: Model calls whose outcome is on the tape.
        resumes: Number of resumptions after a crash.
        spent: Usage of its model calls.
        retries: Platform ids of the interrupted messages that it retries.
        task: Id of the schedule whose task it does; empty for other turns.
        preset: Name of the model preset that it began with; empty for the default.
        client: What a client program asks of the model, as ``ClientRequest`` writes it; empty if
            there is none.
        calls: Its calls, though they left the view.
    """

    id: str
    start: int
    inbound: list[str]
    steps: int = 0
    resumes: int = 0
    spent: Usage = field(default_factory=Usage)
    retries: list[str] = field(default_factory=list)
    task: str = ""
    preset: str = ""
    client: dict[str, Any] = field(default_factory=dict)
    calls: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class UndeliveredAnswer:
    """An answer on the tape without a delivery receipt."""

    turn: str
    text: str
    entry: int
    reply_to: str | None
    inbound: tuple[str, ...]
    buttons: tuple[tuple[str, str], ...] = ()
    replaces: str | None = None
    files: tuple[tuple[str, str], ...] = ()
    via: str | None = None
    """Key of the conversation to show it in, if the command came from another one."""
    alone: bool = False
    """Whether it is for who pressed a button alone."""

    @classmethod
    def from_entry(
        cls, turn: str, entry: TapeEntry, reply_to: str | None, inbound: tuple[str, ...]
    ) -> UndeliveredAnswer:
        """Return the answer in an entry: an assistant message or a reply."""
        data = entry.data
        replaces, via = data.get("replaces"), data.get("via")
        return cls(
            turn,
            answer_text(entry) or str(data.get("text") or ""),
            entry.id,
            reply_to,
            inbound,
            _pairs(data.get("buttons") or entry.payload.get("buttons")),
            replaces if isinstance(replaces, str) else None,
            _pairs(data.get("files") or entry.payload.get("files")),
            via if isinstance(via, str) else None,
            data.get("alone") is True,
        )


@dataclass(slots=True)
class TurnFold:
    """Turns of one tape.

    Attributes:
        open_turn: The turn in progress.
        unanswered: Entry ids of messages that no ``turn.end`` lists, by platform id.
        unanswered_commands: Entry ids of commands that no ``turn.end`` lists, by platform id.
        undelivered: Undelivered answers by turn id.
        delivered_parts: Platform messages that carry a part of an undelivered answer, by turn id.
        usage: Usage of all turns and consolidations.
        turn_count: Number of turns that ended, without commands.
        last_prompt: Hash and entry id of the last system prompt.
        instructions: The newest instructions and tools of a client program.
        last_prompt_tokens: The provider's token count of the last turn's prompt.
        split_messages: Entry ids of messages that wait for a turn of their own, by platform id.
        interrupted_messages: Entry ids of messages of interrupted turns, by platform id.
    """

    open_turn: OpenTurn | None = None
    unanswered: dict[str, int] = field(default_factory=dict)
    unanswered_commands: dict[str, int] = field(default_factory=dict)
    undelivered: dict[str, UndeliveredAnswer] = field(default_factory=dict)
    delivered_parts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    turn_count: int = 0
    last_prompt: tuple[str, int] = ("", 0)
    instructions: TapeEntry | None = None
    last_prompt_tokens: int = 0
    split_messages: dict[str, int] = field(default_factory=dict)
    interrupted_messages: dict[str, int] = field(default_factory=dict)
    _said: TapeEntry | None = None

    def hidden_entry_ids(self) -> frozenset[int]:
        """Return the ids of messages that the current or next turn must not see."""
        own = (
            set() if self.open_turn is None else {*self.open_turn.inbound, *self.open_turn.retries}
        )
        waiting = {**self.split_messages, **self.interrupted_messages}
        return frozenset(entry for inbound, entry in waiting.items() if inbound not in own)

    def apply(self, entry: TapeEntry) -> None:
        """Apply one entry."""
        if self.open_turn is not None and entry.meta.get("turn") == self.open_turn.id:
            self.open_turn.calls += entry.calls
        inbound = entry.meta.get("inbound")
        if entry.kind == "message" and isinstance(inbound, str) and needs_answer(entry):
            self.unanswered[inbound] = entry.id
        if entry.kind == "message" and entry.payload.get("role") == "assistant":
            self._said = entry
        elif entry.kind == "system":
            self.last_prompt = (str(entry.meta.get("hash", "")), entry.id)
        elif entry.kind == "event":
            self._apply_event(entry)
        elif entry.kind == "anchor" and entry.name == SESSION_FORK:
            # A fork does not answer for the turns that it copied from its parent.
            self.open_turn = None
            self.unanswered, self.unanswered_commands, self.undelivered, self.delivered_parts = (
                {},
                {},
                {},
                {},
            )
            self.usage, self.turn_count = Usage(), 0
            self.split_messages, self.interrupted_messages = {}, {}
        elif entry.kind == "anchor" and entry.name == SESSION_NEW:
            self.interrupted_messages = {}

    def _apply_event(self, entry: TapeEntry) -> None:
        data = entry.data
        if entry.name == TURN_START:
            self.open_turn = OpenTurn(
                str(data.get("turn")),
                entry.id,
                string_items(data.get("inbound")),
                retries=string_items(data.get("retries")),
                task=str(data.get("task") or ""),
                preset=str(data.get("preset") or ""),
                client=self._client(data.get("client")),
            )
        elif entry.name == CLIENT_INSTRUCTIONS:
            self.instructions = entry
        elif entry.name == TURN_END:
            self._end(data)
        elif entry.name == REPLY:
            self._said = entry
        elif entry.name == COMMAND and isinstance(inbound := entry.meta.get("inbound"), str):
            self.unanswered_commands[inbound] = entry.id
        elif entry.name == DELIVERY:
            self._delivered(str(data.get("turn")), data)
        elif self.open_turn is not None and entry.name == LOOP_STEP:
            self.open_turn.steps = max(self.open_turn.steps, _number(data.get("step")))
            self.open_turn.spent += parse_usage(data.get("spent", {}))
            self.open_turn.inbound += string_items(data.get("inbound"))
        elif self.open_turn is not None and entry.name == TURN_RESUME:
            self.open_turn.resumes += 1
        if (spent := data.get("usage")) is not None:
            self.usage += parse_usage(spent)

    def _client(self, record: object) -> dict[str, Any]:
        """Return what a client asks in a turn, with the instructions that its start refers to."""
        if not isinstance(record, dict):
            return {}
        held, told = self.instructions, dict(record)
        if held is not None and told.pop("instructions", None) == held.id:
            told |= {key: held.data[key] for key in ("system", "tools") if key in held.data}
        return told

    def _delivered(self, turn: str, data: dict[str, Any]) -> None:
        if data.get("final") is False:
            self.delivered_parts[turn] = tuple(string_items(data.get("platform_ids")))
        else:
            self.undelivered.pop(turn, None)
            self.delivered_parts.pop(turn, None)

    def _end(self, data: dict[str, Any]) -> None:
        turn, status = str(data.get("turn")), data.get("status")
        if self.open_turn is not None and self.open_turn.id == turn:
            if status == "ok":
                for inbound in self.open_turn.retries:
                    self.interrupted_messages.pop(inbound, None)
            self.open_turn = None
        self.turn_count += status not in (*NO_TURNS, "split")
        for inbound in string_items(data.get("split")):
            if (entry := self.unanswered.get(inbound)) is not None:
                self.split_messages[inbound] = entry
        for inbound in string_items(data.get("inbound")):
            entry = self.unanswered.pop(inbound, None)
            if status == "interrupted" and entry is not None:
                self.interrupted_messages[inbound] = entry
            self.unanswered_commands.pop(inbound, None)
            self.split_messages.pop(inbound, None)
        if data.get("answered") is True and self._said is not None:
            reply_to = data.get("reply_to")
            self.undelivered[turn] = UndeliveredAnswer.from_entry(
                turn,
                self._said,
                reply_to if isinstance(reply_to, str) else None,
                tuple(string_items(data.get("inbound"))),
            )
        tokens = data.get("prompt_tokens")
        if type(tokens) is int and tokens:
            self.last_prompt_tokens = tokens


def parse_usage(record: object) -> Usage:
    """Return the usage in an event; zero if it is missing or malformed."""
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
    pairs = [string_items(pair) for pair in value] if isinstance(value, list) else []
    return tuple((pair[0], pair[1]) for pair in pairs if len(pair) == 2)


def string_items(value: object) -> list[str]:
    """Return the strings in a list; an empty list for anything else."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
