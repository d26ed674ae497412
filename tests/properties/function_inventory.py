"""Functions of the program that are given texts, found by importing it.

A function is driven where every value that it must be given is a text or of a type in ``SAMPLES``. In the
packages of ``TEXTS`` each one that takes a text must be driven, or stand in ``LEFT_OUT`` with the reason.
"""

from __future__ import annotations

import importlib
import inspect
import io
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any, TextIO

from hostile_texts import HostileText
from pattern_inventory import modules

from bot.language.clause import Clause
from bot.language.clauses import parse_clauses
from bot.language.parsed_claim import ParsedClaim, parse_claim
from bot.language.parsed_facts import parse_fact
from bot.llm.base import ModelRequest
from bot.memory.records.fact import Evidence, Fact
from bot.memory.session.recall import RecalledPassage as Recalled
from bot.offline.candidates import Candidate
from bot.offline.intents import ParsedQuestion
from bot.offline.reference_parser import ParsedReference, ProblemNotes, parse_problem
from bot.offline.request_parser import ParsedRequest, Passage, UserMessage, parse_request
from bot.tape.entries import TapeEntry, message

TEXTS = (
    "bot.agent.views",
    "bot.agent.commands.parser",
    "bot.agent.consolidation.evidence_checker",
    "bot.language",
    "bot.offline",
    "bot.memory.records.evidence",
    "bot.memory.records.fact",
    "bot.memory.records.proposals",
    "bot.memory.session.state.fact_markdown",
    "bot.memory.erasure",
    "bot.memory.gate.alignment",
    "bot.memory.gate.batch_decision",
    "bot.memory.gate.cited_sentences",
    "bot.memory.gate.claim_support",
    "bot.memory.gate.current_facts",
    "bot.memory.gate.fact_similarity",
    "bot.memory.gate.instruction_detection",
    "bot.memory.gate.write_gate",
    "bot.memory.gate.secret_detection",
    "bot.tape.index.terms",
    "bot.core.text",
    "bot.core.telemetry.redaction",
    "bot.inspector.rendering",
    "channels.text",
    "channels.console.terminal_text",
    "channels.discord.render",
    "channels.telegram.render",
)

# Why a function meets no long text of somebody else by itself.
LEFT_OUT = {
    "bot.agent.views.exact.exact_context": "joins what a fold and its window already hold",
    "bot.agent.views.exact.anchors_in_view": "chooses entries by their ids",
    "bot.language.semantic_roles._people_in_order": "a claim and a clause have at most 2,000 characters",
    "bot.memory.gate.write_support._asked_for": "an order has at most 1,000 characters, a draft 8,000",
    "bot.memory.gate.claim_support._missing": "a claim has at most 2,000 characters",
    "bot.offline.changes.group_by_change": "compares at most five findings with 80 passages by their terms",
    "bot.offline.reference_parser.matching_values": "a question has at most 1,000 characters",
    "bot.offline.candidates.match_level": "weighs terms that were found",
    "bot.offline.candidates.with_names": "compares at most 80 passages with a question of 1,000 characters",
    "bot.memory.records.fact_fold.batch_entry": "writes an outcome down",
    "bot.memory.records.fact_fold.bus_entry": "writes an outcome down",
    "bot.memory.erasure.affected_records.find_affected_records": "goes through records; BusScrubber's wording is driven itself",
    "bot.memory.erasure.erasure_plan.with_beliefs": "goes through records by their ids",
    "bot.memory.erasure.erasure_plan.is_turn_output": "compares ids",
    "bot.memory.erasure.erasure_requests.request_event": "writes a survey down",
    "bot.offline.memory_text._without_superseded": "a message gives at most sixty facts",
    "bot.offline.memory_text.merge_facts": "memory has at most 8,192 bytes, a message at most sixty facts",
    "bot.memory.session.bus.write_signals._progress": "compares a text with each that is known; both are bounded",
    "bot.core.http.sockets.bind": "the host that the owner set",
    "bot.core.telemetry.monitoring_http.bound_socket": "the host that the owner set",
    "bot.inspector.reading.facts._says": "a fact is bounded, and what is sought stands in an address",
    "bot.tape.server.tokens.TokenGrant.can_see": "the patterns of tapes that the owner granted",
    "bot.inspector.rendering.render_page": "needs a request; what it renders is escaped by jinja2",
}
# These act on the world, or on what the owner wrote.
ACTS = (
    "bot.cli",
    "bot.runtime.app",
    "bot.runtime.settings",
    "bot.core.database",
    "bot.tape.stores.postgres",
    "bot.bus.postgres",
)

