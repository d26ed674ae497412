"""What a turn costs, by the length of its tape and by the messages in view."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.machine import Disk, durable_hop
from bench.models import InstantModel
from bench.program import Program, Spent, program
from bench.report import Cell, Scale, Table, ms, p50, p95
from bench.seed import seed_in_view, seed_long

_VIEW = 20
_FLAT = 1.2
# Before the answer: the message's acceptance, the turn's beginning and its end.
_DURABLE_WRITES = 3
_SETTINGS = {"context_tokens": 100_000_000, "memory_window": 100_000, "recall_tokens": 0}
_COUNTERS = ("wchar", "syscr", "syscw")


@dataclass(frozen=True, slots=True)
class _Turn:
    spent: Spent
    io: dict[str, int] | None


def process_io() -> dict[str, int] | None:
    """Return the kernel's counters of this process; None where it keeps none."""
    try:
        text = Path("/proc/self/io").read_text(encoding="ascii")
    except OSError:
        return None
    pairs = (line.split(": ") for line in text.splitlines())
    return {name: int(value) for name, value in pairs if name in _COUNTERS}


async def measure(scale: Scale) -> list[Table]:
    """Measure both, and the first turn after opening."""
    lengths = scale.pick(100_000, 10_000)
    home = scale.work / "long"
    entries = await seed_long(home, {"10": 10, "1000": 1_000, "long": lengths})
    limits: list[float] = []
    taken = await _side_by_side(home, entries, scale, limits)
    recalling = await _side_by_side(home, entries, scale, [], recall_tokens=400)
    opened = await _first_turns(home, entries, scale)
    by_view = await _by_view(scale)
    return [
        _length_table(entries, taken, opened, limits),
        _recall_table(entries, taken, recalling),
        _view_table(by_view, p50(limits)),
    ]


async def _side_by_side(
    home: Path,
    entries: dict[str, int],
    scale: Scale,
    limits: list[float],
    *,
    recall_tokens: int = 0,
) -> dict[str, list[_Turn]]:
    """Take turns on all tapes in one run, so that the machine's noise meets all alike."""
    taken: dict[str, list[_Turn]] = {chat: [] for chat in entries}
    disk = Disk(scale.work)
    settings = {**_SETTINGS, "recall_tokens": recall_tokens}
    async with program(home, InstantModel(), view_messages=_VIEW, **settings) as running:
        for number in range(-_VIEW, scale.pick(200, 15)):
            chats = list(entries)
            turn = number % len(chats)
            for chat in chats[turn:] + chats[:turn]:
                one = await _counted(running, chat)
                if number >= 0:
                    taken[chat].append(one)
            limits.append(sum([await durable_hop(disk) for _ in range(_DURABLE_WRITES)]))
    disk.close()
    return taken


async def _counted(running: Program, chat: str) -> _Turn:
    before = process_io()
    spent = await running.turn(chat)
    after = process_io()
    if before is None or after is None:
        return _Turn(spent, None)
    return _Turn(spent, {name: after[name] - before[name] for name in before})


async def _first_turns(home: Path, entries: dict[str, int], scale: Scale) -> dict[str, list[Spent]]:
    """Start the program anew and take one turn on each tape."""
    opened: dict[str, list[Spent]] = {chat: [] for chat in entries}
    for number in range(scale.pick(15, 3)):
        async with program(home, InstantModel(), view_messages=_VIEW, **_SETTINGS) as running:
            await running.turn(f"warm-{number}")
            chats = list(entries)
            turn = number % len(chats)
            for chat in chats[turn:] + chats[:turn]:
                opened[chat].append(await running.turn(chat))
    return opened


