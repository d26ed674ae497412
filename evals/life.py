"""A person whose life changes, and a model that consolidates what they say, now and then badly.

The same seed tells the same life. What is true at each moment is known, so that what is remembered can
be compared with it.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from bot.llm.base import (
    CapabilityProfile,
    ModelReply,
    ModelRequest,
    OnText,
    ToolCall,
    Usage,
    estimate_tokens,
)
from bot.testing.scripted_model import judgement_reply

_NAMES = (
    "Rome Oslo Bergen Lyon Porto Graz Turin Basel Leeds Malmo Gdansk Vilnius Riga Ghent".split()
)
_FIRMS = "Statkraft Nordea Equinor Siemens Airbus Bosch Maersk Vestas Philips Nokia Volvo Skanska".split()
_PEOPLE = (
    "Kim Lee Mara Jonas Petra Sven Aida Omar Ruth Felix Greta Igor Nadia Paul Vera Hugo".split()
)
_THINGS = (
    "tea coffee cocoa juice milk water mate chai soup bread rice pasta curry salad cake".split()
)
_COLOURS = "blue green red yellow orange purple black white silver brown pink teal".split()
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()


@dataclass(frozen=True, slots=True)
class Attribute:
    """Something of which one value is true at a time.

    Attributes:
        name: What it is.
        values: That it takes.
        said: How a new value is said.
        fact: How it is kept.
        corrected: How a value is corrected, with the wrong one.
        about: What facts about it have in common.
    """

    name: str
    values: tuple[str, ...]
    said: tuple[str, ...]
    fact: str
    corrected: str = ""
    about: str = ""

    def keeps(self, text: str) -> str | None:
        """Return the value that a fact gives to this attribute; None where it is about another."""
        if not re.search(self.about or self.name, text):
            return None
        # "not in Rome" is what it was.
        told = re.split(r",? not ", text)[0]
        return next((one for one in self.values if re.search(rf"\b{re.escape(one)}\b", told)), None)


def _one(
    name: str, values: list[str], said: str, fact: str, corrected: str = "", about: str = ""
) -> Attribute:
    return Attribute(name, tuple(values), tuple(said.split("|")), fact, corrected, about)


ATTRIBUTES = (
    _one("home", _NAMES, "I moved to {v}.|We moved, I live in {v} now.|I live in {v} these days.",
         "The user lives in {v}.", "Actually, I live in {v}, not in {w}.", r"(?i)the user (lives|moved)"),
    _one("employer", _FIRMS, "I work at {v} now.|Since this week I work at {v}.",
         "The user works at {v}.", "Actually, I work at {v}, not at {w}.", r"(?i)the user works"),
    _one("boss", _PEOPLE, "My boss is {v} now.|By the way, my boss is {v}.",
         "The user's boss is {v}.", "Actually, my boss is {v}, not {w}."),
    _one("dentist", _PEOPLE, "My dentist is {v}.|I found a new one: my dentist is {v} now.",
         "The user's dentist is {v}."),
    _one("colour", _COLOURS, "My favourite colour is {v}.|These days my favourite colour is {v}.",
         "The user's favourite colour is {v}.", "Sorry, my favourite colour is {v}, not {w}."),
    _one("dish", _THINGS, "My favourite dish is {v}.|I think my favourite dish is {v} now.",
         "The user's favourite dish is {v}."),
    _one("shoe", [str(n) for n in range(36, 47)], "My shoe size is {v}.",
         "The user's shoe size is {v}.", "No, my shoe size is {v}, not {w}."),
    _one("phone", [f"555-01{n}" for n in range(10, 60)], "My phone number is {v}.",
         "The user's phone number is {v}."),
    _one("training", _DAYS, "My training day is {v}.|My training day is {v} from now on.",
         "The user's training day is {v}."),
    _one("deadline", [f"2026-0{m}-{d:02}" for m in (3, 4, 5) for d in (5, 12, 19, 26)],
         "My deadline is {v}.|The deadline moved: my deadline is {v} now.",
         "The user's deadline is {v}."),
)  # fmt: skip

_LASTING = (
    "I like {a}.", "I am allergic to {a}.", "My neighbour {b} plays the piano.", "I own {n} bicycles.",
    "My cousin {b} lives in {c}.", "I once studied in {c}.", "My aunt {b} is a nurse.",
)  # fmt: skip
_TALK = (
    "What a day.", "It rains again.", "Tell me a joke.", "Thanks!", "Could you sum up the news for me?",
    "How do I boil an egg?", "What is the capital of Peru?", "I slept badly.", "Good morning!",
    "What should I cook tonight?", "If I lived in Paris, would I be happier?", "Do I live in Rome?",
    "Let us talk of something else.", "Hm, interesting.", "My friend says that I work too much.",
)  # fmt: skip


@dataclass(slots=True)
class Life:
    """What somebody says, and what is true of them.

    Attributes:
        current: Values by attribute.
        former: Values that were true and are not any more.
        lasting: Statements that stay true, as facts.
        statements: How many of what was said states something.
    """

    seed: int = 1
    current: dict[str, str] = field(default_factory=dict)
    former: set[tuple[str, str]] = field(default_factory=set)
    lasting: set[str] = field(default_factory=set)
    statements: int = 0
    _once: set[str] = field(default_factory=set)

    def says(self, turns: int) -> Iterator[str]:
        """Yield one message a turn."""
        dice = random.Random(self.seed)
        for _ in range(turns):
            chance = dice.random()
            if chance < 0.1:
                yield self._changes(dice)
            elif chance < 0.12 and len(self.lasting) < 40:
                yield self._adds(dice)
            elif chance < 0.16 and self.current:
                yield self._repeats(dice)
            else:
                yield dice.choice(_TALK)

    def _changes(self, dice: random.Random) -> str:
        attribute = dice.choice(ATTRIBUTES)
        old = self.current.get(attribute.name)
        value = dice.choice([one for one in attribute.values if one != old])
        self.statements += 1
        self.current[attribute.name] = value
        if old is not None:
            self.former.add((attribute.name, old))
        self.former.discard((attribute.name, value))
        if old is not None and attribute.corrected and dice.random() < 0.4:
            return attribute.corrected.format(v=value, w=old)
        return dice.choice(attribute.said).format(v=value)

    def _repeats(self, dice: random.Random) -> str:
        name = dice.choice(list(self.current))
        attribute = next(one for one in ATTRIBUTES if one.name == name)
        return attribute.said[0].format(v=self.current[name])

    def _adds(self, dice: random.Random) -> str:
        words = {"a": dice.choice(_THINGS), "b": dice.choice(_PEOPLE), "c": dice.choice(_NAMES)}
        form = dice.choice(_LASTING)
        if "{c}" in form or "{n}" in form:
            # Each of these once: a second city of the same cousin would be a change.
            form = "I like {a}." if form in self._once else form
            self._once.add(form)
        said = form.format(**words, n=dice.randint(2, 9))
        self.statements += 1
        self.lasting.add(third(said))
        return said


def third(said: str) -> str:
    """Return a statement about oneself in the third person."""
    for mine, theirs in (
        ("I am ", "The user is "), ("I own ", "The user owns "), ("I like ", "The user likes "),
        ("I once ", "The user once "), ("My ", "The user's "),
    ):  # fmt: skip
        if said.startswith(mine):
            return theirs + said.removeprefix(mine)
    return said


_LINE = re.compile(r"#(\d+) \[[^\]]*\] USER \([^)]*\): (.*)")
_FACT = re.compile(r"\[(\d+)\] (.*) \(since [^)]*\)")


class Keeper:
    """A model that consolidates well, and now and then badly: prose, false quotes, what nobody said.

    Attributes:
        consolidations: Requests answered, in prose or not.
        invented: Claims that nobody made.
    """

    name = "keeper"
    profile = CapabilityProfile()

    def __init__(self, seed: int = 1) -> None:
        self.consolidations = 0
        self.invented: list[str] = []
        self._dice = random.Random(seed)
        self._numbers = count(1)

    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Answer a turn with a word, and a consolidation with operations."""
        prompt = sum(estimate_tokens(str(one.get("content"))) for one in request.messages)
        if request.purpose == "judgement":
            return judgement_reply(request, _ruling)
        if request.purpose != "consolidation":
            if on_text is not None:
                on_text("All right.")
            return ModelReply("All right.", usage=Usage(prompt, 0, 3, 0.0, 1), model=self.name)
        self.consolidations += 1
        usage = Usage(prompt, 0, 300, 0.0, 1)
        if self._dice.random() < 0.08:
            return ModelReply("I have saved everything!", usage=usage, model=self.name)
        asked = str(request.messages[-1]["content"])
        arguments = {
            "history_entry": f"Part {self.consolidations} of the talk.",
            "changes": self._operations(asked),
        }
        call = ToolCall(f"c{next(self._numbers)}", "save_memory", json.dumps(arguments))
        return ModelReply("", (call,), "tool_calls", usage, self.name)

    async def aclose(self) -> None:
        """Hold nothing."""

    def _operations(self, asked: str) -> list[dict[str, object]]:
        facts = {text: int(number) for number, text in _FACT.findall(asked)}
        newest: dict[str, tuple[int, str, str]] = {}
        made: list[dict[str, object]] = []
        for number, said in _LINE.findall(asked):
            for attribute in ATTRIBUTES:
                if (value := _told(attribute, said)) is not None:
                    newest[attribute.name] = (int(number), said, attribute.fact.format(v=value))
            if (
                any(re.fullmatch(_pattern(one), said) for one in _LASTING)
                and third(said) not in facts
            ):
                made.append(_operation("add", said, third(said)))
        for name, (_, said, text) in newest.items():
            made.append(self._kept(name, facts, said, text))
        if self._dice.random() < 0.3:
            self.invented.append(f"The user's yacht is called {self._dice.choice(_PEOPLE)}.")
            made.append(_operation("add", "my yacht", self.invented[-1]))
        return made

    def _kept(self, name: str, facts: dict[str, int], said: str, text: str) -> dict[str, object]:
        attribute = next(one for one in ATTRIBUTES if one.name == name)
        old = next((known for known in facts if attribute.keeps(known)), None)
        if old == text:
            return _operation("change", said, old, facts[old])
        # Half of the time it does not say that something is replaced: code must see it.
        if old is not None and self._dice.random() < 0.5:
            return _operation("change", said, text, facts[old])
        return _operation("add", said, text)


