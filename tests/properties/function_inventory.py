"""Functions that are given texts, found by importing modules: ``function_inventory.py [MODULE ...] FIRST PROGRESS`` measures them.

A function is driven where every value that it must be given is a text or of a type in ``SAMPLES``.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any, TextIO

from text_costs import HERE, HostileText, Work, main

from bot.memory.records.fact import Evidence, Fact
from bot.memory.session.recall import RecalledPassage as Recalled
from bot.tape.entries import TapeEntry, message

# What acts on the world, or on what the owner wrote; and servers that only tests talk to.
ACTS = (
    *(
        "bot.testing",
        "bot.__main__",
        "bot.agent.code.sandbox_program",
        "bot.cli",
        "bot.runtime.app",
        "bot.runtime.settings",
        "bot.core.database",
    ),
    *("bot.tape.stores.postgres", "bot.bus.postgres"),
)
# What meets no long text of somebody else: it is bounded before, or set by the owner.
LEFT_OUT = set(
    """
    bot.agent.texts._chained bot.memory.records.file_names.name_key
    bot.runtime.setup.file_text.keys bot.runtime.setup.file_text.change_keys
    bot.agent.views.exact.exact_context bot.agent.views.exact.anchors_in_view
    bot.core.http.sockets.bind bot.core.telemetry.monitoring_http.bound_socket
    bot.inspector.reading.facts._says bot.inspector.rendering.render_page
    bot.memory.erasure.erasure_plan.is_turn_output
    bot.memory.records.fact_fold.batch_entry bot.memory.records.fact_fold.bus_entry
    bot.memory.session.bus.write_signals._progress
    """.split()
)

Made = Callable[[str], Any]
NOW = datetime(2026, 2, 10, 12, tzinfo=UTC)
SAMPLES: dict[Any, Made] = {
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
    Fact: lambda text: Fact(1, text),
    Recalled: lambda text: Recalled("2026-11-24", "Ada", text, 1, 1.0),
    TapeEntry: lambda text: message("user", text),
    Evidence: lambda text: Evidence("fake:1", 1, text, "Ada", origin="member"),
}
_OBJECTS = {str, *(one for one in SAMPLES if one.__module__[:4] == "bot.")} - {Recalled, Evidence}


class DistinctWords(HostileText):
    """Words of which no two are alike, between a beginning and an end that each of them has."""

    def of_length(self, length: int) -> str:
        size = len(self.beginning) + len(self.end) + 5
        words = (
            "".join(chr(97 + number // 26**place % 26) for place in range(5))
            for number in range(length // size + 1)
        )
        return "".join(f"{self.beginning}{word}{self.end}" for word in words)[:length]

    def __str__(self) -> str:
        return f"words that differ, each {self.beginning!r} + word + {self.end!r}"


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
        *("Bob (1): ", "the user ", "The user likes a. ", "remember: ", "forget ", "what is my ", "said "),
        *('{"a":', "[1,", "<memory>", "[2026-01-01 10:00] ", "<file a>\n", "<handoff a>\n", "我说", "私は", "日 "),
    ]  # fmt: skip
    nested = [
        HostileText(begin, piece, "")
        for begin in ("- ", "> ", "I like ", "| a |\n|---|\n", "```", "forget ")
        for piece in ("[", "> ", "- ", "*a ", "`a", "<a ", "a and ", "| a ", "    ", "(a")
    ]
    differ = [
        *(("", " "), ("", "\n"), ("", ". "), ("I like ", ". "), ("[", "](b) "), ("[", "]: b\n")),
        *(("- ", "\n"), ('"', '" '), ("", ": a, "), ("@", " "), ("The user likes A", " and ")),
        *(("<", ">"), ("A", " "), ("A", "'s "), ("**", "** "), ("`", "` ")),
    ]
    return [
        *(HostileText("", one, "" if len(one) > 1 and not at % 2 else "\x00") for at, one in enumerate(pieces)),
        *nested,
        *(DistinctWords(begin, "a", end) for begin, end in differ),
    ]  # fmt: skip


def modules() -> list[str]:
    """Return the names of the program's modules whose functions may be driven."""
    root = HERE.parents[1]
    paths = [path for package in ("bot", "channels") for path in (root / package).rglob("*.py")]
    names = [".".join(path.relative_to(root).with_suffix("").parts) for path in sorted(paths)]
    return [one.removesuffix(".__init__") for one in names if not one.startswith(ACTS)]