async def _by_view(scale: Scale) -> dict[int, list[Spent]]:
    """Take a few turns on each of several tapes, so that the view hardly grows meanwhile."""
    copies, each = scale.pick(6, 1), 5
    home = scale.work / "view"
    chats = {
        f"{messages}-{copy}": messages - each
        for messages in (10, 100, 1_000)
        for copy in range(copies)
    }
    await seed_in_view(home, chats)
    taken: dict[int, list[Spent]] = {10: [], 100: [], 1_000: []}
    async with program(home, InstantModel(), **_SETTINGS) as running:
        for number in range(-1, each):
            for chat in chats:
                spent = await running.turn(chat)
                if number >= 0:
                    taken[int(chat.partition("-")[0])].append(spent)
    return taken


def _length_table(
    entries: dict[str, int],
    taken: dict[str, list[_Turn]],
    opened: dict[str, list[Spent]],
    limits: list[float],
) -> Table:
    rows: list[tuple[Cell, ...]] = []
    limit = p50(limits)
    for chat, turns in taken.items():
        wall = [ms(one.spent.wall) for one in turns]
        cpu = [ms(one.spent.cpu) for one in turns]
        io = [one.io for one in turns if one.io is not None]
        rows.append(
            (
                f"{entries[chat]:,} entries",
                p50(wall),
                p95(wall),
                p50(wall) / ms(limit),
                p50(cpu),
                p95(cpu),
                ms(p50([one.wall for one in opened[chat]])),
                ms(p50([one.cpu for one in opened[chat]])),
                p50([one["wchar"] / 1000 for one in io]) if io else None,
                p50([one["syscr"] + one["syscw"] for one in io]) if io else None,
            )
        )
    rows.append((f"machine: {_DURABLE_WRITES} durable appends", ms(limit), ms(p95(limits)), 1.0))
    return Table(
        f"A turn with an instant model, by entries on the tape ({_VIEW // 2} to {_VIEW} messages in view)",
        (
            "tape",
            "ms p50",
            "p95",
            "× disk",
            "CPU ms p50",
            "p95",
            "first ms",
            "first CPU ms",
            "kB",
            "r+w",
        ),
        rows,
        [
            f"× disk: beside {_DURABLE_WRITES} durable appends from the loop, which a turn cannot do "
            "without",
            "first: the first turn after opening; kB: written a turn; r+w: calls that read or write",
            *_verdicts(taken),
        ],
    )


def _recall_table(
    entries: dict[str, int], without: dict[str, list[_Turn]], recalling: dict[str, list[_Turn]]
) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for chat, turns in recalling.items():
        wall = [ms(one.spent.wall) for one in turns]
        cpu = [ms(one.spent.cpu) for one in turns]
        plain = p50([ms(one.spent.cpu) for one in without[chat]])
        rows.append((f"{entries[chat]:,} entries", p50(wall), p95(wall), p50(cpu), p95(cpu), plain))
    return Table(
        "The same with recall of what fits the message from before the view (the default)",
        ("tape", "ms p50", "p95", "CPU ms p50", "p95", "CPU ms without"),
        rows,
        [
            "Most of it is the search of the tape; with all that was said in view nothing is searched."
        ],
    )


def _verdicts(taken: dict[str, list[_Turn]]) -> list[str]:
    lines = []
    for what in ("wall", "cpu"):
        middles = [p50([getattr(one.spent, what) for one in turns]) for turns in taken.values()]
        ratio = middles[-1] / min(middles[:-1])
        verdict = "PASS" if ratio <= _FLAT else "FAIL"
        lines.append(
            f"{verdict}: flat in the tape's length: the longest takes {ratio:.2f} × the shortest "
            f"({what} time, at most {_FLAT})"
        )
    return lines


def _view_table(taken: dict[int, list[Spent]], limit: float) -> Table:
    rows = []
    for messages, turns in taken.items():
        wall, cpu = [ms(one.wall) for one in turns], [ms(one.cpu) for one in turns]
        rows.append(
            (
                f"about {messages:,}",
                p50(wall),
                p95(wall),
                p50(wall) / ms(limit),
                p50(cpu),
                p95(cpu),
            )
        )
    return Table(
        "A turn with an instant model, by messages in view",
        ("messages", "ms p50", "p95", "× disk", "CPU ms p50", "p95"),
        rows,
    )