NOW = datetime(2026, 2, 10, 12, tzinfo=UTC)
SAMPLES: dict[Any, Callable[[str], Any]] = {
    str: lambda text: text,
    bytes: lambda text: text.encode("utf-8", "replace"),
    int: lambda _: 80,
    float: lambda _: 0.5,
    bool: lambda _: True,
    date: lambda _: NOW.date(),
    datetime: lambda _: NOW,
    tzinfo: lambda _: UTC,
    timedelta: lambda _: timedelta(hours=1),
    TextIO: lambda _: io.StringIO(),
    Any: lambda text: text,
    ParsedClaim: lambda text: parse_claim(text, None, frozenset()),
    Clause: lambda text: parse_clauses(f"I say {text}")[0],
    Fact: lambda text: Fact(1, text),
    Recalled: lambda text: Recalled("2026-11-24", "Ada", text, 1, 1.0),
    Passage: lambda text: Passage(text, "memory"),
    ParsedRequest: lambda text: parse_request(
        ModelRequest([{"role": "system", "content": text}, {"role": "user", "content": text}])
    ),
    ParsedQuestion: lambda text: ParsedQuestion(
        text, "value", (frozenset({"a"}),), frozenset(), text
    ),
    Candidate: lambda text: Candidate(parse_fact(text), text, "Ada", "2026-03-02 10:00"),
    UserMessage: lambda text: UserMessage(text, "Ada"),
    TapeEntry: lambda text: message("user", text),
    Evidence: lambda text: Evidence("fake:1", 1, text, "Ada", origin="member"),
    ParsedReference: lambda text: ParsedReference(text, text),
    ProblemNotes: lambda text: (
        parse_problem(f"Problem at hand: {text}\nopen: {text}") or ProblemNotes(text)
    ),
}


_OBJECTS = {
    Candidate,
    ParsedClaim,
    Clause,
    Fact,
    Passage,
    ParsedRequest,
    ParsedQuestion,
    UserMessage,
    TapeEntry,
    ParsedReference,
    ProblemNotes,
}