def _ruling(claim: dict[str, Any]) -> tuple[str, list[int]]:
    """Return a right judge's ruling on a claim, and the numbers of the facts that it ends."""
    said = [one["words"] for one in claim["said"]]
    for attribute in ATTRIBUTES:
        if (value := attribute.keeps(claim["claim"])) is not None:
            ended = [
                known["number"]
                for known in (*claim.get("replaces", ()), *claim.get("others", ()))
                if attribute.keeps(known["fact"]) not in (None, value)
            ]
            told = value in [_told(attribute, one) for one in said]
            return ("supported", ended) if told else ("not_supported", [])
    return ("supported" if claim["claim"] in map(third, said) else "not_supported"), []


def _operation(op: str, quote: str, text: str, fact: int | None = None) -> dict[str, object]:
    facts = [] if fact is None else [fact]
    return {"op": op, "facts": facts, "text": text, "quotes": [quote]}


def _told(attribute: Attribute, said: str) -> str | None:
    """Return the value that a message gives to an attribute."""
    for form in (*attribute.said, attribute.corrected):
        found = re.fullmatch(_pattern(form), said) if form else None
        if found is not None:
            return found["v"]
    return None


def _pattern(form: str) -> str:
    escaped = re.escape(form)
    return re.sub(r"\\\{(\w)\\\}", r"(?P<\1>[\\w-]+)", escaped)
