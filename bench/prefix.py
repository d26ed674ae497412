"""What 200 turns read: tokens of their prompts, those that no cache serves, and why not.

A cache serves what a prompt has in common with the beginning of the one before.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from bench.encodings import o200k
from bench.models import CachingModel, RememberingModel
from bench.program import program
from bench.report import Scale, Table
from bench.workload import ordinary, question
from bot.agent.context import ANSWERED_LOOKUP
from bot.llm.base import ChatMessage, ModelRequest
from bot.llm.openai_format import tools_json

_CACHED, _STORED, _PLAIN = 0.1, 1.25, 1.0
"""Prices of a token that the cache serves, that is written to it, and that passes it by."""

_FRAME = 4
"""Tokens of a message besides its text."""

_RECALLED = "From the tape and memory:\n"
_KINDS = {"user": "message", "assistant": "answer", "tool": "tool"}
_CAUSES = {
    "tools": "the tools",
    "system": "the system prompt",
    "message": "new messages and answers",
    "answer": "new messages and answers",
    "tool": "new calls and results of tools",
    "passages": "passages recalled for a message",
    "changes": "changes of memory since the system prompt was built",
    "other": "other records",
}
_WAYS = {
    "one in three asks": (ordinary, False),
    "each asks": (question, False),
    "each asks, tools": (question, True),
}
"""Conversations: what is said, and whether the model saves and looks up."""

_AGAIN = "history read again after the view was cut"

Tokens = Callable[[str], Sequence[int | str]]


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a prompt.

    Attributes:
        kind: What it is, a key of ``_CAUSES``.
        text: Its text.
        volatile: Whether no later prompt has it.
    """

    kind: str
    text: str
    volatile: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """What the prompts of a conversation cost.

    Attributes:
        tokens: All tokens.
        missed: Tokens that no cache serves, by cause.
        price: All tokens at their prices, in the price of one that passes the cache by.
    """

    tokens: int
    missed: Counter[str]
    price: float


def segments(request: ModelRequest) -> list[Segment]:
    """Return a request's parts in the order in which a provider reads them."""
    tools = json.dumps(tools_json(request.tools), separators=(",", ":"), ensure_ascii=False)
    system, *history = request.messages
    found = [Segment("tools", tools), Segment("system", str(system["content"]))]
    found += [Segment(_kind(message), _text(message)) for message in history]
    if length := request.tail_length:
        last = found.pop()
        found.append(Segment(last.kind, last.text[:-length]))
        found += _tail(last.text[-length:])
    return found


def _kind(message: ChatMessage) -> str:
    return "tool" if message.get("tool_calls") else _KINDS[message["role"]]


def _text(message: ChatMessage) -> str:
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    return f"{json.dumps(calls) if calls else ''}{message.get('content') or ''}"


def _tail(text: str) -> Iterator[Segment]:
    """Return the records at the end of a prompt, one by one."""
    for record in text.split("\n\n"):
        changes = record.startswith(("Changes of long-term", "Long-term memory,"))
        kind = "passages" if record.startswith(_RECALLED) else "changes" if changes else "other"
        if record:
            yield Segment(kind, record, volatile=True)


def staying(prompts: Sequence[list[Segment]]) -> list[list[Segment]]:
    """Return prompts in which recalled passages stay with the message that they were recalled for.

    A passage that is in view already is not repeated.
    """
    kept: dict[str, str] = {}
    found = []
    for prompt in prompts:
        asked = [part.text for part in prompt if part.kind == "message"]
        recalled = [part.text for part in prompt if part.kind == "passages"]
        if asked[-1] not in kept:
            shown = {line for text in asked for line in kept.get(text, "").splitlines()}
            lines = [line for text in recalled for line in text.splitlines() if line not in shown]
            kept[asked[-1]] = "\n".join(lines)
        found.append(list(_with_passages(prompt, kept)))
    return found


def lasting(prompts: Sequence[list[Segment]]) -> list[list[Segment]]:
    """Return prompts in which what a look-up found stays in view, as results of other tools do."""
    whole: dict[str, str] = {}
    found = []
    for prompt in prompts:
        shown: list[Segment] = []
        for part in prompt:
            before = "".join(one.text for one in shown[-2:])
            if part.text == ANSWERED_LOOKUP:
                shown.append(Segment(part.kind, whole[before]))
            else:
                whole[before] = part.text
                shown.append(part)
        found.append(shown)
    return found


def _with_passages(prompt: Sequence[Segment], kept: dict[str, str]) -> Iterator[Segment]:
    for part in prompt:
        if part.kind != "passages":
            yield part
        if part.kind == "message" and (lines := kept.get(part.text)):
            yield Segment("passages", lines)