class DistinctWords(HostileText):
    """Words of which no two are alike, between a beginning and an end that each of them has."""

    def of_length(self, length: int) -> str:
        """Return as many words as come to a length."""
        size = len(self.beginning) + len(self.end) + 5
        return "".join(
            f"{self.beginning}{_letters(number)}{self.end}" for number in range(length // size + 1)
        )[:length]

    def __str__(self) -> str:
        """Return it as an expression."""
        return f"words that differ, each {self.beginning!r} + word + {self.end!r}"


def _letters(number: int) -> str:
    return "".join(chr(97 + (number // 26**place) % 26) for place in range(5))


def hostile_texts() -> list[HostileText]:
    """Return texts of every kind that is hard for somebody."""
    pieces = [
        *("a", "A", "1", " ", "\n", "\t", "_", ".", "?", "-", "*", ">", "[", "]", "(", "`", "<", '"', "'"),
        *("„", "“", "«", "|", "\\", "#", "&", "~", ":", ",", "/", "@", "{", "$", "é", "あ", "中", "я", "م"),
        *("\u0301\u0316", "\u200b", "😀", "\U0001f468\u200d", "\x00", "\ud800", "\r\n", "ﷺ", "İ"),
        *("a ", "A. ", "1 ", "1,", "0.1", "a\n", "\n\n", "\n ", "__a", "-  ", "- ", "* a\n", "> ", ">\n", "1. a\n"),
        *("[a](", "](", "![", "[a]: b\n", "``a", "```\n", "~~~\n", "<a", "<a>", "</", "<!--", "||a", "|a|\n"),
        *("| a | b |\n|---|---|\n", "**a", "*a_", "a**b", "\\(", "$a", "# a\n", "a\n=\n", "&amp", "\\\\"),
        *("https://a.b/", "http://", "www.a", "a@b.", "@a ", "sk-a", "key=", "a=b ", "2026-01-01 ", "12:00 "),
        *("“a” ", '"a" ', "a-b", "a'b", "A b ", "I am A and ", "My dog is A. ", "not ", "if ", "and ", "Bob: "),
        *("Bob (1): ", "the user ", "The user likes a. ", "remember that ", "forget ", "what is my ", "said "),
        *('{"a":', "[1,", "<memory>", "[2026-01-01 10:00] ", "<file a>\n", "<handoff a>\n", "我说", "私は", "日 "),
    ]  # fmt: skip
    found = [
        HostileText("", piece, ("", "\x00")[at % 2 if len(piece) > 1 else 1])
        for at, piece in enumerate(pieces)
    ]
    nested = [
        HostileText(begin, piece, "")
        for begin in ("- ", "> ", "I like ", "| a |\n|---|\n", "```", "forget ")
        for piece in ("[", "> ", "- ", "*a ", "`a", "<a ", "a and ", "| a ", "    ", "(a")
    ]
    differ: list[HostileText] = [
        DistinctWords(begin, "a", end)
        for begin, end in (
            ("", " "),
            ("", "\n"),
            ("", ". "),
            ("I like ", ". "),
            ("[", "](b) "),
            ("[", "]: b\n"),
            ("- ", "\n"),
            ('"', '" '),
            ("", ": a, "),
            ("@", " "),
            ("The user likes A", " and "),
            ("<", ">"),
            ("A", " "),
            ("A", "'s "),
            ("**", "** "),
            ("`", "` "),
        )
    ]
    return [*found, *nested, *differ]


def functions() -> tuple[list[tuple[str, Callable[[str], object]]], list[str]]:
    """Return what drives each function with a text, and what is to be done about those not driven."""
    driven: list[tuple[str, Callable[[str], object]]] = []
    problems: list[str] = []
    for _, name in modules():
        if name.startswith(ACTS):
            continue
        module = importlib.import_module(name)
        for key, value in [*vars(module).items()]:
            if inspect.isclass(value) and value.__module__ == name:
                driven += _methods(f"{name}.{key}", value)
                continue
            function = inspect.unwrap(value) if callable(value) else value
            if not inspect.isfunction(function) or function.__module__ != name:
                continue
            place = f"{name}.{key}"
            if inspect.iscoroutinefunction(function) or place in LEFT_OUT:
                continue
            made = _makers(function)
            if made is None:
                continue
            if made:
                driven.append((place, _run(function, made)))
            elif name.startswith(TEXTS) and not key.startswith("_"):
                # A private function is reached through the public ones.
                problems.append(
                    f"{place}{inspect.signature(function)}: give a sample of its types in SAMPLES of"
                    " tests/properties/function_inventory.py, or say in LEFT_OUT why it meets no long text"
                )
    return driven, problems


def _methods(place: str, made_of: type) -> Iterator[tuple[str, Callable[[str], object]]]:
    """Yield what drives the methods that are given a text, of objects that can be made."""
    try:
        constructor = _makers(made_of.__init__, texts=False)
    except ValueError:
        return
    if constructor is None:
        return
    for key, method in vars(made_of).items():
        if not inspect.isfunction(method) or inspect.iscoroutinefunction(method):
            continue
        if (
            key.startswith("_") and key not in ("__call__", "__contains__")
        ) or f"{place}.{key}" in LEFT_OUT:
            continue
        if made := _makers(method):
            yield f"{place}.{key}", _run_method(made_of, constructor, method, made)


def _run_method(
    made_of: type,
    constructor: dict[str, Callable[[str], Any]],
    method: Callable[..., object],
    made: dict[str, Callable[[str], Any]],
) -> Callable[[str], object]:
    def run(text: str) -> object:
        owner = made_of(**{name: make(text) for name, make in constructor.items()})
        result = method(owner, **{name: make(text) for name, make in made.items()})
        return list(result) if isinstance(result, Iterator) else result

    return run


def _makers(
    function: Callable[..., object], *, texts: bool = True
) -> dict[str, Callable[[str], Any]] | None:
    """Return how each value is made; empty where one cannot be, None where no text is among them."""
    try:
        hints = typing.get_type_hints(function)
    except (NameError, TypeError):
        return None
    needed = [
        one
        for one in inspect.signature(function).parameters.values()
        if one.default is one.empty
        and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        and one.name != "self"
    ]
    if not texts and not needed:
        return {}
    if texts and not any(_holds_text(hints.get(one.name)) for one in needed):
        return None
    made = {one.name: _maker(hints.get(one.name)) for one in needed}
    if None in made.values():
        return {} if texts else None
    return made  # type: ignore[return-value]


def _holds_text(hint: Any) -> bool:
    plain = hint is str or (isinstance(hint, type) and hint in _OBJECTS)
    return plain or any(_holds_text(part) for part in typing.get_args(hint))


def _maker(hint: Any) -> Callable[[str], Any] | None:
    if isinstance(hint, typing.Hashable) and hint in SAMPLES:
        return SAMPLES[hint]
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        makers = [one for part in parts if part is not types.NoneType and (one := _maker(part))]
        # None is a value, too, of whatever cannot be made.
        return makers[0] if makers else (lambda _: None) if types.NoneType in parts else None
    if origin is typing.Literal:
        return lambda _: parts[0]
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return (
            None
            if len(parts) < 2 or _maker(parts[1]) is None
            else lambda text: {
                key: _maker(parts[1])(text)  # type: ignore[misc]
                for key in ("content", "role", "text", text[:40])
            }
        )
    if origin in (list, tuple, set, frozenset, Sequence, Iterable, Iterator, AbstractSet):
        of = next((part for part in parts if part is not Ellipsis), None)
        if of is not str:
            one = _maker(of)
            if one is None:
                return None
            return lambda text: _collected(origin, [one(text)])
        return lambda text: _collected(origin, [*text.splitlines(), text])
    return None


def _collected(origin: Any, items: list[Any]) -> Any:
    if origin in (set, frozenset, AbstractSet):
        return frozenset(items) if origin is not set else set(items)
    return tuple(items) if origin is tuple else iter(items) if origin is Iterator else items


def _run(
    function: Callable[..., object], made: dict[str, Callable[[str], Any]]
) -> Callable[[str], object]:
    kinds = inspect.signature(function).parameters

    def run(text: str) -> object:
        values = {name: make(text) for name, make in made.items()}
        positional = [v for n, v in values.items() if kinds[n].kind is not kinds[n].KEYWORD_ONLY]
        named = {n: v for n, v in values.items() if kinds[n].kind is kinds[n].KEYWORD_ONLY}
        result = function(*positional, **named)
        return list(result) if isinstance(result, Iterator) else result

    return run
