"""What people say who work on several problems each, drawn by chance, and what must come of it. Pure.

Rule 1: each message holds a marker that no other does; it tells its chat and the problem it is said in.
Rule 2: what is shared by design (facts, shared values, beliefs) holds markers that tell the chat alone.
Rule 3: what makes the model call a tool is said alone: whoever says it waits for the answer.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

GENERAL = "general"
NAMES = ("Garden", "Taxes", "Music", "Travel")
MARKER = re.compile(r"zq([a-j]{2})([a-e])[a-j]{3}qz")
"""Of one problem of one chat."""
OWN = re.compile(r"zs([a-j]{2})[a-j]{3}sz")
"""Of one chat."""
ASKED_FOR = re.compile(
    r"(is opened once you have answered; answer now\..*?:)((?!<records>).)*", re.DOTALL
)
"""What a model is told that opens a problem by name: the summary of that is asked for in so many words."""
MOTTO = "motto"
"""The shared value that every chat hands to everybody."""

_PLACES = (GENERAL, *NAMES)
_KINDS = ("must", "must-not", "ask", "decide", "assume", "draft")
_THINGS = ("roses", "letters", "bills", "chords", "tickets", "seeds", "maps", "stamps", "drums")
_DOINGS = (
    "sorting",
    "counting",
    "checking",
    "moving",
    "painting",
    "cleaning",
    "drawing",
    "folding",
)


@dataclass(frozen=True)
class Message:
    """A message as the platform sends it.

    Attributes:
        id: The platform's.
        text: What is said.
        problem: Name of the problem that it is said in.
    """

    id: str
    text: str
    problem: str

    @property
    def is_command(self) -> bool:
        return self.text.startswith("/")


@dataclass
class Talk:
    """All that one person says, and how things stand for them in the end.

    Attributes:
        number: Of the chat.
        rounds: How often they go to another problem, at least.
        bursts: What is said without waiting for an answer in between.
        active: Name of the problem that is worked on.
        states: Of the problems that were made, by name.
        notes: By problem and kind, in order; a draft is its name and its text.
        values: Versions of each shared value, oldest first; None where it was taken away.
        beliefs: What was concluded.
        facts: What was asked to be remembered.
        shared: How often the motto was handed to everybody.
        said_in: The problem of each marker.
        counts: What is done how often.
    """

    number: int
    seed: int
    rounds: int
    bursts: list[list[Message]] = field(default_factory=list)
    active: str = GENERAL
    states: dict[str, str] = field(default_factory=dict)
    notes: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    values: dict[str, list[str | None]] = field(default_factory=dict)
    beliefs: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    shared: int = 0
    said_in: dict[str, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._chance = random.Random(f"{self.seed}:{self.number}")
        self._burst: list[Message] = []
        self._markers = self._messages = 0
        unmade = self._chance.sample(NAMES, len(NAMES))
        done = 0
        # Some talk for so long that their tapes hold whole states of what is believed.
        rounds = self.rounds if self.number % 10 else 5 * self.rounds
        while unmade or done < rounds:
            self._work()
            if unmade and (len(self.states) < 2 or self._chance.random() < 0.6):
                self._begin(unmade.pop())
            else:
                self._go()
            done += 1
        self._work()
        self._flush()

    @property
    def chat(self) -> str:
        return f"c{self.number}"

    @property
    def session(self) -> str:
        return f"pipe:{self.chat}"

    def messages(self) -> list[Message]:
        return [one for burst in self.bursts for one in burst]

    # What is said.

    def _send(self, text: str, *, alone: bool = False) -> None:
        if alone:
            self._flush()
        self._messages += 1
        self._burst.append(Message(f"{self.chat}.{self._messages}", text, self.active))
        if alone or len(self._burst) > 3 or self._chance.random() < 0.35:
            self._flush()

    def _flush(self) -> None:
        if self._burst:
            self.bursts.append(self._burst)
            self._burst = []

    def _marker(self) -> str:
        place = _PLACES.index(self.active)
        return self._marked(f"zq{_letters(self.number, 2)}{_letters(place, 1)}{{}}qz")

    def _own(self) -> str:
        return self._marked(f"zs{_letters(self.number, 2)}{{}}sz")

    def _marked(self, form: str) -> str:
        self._markers += 1
        marker = form.format(_letters(self._markers, 3))
        self.said_in[marker] = self.active
        return marker

    # Working on a problem.

    def _work(self) -> None:
        doings = self._chance.choices(
            [
                self._say, self._note, self._note_by_tool, self._drop, self._set, self._set_by_tool,
                self._back, self._take, self._share, self._conclude, self._remember, self._look,
            ],
            [10, 7, 3, 2, 2, 1, 1, 0.5, 0.5, 1, 1, 1],
            k=self._chance.choice([1, 2, 3]),
        )  # fmt: skip
        for doing in doings:
            doing()

    def _say(self) -> None:
        self._send(f"I think of the {self._chance.choice(_THINGS)}, {self._marker()}.")

    def _look(self) -> None:
        self._send(f"LOOK {self._marker()}", alone=True)

    def _note(self) -> None:
        kind = self._chance.choice(_KINDS)
        text, name = self._noted(kind)
        said = f"{name} {text}" if kind == "draft" else text
        said = f"{said} because {name}" if kind == "decide" else said
        self._send(f"/problem note {kind} {said}")

    def _note_by_tool(self) -> None:
        kind = self._chance.choice(_KINDS)
        text, why = self._noted(kind)
        self._send(f"NOTE {kind} {text} WHY {why}", alone=True)

    def _noted(self, kind: str) -> tuple[str, str]:
        """Note something; return it, and its reason or its name."""
        text, name = f"think of {self._marker()}", self._chance.choice(("one", "two"))
        held = self.notes.setdefault(self.active, {}).setdefault(kind, [])
        self.counts["notes"] += 1
        if kind == "draft":
            # The newer takes the older's place.
            at = next((i for i, (known, _) in enumerate(held) if known == name), len(held))
            held[at : at + 1] = [(name, text)]
            return text, name
        held.append(f"{text} (because {name})" if kind == "decide" else text)
        return text, name

    def _drop(self) -> None:
        held = [(kind, notes) for kind, notes in self.notes.get(self.active, {}).items() if notes]
        if held:
            kind, notes = self._chance.choice(held)
            at = self._chance.randrange(len(notes))
            del notes[at]
            self._send(f"/problem note drop {kind} {at + 1}")

    # What is shared between the problems.

    def _set(self) -> None:
        self._value(self._chance.choice(("budget", "deadline")), self._own())

    def _value(self, key: str, value: str) -> None:
        self.values.setdefault(key, []).append(value)
        self._send(f"/reference set {key} {value}")

    def _set_by_tool(self) -> None:
        key, value = "station", self._own()
        self.values.setdefault(key, []).append(value)
        self._send(f"REFER {key} TO {value}", alone=True)

    def _back(self) -> None:
        for key, versions in self.values.items():
            older = [at for at, value in enumerate(versions[:-1], 1) if value is not None]
            if older and key != MOTTO:
                at = self._chance.choice(older)
                versions.append(versions[at - 1])
                self._send(f"/reference rollback {key} {at}")
                return

    def _take(self) -> None:
        versions = self.values.get("budget")
        if versions and versions[-1] is not None:
            versions.append(None)
            self._send("/reference remove budget")

    def _share(self) -> None:
        self._value(MOTTO, f"be kind {self.number * 1000 + self._messages} times")
        self.shared += 1
        self._send(f"/reference share {MOTTO}")

    def _conclude(self) -> None:
        doing, thing = self._chance.choice(_DOINGS), self._chance.choice(_THINGS)
        text = f"{doing.capitalize()} {self._own()} early helps with {thing} {self._own()}"
        self.beliefs.append(text)
        self._send(f"CONCLUDE {text}", alone=True)

    def _remember(self) -> None:
        self.facts.append(f"I like {self._own()}")
        self._send(f"Remember that {self.facts[-1]}")

    # Going from one problem to another.

    def _begin(self, name: str) -> None:
        if self._chance.random() < 0.7:
            self._send(f"/problem new {name}")
        else:
            self._send(f"OPEN {name} {self._marker()}", alone=True)
        self._leave(name)

    def _go(self) -> None:
        others = [
            name
            for name in (GENERAL, *self.states)
            if name != self.active and self.states.get(name) != "completed"
        ]
        wanted = self._chance.choice(others)
        doing = self._chance.choice(("switch", "switch", "resume", "open", "put", "put", "aside"))
        if doing in ("switch", "resume"):
            self._send(f"/problem {doing} {wanted}")
            self._leave(wanted)
        elif doing == "open":
            self._send(f"OPEN {wanted} {self._marker()}", alone=True)
            self._leave(wanted)
        elif doing == "aside" and wanted != GENERAL:
            self._aside(wanted)
        elif self.active != GENERAL:
            self._put()

    def _put(self) -> None:
        """Put the problem that is worked on aside, or end it."""
        ended = "completed" in self.states.values()
        form = self._chance.choice(["pause", "background"] if ended else ["pause", "done"])
        state = {"pause": "paused", "done": "completed"}.get(form, form)
        if self._chance.random() < 0.4:
            self._send(f"CLOSE {state} {self._marker()}", alone=True)
        else:
            self._send(f"/problem {form}")
        self._leave(GENERAL, state)

    def _aside(self, name: str) -> None:
        """Put another problem aside."""
        form, state = self._chance.choice((("pause", "paused"), ("background", "background")))
        self._send(f"/problem {form} {name}")
        if self.states[name] != state:
            self._left(name, state)

    def _leave(self, wanted: str, state: str = "paused") -> None:
        self.counts["switches"] += 1
        if self.active != GENERAL:
            self._left(self.active, state)
        if wanted != GENERAL:
            self.states[wanted] = "active"
        self.active = wanted

    def _left(self, name: str, state: str) -> None:
        self.states[name] = state
        if state != "paused":
            # Of the working set its summary stays.
            self.notes.pop(name, None)


def needed(burst: list[Message]) -> list[str]:
    """Return the messages whose answers tell that a burst is answered.

    A turn may answer several messages, and is told to answer the newest.
    """
    said = [one.id for one in burst if not one.is_command]
    return [*(one.id for one in burst if one.is_command), *said[-1:]]


def markers(text: str) -> list[str]:
    """Return all markers in a text."""
    return [found[0] for found in re.finditer(rf"{MARKER.pattern}|{OWN.pattern}", text)]


def chat_of(marker: str) -> int:
    """Return the number of the chat that a marker tells."""
    return _number(marker[2:4])


def problem_in(marker: str) -> str | None:
    """Return the name of the problem that a marker tells; None where it tells none."""
    found = MARKER.fullmatch(marker)
    return _PLACES[_number(found[2])] if found else None


def _letters(number: int, width: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in f"{number:0{width}d}")


def _number(letters: str) -> int:
    return int("".join(str(ord(one) - ord("a")) for one in letters))
