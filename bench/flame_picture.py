"""Stacks of calls, put together by part of the program and as a picture.

Rule 1: a sample belongs to the part of its innermost function of the program; a library works for who calls it.
Rule 2: the picture shows functions of the program, and below each the library that it called last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from xml.sax.saxutils import escape

PARTS = (
    ("model client", ("bot.llm", "bot.agent.spending")),
    ("recall and index", (
        "bot.tape.index", "bot.tape.search", "bot.language", "bot.agent.views.automatic_recall",
        "bot.memory.session.recall", "bot.memory.session.hybrid_search",
    )),
    ("prompt and view", (
        "bot.agent.context", "bot.agent.prompt", "bot.agent.request", "bot.agent.views",
        "bot.agent.builtin_tools", "bot.agent.tools", "bot.agent.turn_history",
    )),
    ("tape", ("bot.tape",)),
    ("message bus", ("bot.bus",)),
    ("memory", ("bot.memory",)),
    ("turn", ("bot.agent", "bot.runtime")),
    ("rest of the program", ("bot", "channels")),
)  # fmt: skip
"""Parts by the modules they consist of; the first that fits."""

LOOP = "event loop, threads"
"""Part of samples in which no function of the program is."""

_COLOURS = dict(
    zip(
        (*(part for part, _ in PARTS), LOOP),
        "#e4572e #f3a712 #a8c686 #669bbc #7768ae #c98bb9 #d9ae61 #9e9e9e #cfcfcf".split(),
        strict=True,
    )
)
_WIDTH, _HEIGHT, _CHARACTER, _TOP = 1_200, 17, 6.3, 40
_LEAST = 0.003
"""Share of the picture's width below which a call is not drawn."""


class Call(NamedTuple):
    """A function that was running.

    Attributes:
        module: Its module.
        function: Its name, with its class.
    """

    module: str
    function: str


Stack = tuple[Call, ...]
"""Calls, outermost first."""


def part_of(module: str) -> str | None:
    """Return the part that a module belongs to; None for a library."""
    for part, modules in PARTS:
        if any(module.startswith(one) for one in modules):
            return part
    return None


def by_part(samples: Mapping[Stack, int]) -> Counter[str]:
    """Count samples by part."""
    counts: Counter[str] = Counter()
    for stack, number in samples.items():
        parts = [part for call in stack if (part := part_of(call.module)) is not None]
        counts[parts[-1] if parts else LOOP] += number
    return counts


def libraries(samples: Mapping[Stack, int]) -> Counter[str]:
    """Count samples by the library that runs at the end; those of the program itself by its name."""
    counts: Counter[str] = Counter()
    for stack, number in samples.items():
        if stack:
            counts[stack[-1].module.partition(".")[0]] += number
    return counts


class Box(NamedTuple):
    """A function or library as the picture has it.

    Attributes:
        name: Its whole name.
        part: The part it belongs to.
    """

    name: str
    part: str


def shown(stack: Stack) -> list[Box]:
    """Return the boxes of a stack, outermost first."""
    boxes, outside = [], ""
    for call in stack:
        part = part_of(call.module)
        if part is None:
            outside = call.module.partition(".")[0] if boxes else ""
            continue
        boxes.append(Box(f"{call.module.removeprefix('bot.')}.{call.function}", part))
        outside = ""
    if not boxes:
        last = [Box(f"{call.module}.{call.function}", LOOP) for call in stack[-1:]]
        return [Box(LOOP, LOOP), *last]
    return [*boxes, Box(outside, LOOP)] if outside else boxes


@dataclass(slots=True)
class _Node:
    box: Box
    samples: int = 0
    below: dict[Box, _Node] = field(default_factory=dict)


def picture(samples: Mapping[Stack, int], title: str) -> str:
    """Return an SVG: each function as wide as its share, the functions that it called below it."""
    root = _Node(Box("a turn", LOOP))
    for stack, number in samples.items():
        node = root
        node.samples += number
        for box in shown(stack):
            node = node.below.setdefault(box, _Node(box))
            node.samples += number
    boxes: list[str] = []
    depth = _draw(root, 0, 0, _WIDTH / max(root.samples, 1), boxes)
    height = (depth + 1) * _HEIGHT + _TOP + 4
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'font-family="sans-serif" font-size="11" role="img"><title>{escape(title)}</title>'
        f'<rect width="100%" height="100%" fill="#fff"/>'
        f'<text x="4" y="14" font-size="13">{escape(title)}</text>'
    )
    return "\n".join([head, *_legend(), *boxes, "</svg>", ""])


def _legend() -> list[str]:
    """Return a line with the parts in their colours."""
    boxes, x = [], 4.0
    for name, colour in _COLOURS.items():
        boxes.append(
            f'<rect x="{x:.0f}" y="22" width="10" height="10" fill="{colour}"/>'
            f'<text x="{x + 14:.0f}" y="31">{escape(name)}</text>'
        )
        x += 28 + _CHARACTER * len(name)
    return boxes


def _draw(node: _Node, x: float, depth: int, scale: float, boxes: list[str]) -> int:
    """Draw a function and what is below it; return how deep that goes."""
    width, y = node.samples * scale, depth * _HEIGHT + _TOP
    share = 100 * width / _WIDTH
    fits = int((width - 4) / _CHARACTER)
    # A class and its method say more than the package.
    name = ".".join(node.box.name.split(".")[-2:])
    short = name if len(name) <= fits else f"{name[: fits - 1]}…"
    label = f'<text x="{x + 2:.1f}" y="{y + 12}">{escape(short)}</text>' if fits > 3 else ""
    boxes.append(
        f'<g><title>{escape(node.box.name)}: {share:.1f} %</title><rect x="{x:.1f}" y="{y}" '
        f'width="{width:.1f}" height="{_HEIGHT - 1}" fill="{_COLOURS[node.box.part]}" rx="1"/>{label}</g>'
    )
    deepest = depth
    for below in sorted(node.below.values(), key=lambda one: -one.samples):
        if below.samples * scale >= _LEAST * _WIDTH:
            deepest = max(deepest, _draw(below, x, depth + 1, scale, boxes))
        x += below.samples * scale
    return deepest


def share_table(samples: Mapping[Stack, int], cpu_ms: float) -> Sequence[tuple[str, float, float]]:
    """Return each part with its share in percent and its milliseconds of a turn, the largest first."""
    counts = by_part(samples)
    whole = max(counts.total(), 1)
    return [(part, 100 * n / whole, cpu_ms * n / whole) for part, n in counts.most_common()]
