"""What the memory bus costs: a gated write, a fold after many events, a context packet."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

from bench.machine import Disk, durable_hop
from bench.report import Cell, Scale, Table, ms, p50, p95, us
from bot.core.clock import SystemClock
from bot.memory.records.compartment_records import SynthesizedPattern, WorkingSet
from bot.memory.records.compression import render_context_packet
from bot.memory.records.episodes import episode_id
from bot.memory.records.fact_fold import bus_entry, fold_entries
from bot.memory.records.proposals import Proposal, ProposalBatch
from bot.memory.session.bus.memory_bus import MemoryBus
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.scope.scope_memory import load_fact_entries
from bot.memory.session.state.fold_loader import load_fold
from bot.memory.session.state.zone import MemoryZone
from bot.tape.entries import message
from bot.tape.service import TapeService
from bot.tape.stores.file import FileTapeStore

_SESSION = "bench:1"
_BATCH = 500


@dataclass(frozen=True, slots=True)
class _Opened:
    """A session of its own, with its memory."""

    tape: TapeService
    memory: LongTermMemory

    @property
    def bus(self) -> MemoryBus:
        return self.memory.bus


async def measure(scale: Scale) -> list[Table]:
    """Measure all three."""
    return [await _writes(scale), await _folds(scale), await _packets(scale)]


async def _opened(store: FileTapeStore, name: str) -> _Opened:
    tape = TapeService(store, name)
    await tape.ensure_bootstrap_anchor()
    fold = await load_fold(tape, max_messages=200, max_tokens=100_000)
    tape.observe(fold.apply)
    zone = MemoryZone(tape, fold=fold.zone)
    await zone.load_or_create()
    memory = LongTermMemory(tape, fold, zone, ScopeRegistry(store, SystemClock()))
    await memory.open()
    return _Opened(tape, memory)


async def _writes(scale: Scale) -> Table:
    store, disk = FileTapeStore(scale.work / "writes"), Disk(scale.work)
    rows: list[tuple[Cell, ...]] = []
    for held in (0, 100, scale.pick(1_000, 200)):
        session = await _opened(store, f"bench:{held}")
        if held:
            known = tuple(Proposal("add", f"Thing {n} costs {n * 7} euros") for n in range(held))
            await session.memory.apply(ProposalBatch("seed", "import", known))
        taken: dict[str, list[float]] = {"working": [], "shared": [], "semantic": [], "disk": []}
        for number in range(scale.pick(60, 15)):
            await _each(session, number, taken)
            taken["disk"].append(await durable_hop(disk))
        limit = p50(taken.pop("disk"))
        rows += [
            (f"{name}, beside {held} facts", ms(p50(all_)), ms(p95(all_)), p50(all_) / limit)
            for name, all_ in taken.items()
        ]
    rows.append(("machine: a durable append", ms(limit), None, 1.0))
    await store.close()
    disk.close()
    notes = (
        "Durable. The working set has no gate; a shared value and a conclusion pass it with signals "
        "computed from the message that they rest on, and compared with all that is believed.",
    )
    return Table("A write to a compartment", ("", "ms p50", "ms p95", "x disk"), rows, notes)


async def _each(session: _Opened, number: int, taken: dict[str, list[float]]) -> None:
    said = f"I keep {number} euros for lunch, and I block my mornings for writing"
    heard = await session.tape.append(message("user", said, sender={"id": "1", "name": "Ada"}))
    source = episode_id(session.tape.name, heard.id)
    now = SystemClock().now()
    began = perf_counter()
    await session.bus.working_sets.update("general", open_questions=[f"what of {number}?"])
    taken["working"].append(perf_counter() - began)
    began = perf_counter()
    await session.bus.write_to_shared(f"lunch_{number % 50}", f"{number} euros", source)
    taken["shared"].append(perf_counter() - began)
    text = f"The user keeps {number} euros for lunch"
    pattern = SynthesizedPattern("", "conclusion", {"text": text}, [source], 0.8, now, now)
    began = perf_counter()
    await session.bus.add_synthesis(pattern)
    taken["semantic"].append(perf_counter() - began)


async def _folds(scale: Scale) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for events in (1_000, scale.pick(100_000, 10_000)):
        store = FileTapeStore(scale.work / f"folds{events}", sync=False)
        await _fill(store, events)
        await store.close()
        opened, entries = [], 0
        for _ in range(scale.pick(9, 3)):
            store = FileTapeStore(scale.work / f"folds{events}")
            tape = TapeService(store, _SESSION)
            began = perf_counter()
            found = await load_fact_entries(tape)
            fold = fold_entries(found)
            opened.append(perf_counter() - began)
            entries = len(found)
            assert fold.compartments.problems
            await store.close()
        began = perf_counter()
        store = FileTapeStore(scale.work / f"folds{events}")
        whole = fold_entries(await store.read(_SESSION))
        taken = perf_counter() - began
        await store.close()
        assert whole.compartments.state() == fold.compartments.state()
        rows.append(
            (f"{events:,} events", entries, ms(p50(opened)), ms(taken), taken / p50(opened))
        )
    notes = ("From the last whole state: only these entries are read. Both give the same state.",)
    head = ("", "entries read", "ms from a state", "ms of all", "x")
    return Table("A fold of the compartments", head, rows, notes)


async def _fill(store: FileTapeStore, events: int) -> None:
    """Write changes as a session that keeps switching and noting would."""
    session = await _opened(store, _SESSION)
    for number in range(20):
        await session.bus.problems.create(f"problem {number}")
    fold = session.memory.fold.facts
    for first in range(0, events, _BATCH):
        for number in range(first, min(first + _BATCH, events)):
            data = {"working": [_working(f"p{number % 20 + 1}", number).as_json()]}
            await session.tape.append_composed(lambda _, data=data: [bus_entry(fold, data)])


def _working(problem: str, number: int) -> WorkingSet:
    now = SystemClock().now()
    return WorkingSet(
        problem,
        None,
        now,
        now,
        {"must": [f"be done by the {day}th" for day in range(1, 6)], "must_not": ["vendor: acme"]},
        [{"a": f"it takes {number} hours", "confidence": 0.8}],
        [f"what about {number}?"] * 3,
        {"draft": f"Dear all, {number} " * 10},
        [{"d": f"take offer {number}", "why": "it is cheaper"}] * 3,
    )


async def _packets(scale: Scale) -> Table:
    working = _working("p1", 1)
    full = WorkingSet(
        "p1",
        None,
        working.created_at,
        working.expires_at,
        {"must": [f"constraint {n}" for n in range(50)]},
        [{"a": f"assumption {n} of the plan", "confidence": n / 50} for n in range(50)],
        [f"open question number {n}?" for n in range(50)],
        {f"draft {n}": "text " * 20 for n in range(20)},
        [{"d": f"decision {n}", "why": "because of that"} for n in range(50)],
    )
    rows: list[tuple[Cell, ...]] = []
    for name, one in (("a usual one", working), ("a full one", full)):
        taken = []
        for _ in range(scale.pick(500, 100)):
            began = perf_counter()
            packet = render_context_packet(one, "Taxes", most=4_000)
            taken.append(perf_counter() - began)
        rows.append((name, len(packet), us(p50(taken)), us(p95(taken))))
    return Table("A context packet", ("", "characters", "us p50", "us p95"), rows)