def functions(names: Iterable[str]) -> Iterator[tuple[str, Made]]:
    """Yield the name of each function of modules that can be driven, and what drives it."""
    for name in names:
        for key, value in [*vars(importlib.import_module(name)).items()]:
            function = inspect.unwrap(value) if callable(value) else value
            own = inspect.isfunction(function) and function.__module__ == name
            if own and (run := _driven(f"{name}.{key}", function)) is not None:
                yield f"{name}.{key}", run


def _driven(place: str, function: Callable[..., Any]) -> Made | None:
    makers = None if place in LEFT_OUT else _makers(function)
    if inspect.iscoroutinefunction(function) or not makers or not _takes_text(function):
        return None
    kinds = inspect.signature(function).parameters

    def run(text: str) -> None:
        values = {name: make(text) for name, make in makers.items()}
        named = {n: v for n, v in values.items() if kinds[n].kind is kinds[n].KEYWORD_ONLY}
        result = function(*(v for n, v in values.items() if n not in named), **named)
        if isinstance(result, Iterator):
            list(result)

    return run


def _needed(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of the values that must be given."""
    try:
        hints = typing.get_type_hints(function)
    except (NameError, TypeError):
        hints = {}
    return {
        one.name: hints.get(one.name)
        for one in inspect.signature(function).parameters.values()
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    }


def _takes_text(function: Callable[..., Any]) -> bool:
    def holds(hint: Any) -> bool:
        plain = isinstance(hint, type) and hint in _OBJECTS
        return plain or any(map(holds, typing.get_args(hint)))

    return any(map(holds, _needed(function).values()))


def _makers(function: Callable[..., Any]) -> dict[str, Made] | None:
    """Return how each value is made; None where one cannot be."""
    made = {name: _maker(hint) for name, hint in _needed(function).items()}
    return None if None in made.values() else typing.cast(dict[str, Made], made)


def _maker(hint: Any) -> Made | None:
    if isinstance(hint, typing.Hashable) and hint in SAMPLES:
        return SAMPLES[hint]
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        makers = [one for part in parts if part is not types.NoneType and (one := _maker(part))]
        # None is a value, too, of whatever cannot be made.
        return makers[0] if makers else (lambda _: None) if types.NoneType in parts else None
    if origin is typing.Literal:
        return lambda _: parts[0]
    of = _maker(parts[-1] if origin in (dict, Mapping) else parts[0]) if parts else None
    if of is None or not isinstance(origin, type):
        return None
    if issubclass(origin, Mapping):
        return lambda text: {key: of(text) for key in ("content", "role", "text", text[:40])}
    if origin not in (list, tuple, set, frozenset, Sequence, Iterable, Iterator, AbstractSet):
        return None
    kind: Any = {Sequence: list, Iterable: list, Iterator: iter, AbstractSet: frozenset}.get(
        origin, origin
    )
    return lambda text: kind([*text.splitlines(), text] if parts[0] is str else [of(text)])


def _ending(run: Made) -> Made:
    def ended(text: str) -> None:
        # A refusal is an end, too; its cost is what counts.
        with contextlib.suppress(Exception):
            run(text)

    return ended


if __name__ == "__main__":
    texts = hostile_texts()
    found = functions(sys.argv[1:-2] or modules())
    main([Work(name, _ending(run), texts) for name, run in found], 2_000)