def read(prompts: Sequence[list[Segment]], tokens: Tokens) -> Reading:
    """Reckon what prompts cost, each with the one before in the cache."""
    whole, price = 0, 0.0
    missed: Counter[str] = Counter()
    before: list[Segment] = []
    for prompt in prompts:
        known, same = {part.text for part in before}, True
        for place, part in enumerate(prompt):
            own = tokens(part.text)
            size = len(own) + (0 if part.volatile else _FRAME)
            other = before[place] if same and place < len(before) else None
            served = size
            if other is None or other.text != part.text:
                same = False
                served = 0 if other is None else _shared(own, tokens(other.text))
            again = part.text in known and part.kind in _KINDS.values()
            missed[_AGAIN if again else _CAUSES[part.kind]] += size - served
            whole += size
            price += _CACHED * served + (_PLAIN if part.volatile else _STORED) * (size - served)
        before = prompt
    return Reading(whole, missed, price)


def _shared(one: Sequence[int | str], other: Sequence[int | str]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


async def measure(scale: Scale) -> list[Table]:
    """Hold conversations and compare their prompts."""
    turns = scale.pick(200, 60)
    settings = {"memory_window": 20} if scale.quick else {}
    tokens, name = _tokens()
    held: dict[str, RememberingModel] = {}
    for way, (words, tools) in _WAYS.items():
        model = held[way] = RememberingModel(tools=tools)
        home = scale.work / f"home-{len(held)}"
        async with program(home, model, words=words, **settings) as running:
            for _ in range(turns):
                await running.turn("prefix")
    prompts = {way: [segments(one) for one in model.requests] for way, model in held.items()}
    readings = {way: read(found, tokens) for way, found in prompts.items()}
    return [
        _fixed(next(iter(prompts.values()))[0], tokens, name),
        _totals(readings, held, turns),
        _causes(readings, turns),
        _placements(prompts, tokens, turns),
        await _by_window(scale, turns, tokens),
    ]


async def _by_window(scale: Scale, turns: int, tokens: Tokens) -> Table:
    """Hold a conversation with views of several sizes, and count its consolidations, too."""
    rows = []
    for window in (50, 100, 160):
        model = CachingModel()
        home = scale.work / f"window-{window}"
        async with program(home, model, words=question, memory_window=window) as running:
            for _ in range(turns):
                await running.turn("prefix")
        found = read([segments(one) for one in model.requests], tokens)
        ways = sum(
            one.purpose == "consolidation" and len(one.messages) > 2 for one in model.requests
        )
        rows.append(
            (
                window,
                found.tokens,
                found.missed.total(),
                round(found.price),
                model.consolidations,
                ways,
            )
        )
    return Table(
        f"What {turns} turns and their consolidations cost by TAPEBOT_MEMORY_WINDOW",
        (
            "window",
            "tokens",
            "not cached",
            "price",
            "consolidations",
            "in the conversation's prompt",
        ),
        rows,
        ["each message asks; the model says that a cache serves its prompts"],
    )


def _tokens() -> tuple[Tokens, str]:
    """Return what cuts a text into tokens, and its name."""
    encode = o200k()
    if encode is None:
        return lambda text: [text[at : at + 4] for at in range(0, len(text), 4)], "characters / 4"
    return cache(encode), "o200k_base"


def _fixed(prompt: Sequence[Segment], tokens: Tokens, name: str) -> Table:
    tools, system, *_ = (len(tokens(part.text)) for part in prompt)
    return Table(
        "What each prompt of a new session begins with",
        ("part", "tokens"),
        [("tools", tools), ("system prompt", system), ("both", tools + system)],
        [f"counted by {name}, as everything below"],
    )


def _totals(
    readings: Mapping[str, Reading], held: Mapping[str, RememberingModel], turns: int
) -> Table:
    rows = [
        (
            way,
            len(held[way].requests),
            found.tokens,
            found.missed.total(),
            100 - 100 * found.missed.total() / found.tokens,
            round(found.price),
            held[way].consolidations,
        )
        for way, found in readings.items()
    ]
    return Table(
        f"Tokens of the prompts of {turns} turns",
        ("conversation", "prompts", "tokens", "not cached", "% cached", "price", "consolidations"),
        rows,
        [
            f"price: in the price of a token that passes the cache by; from the cache {_CACHED}, "
            f"written to it {_STORED}",
        ],
    )


def _causes(readings: Mapping[str, Reading], turns: int) -> Table:
    names = dict.fromkeys([*_CAUSES.values(), _AGAIN])
    return Table(
        f"Tokens of {turns} turns that no cache serves, by cause",
        ("cause", *readings),
        [(name, *(found.missed[name] for found in readings.values())) for name in names],
    )


def _placements(prompts: Mapping[str, list[list[Segment]]], tokens: Tokens, turns: int) -> Table:
    rows = []
    for way, found in prompts.items():
        for place, moved in (
            ("as it is", found),
            ("passages stay", staying(found)),
            ("look-ups stay", lasting(found)),
        ):
            if moved == found and moved is not found:
                continue
            cost = read(moved, tokens)
            rows.append((f"{way}: {place}", cost.tokens, cost.missed.total(), round(cost.price)))
    return Table(
        f"What is recalled, and how long it stands in the prompts of {turns} turns",
        ("conversation", "tokens", "not cached", "price"),
        rows,
        [
            "as it is: passages stand at the end of the prompt in their turn only, and what a look-up "
            "found until the answer",
            "stay: with their message or call as long as it is in view; no passage twice",
        ],
    )
