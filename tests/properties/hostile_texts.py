"""Texts made to be slow: pieces of a pattern, or of any text, repeated between a beginning and an end."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from re import _compiler, _parser  # type: ignore[attr-defined]
from typing import Any

ENDS = ("", "\x00", "!", "\n.", " x")
_POOL = "a0 _-.,:;!?'\"`*#<>()[]{}|/\\\n\t=+~@&%$éAz1„“”あ中и\u0301\u200b\u00a0٣"
_MOST_CHARACTERS = 14
_MOST_PIECES = 40
_LONGEST_PIECE = 60


@dataclass(frozen=True, slots=True)
class HostileText:
    """A piece repeated after a beginning and before an end."""

    beginning: str
    piece: str
    end: str

    def of_length(self, length: int) -> str:
        """Return the text with as many pieces as come to a length."""
        times = max(1, (length - len(self.beginning) - len(self.end)) // len(self.piece))
        return self.beginning + self.piece * times + self.end

    def __str__(self) -> str:
        """Return it as an expression."""
        return f"{self.beginning!r} + {self.piece!r} * n + {self.end!r}"


def against(pattern: str, flags: int, most: int) -> list[HostileText]:
    """Return texts against a pattern, the likeliest first, at most so many.

    Repeated are its alphabet (a character of each kind that its parts tell apart), what its repeated
    parts match, what leads to them with and without them, and the whole, in pairs and triples too. Each
    is tried from the beginning of the text and after what leads to a repeated part.
    """
    tree = _parser.parse(pattern, flags)
    # Flags that the pattern gives itself come with the tree.
    shape = _Shape(tree.state, tree.state.flags | flags)
    whole = shape.matches(tree)
    repeated = list(shape.repeated(tree, "", tree))
    characters = shape.characters(tree, [body for _, body in repeated])
    bodies = [match for _, body in repeated for match in shape.matches(body)]
    leads = list(dict.fromkeys(lead[-_LONGEST_PIECE:] for lead, _ in repeated))
    pieces = _unique(
        [
            *characters,
            *bodies,
            *leads,
            *(lead + match for lead, body in repeated for match in shape.matches(body)[:1]),
            *whole,
            *(match[:-1] for match in whole),
            *(match + " " for match in whole),
        ]
    )
    starts = ["", *[lead for lead in leads if lead][:8]]
    chance = random.Random(ascii(pattern))
    singles = [
        HostileText(start, piece, end)
        for piece in pieces
        for start in starts
        for end in ("", "\x00")
    ]
    pairs = ["".join(pair) for pair in product(pieces, repeat=2) if pair[0] != pair[1]]
    triples = ["".join(chance.choices(pieces, k=3)) for _ in range(most // 4)] if pieces else []
    chance.shuffle(singles)
    chance.shuffle(pairs)
    # The plainest always; then each kind has its share.
    plain = [HostileText("", piece, "\x00") for piece in pieces]
    combined = [
        HostileText(chance.choice(starts), piece, chance.choice(ENDS))
        for piece in (*pairs[: most // 3], *triples)
    ]
    found = [*plain, *singles[: most // 3], *combined, *singles[most // 3 :]]
    return list(dict.fromkeys(found))[:most]


def _unique(pieces: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(piece[-_LONGEST_PIECE:] for piece in pieces if piece))[:_MOST_PIECES]


class _Shape:
    """Reads a parsed pattern."""

    def __init__(self, state: Any, flags: int) -> None:
        self._state = state
        self._flags = flags & ~re.DEBUG
        self._tests: dict[Any, Any] = {}

    def matches(self, nodes: Any, most: int = 4) -> list[str]:
        """Return a few texts that a sequence of nodes matches, as far as that can be told."""
        found = [""]
        for node in nodes:
            options = self._options(node)[:most]
            # The first of each, and each other one among the first of the others.
            found = [
                *(one + options[0] for one in found),
                *(found[0] + option for option in options[1:]),
            ][:most]
        return list(dict.fromkeys(found))

    def repeated(self, nodes: Any, lead: str, whole: Any) -> Iterator[tuple[str, Any]]:
        """Yield what leads to each repeated part, and the part."""
        for at, node in enumerate(nodes):
            name, value = str(node[0]), node[1]
            before = lead + self.matches(list(nodes)[:at])[0]
            if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
                if value[1] > 1:
                    yield before, value[2]
                yield from self.repeated(value[2], before, whole)
            else:
                for part in self._parts(name, value):
                    yield from self.repeated(part, before, whole)

    def characters(self, tree: Any, bodies: list[Any]) -> list[str]:
        """Return a character of each kind that the parts of the pattern tell apart."""
        single = [node for node in self._walk(tree) if self._is_single(node)]
        within = [node for body in bodies for node in self._walk(body) if self._is_single(node)]
        pool = _POOL + "".join(
            chr(value)
            for name, value in self._walk(tree)
            if str(name) in ("LITERAL", "NOT_LITERAL")
        )
        tests = [self._compiled(node) for node in dict.fromkeys(map(_hashable, within or single))]
        found: dict[tuple[bool, ...], str] = {}
        for sign in dict.fromkeys(pool):
            found.setdefault(tuple(test(sign) is not None for test in tests), sign)
        ordered = sorted(found, key=sum, reverse=True)
        return [found[one] for one in ordered][:_MOST_CHARACTERS]

    def _options(self, node: Any) -> list[str]:
        name, value = str(node[0]), node[1]
        if name == "LITERAL":
            return [chr(value)]
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, most, body = value
            once = self.matches(body)
            return [one * min(max(least, 1), 40) for one in once] if most else [""]
        if name == "BRANCH":
            return [self.matches(branch)[0] for branch in value[1]] or [""]
        if name == "SUBPATTERN":
            return self.matches(value[3])
        if name == "ATOMIC_GROUP":
            return self.matches(value)
        if self._is_single(node):
            test = self._compiled(_hashable(node))
            signs = [sign for sign in _POOL if test(sign)]
            named = [chr(code) for code in self._codes(node) if test(chr(code))]
            return [*named[:1], *signs[:2], *named[1:3]] or [""]
        return [""]

    def _parts(self, name: str, value: Any) -> list[Any]:
        if name == "BRANCH":
            return list(value[1])
        if name == "SUBPATTERN":
            return [value[3]]
        if name == "ATOMIC_GROUP":
            return [value]
        if name in ("ASSERT", "ASSERT_NOT"):
            return [value[1]]
        if name == "GROUPREF_EXISTS":
            return [part for part in value[1:] if part is not None]
        return []

    def _walk(self, nodes: Any) -> Iterator[Any]:
        for node in nodes:
            name, value = str(node[0]), node[1]
            yield node
            if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
                yield from self._walk(value[2])
            for part in self._parts(name, value):
                yield from self._walk(part)

    def _codes(self, node: Any) -> list[int]:
        if str(node[0]) != "IN":
            return []
        codes: list[int] = []
        for name, value in node[1]:
            if str(name) == "LITERAL":
                codes.append(value)
            elif str(name) == "RANGE":
                codes += [value[0], value[1]]
        return codes

    def _is_single(self, node: Any) -> bool:
        return str(node[0]) in ("LITERAL", "NOT_LITERAL", "ANY", "IN")

    def _compiled(self, node: Any) -> Any:
        if node not in self._tests:
            name, value = node
            value = list(value) if isinstance(value, tuple) else value
            parsed = _parser.SubPattern(_parser.State(), [(name, value)])
            parsed.state.flags = self._flags
            self._tests[node] = _compiler.compile(parsed, self._flags).fullmatch
        return self._tests[node]


def _hashable(node: Any) -> Any:
    name, value = node
    return (name, tuple(value) if isinstance(value, list) else value)
