"""The bus at a million sessions: its statements measured on the real tables, and a peak hour simulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from time import perf_counter

from bench import fleet
from bench.postgres_server import SETTINGS, Meter, Spent, opened, running
from bench.report import Cell, Scale, Table, ms, us
from bench.scale_cost import HOLDS, Costs, costs
from bench.scale_day import MODEL, PAUSE, PEAK, PER_DAY, TALK, Constants, Plan, peak
from bench.scale_load import ENTRIES, SEEN, State, load, sizes
from bot.core.database.connections import Database
from testkit.postgres import PostgresServer

_STATES = (
    State(1_000),
    State(10_000),
    State(100_000),
    State(10_000, waiting=1_000),
    State(10_000, waiting=10_000),
    State(10_000, behind=1_000),
    State(10_000, behind=10_000),
)
_QUICK_STATES = (State(1_000), State(1_000, waiting=100))
_STORED = (
    ("a tape, its name", "tapebot.tape", 1),
    ("an entry, about 200 bytes", "tapebot.entry%", ENTRIES),
    ("a platform id that is remembered", "tapebot.seen", SEEN),
    ("a route", "tapebot.route", 1),
)
_LOOK = "tapebot.poll"
_BARE = "insert into public.bare (body) values (%s)"


async def measure(scale: Scale) -> list[Table]:
    """Load, measure each state, and simulate with what was measured."""
    sessions = scale.pick(1_000_000, 20_000)
    with running() as server:
        async with opened(server.create()) as database:
            began = perf_counter()
            states = _QUICK_STATES if scale.quick else _STATES
            await load(database, sessions, max(one.held for one in states))
            loaded = perf_counter() - began
            stored = await _stored(database, sessions, loaded)
            meter = Meter(server, database)
            found = {}
            for state in states:
                found[state] = await costs(meter, database, state, sessions, scale.pick(100, 10))
            commit = await _commit(database, meter, scale)
        known = await _constants(
            scale, server, found[states[min(1, len(states) - 1)]], found[states[0]], commit
        )
    return [stored, _held(found), _waiting(found), *_hour(known, scale)]


async def _stored(database: Database, sessions: int, seconds: float) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for what, name, each in _STORED:
        table, indexes = await sizes(database, name)
        count = sessions * each
        rows.append((what, count, table / count, indexes / count, (table + indexes) / 1e9))
    head = ("", "rows", "bytes of a row", "of its indexes", "GB in all")
    notes = [
        f"loaded by SQL in {seconds:.0f} s, without the documents that a search finds entries by",
        SETTINGS,
    ]
    return Table(f"{sessions:,} sessions in the tables", head, rows, notes)


def _held(found: dict[State, Costs]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for state, one in found.items():
        for what, spent in (
            (f"a look, {HOLDS} holds, nothing new", one.poll),
            ("a look, 1,000 holds", one.poll_many),
            ("a look into one queue, a few holds", one.poll_one),
            (f"renew a hold, {HOLDS} in a statement", one.renew),
            ("renew a hold, 1,000 in a statement", one.renew_many),
        ):
            if spent is not None:
                rows.append((f"{state}: {what}", *_cells(spent)))
        rows.append(
            (f"{state}: the queues, MB", None, None, None, None, (one.table + one.indexes) / 1e6)
        )
    notes = [
        "behind: arrived more than a minute ago in sessions that are held",
        "ms of a statement; CPU and log of a look, and of one hold that is renewed",
    ]
    return Table("Sessions that are held", (*_HEAD, "MB"), rows, notes)


def _waiting(found: dict[State, Costs]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for state, one in found.items():
        whole = [one.publish, one.claim, one.ack, one.release]
        names = ("publish", "claim", "acknowledge", "release")
        rows += [
            (f"{state}: {name}", *_cells(spent)) for name, spent in zip(names, whole, strict=True)
        ]
        cpu, log = sum(spent.cpu for spent in whole), sum(spent.wal for spent in whole)
        rows.append((f"{state}: these four", None, None, us(cpu), log))
        rows.append((f"{state}: pgmq.read_grouped_head, one queue", *_cells(one.grouped_head)))
    return Table(
        "Messages that are carried",
        _HEAD,
        rows,
        ["of a session that nobody holds; none is seen again"],
    )


_HEAD = ("", "ms p50", "p95", "server's CPU µs", "log bytes")


def _cells(spent: Spent) -> tuple[Cell, ...]:
    return ms(spent.p50), ms(spent.p95), us(spent.cpu), spent.wal


async def _commit(database: Database, meter: Meter, scale: Scale) -> float:
    """Return what a commit waits for, beside its work."""
    await database.fetch("create table public.bare (body text)")
    times = scale.pick(1_000, 100)
    wrote = await meter.each(lambda n: database.fetch(_BARE, [str(n)]), times)
    asked = await meter.each(lambda _: database.fetch("select 1"), times)
    return max(wrote.p50 - asked.p50 - wrote.cpu, 0.0)


async def _constants(
    scale: Scale, server: PostgresServer, usual: Costs, least: Costs, commit: float
) -> Constants:
    """Take turns in a small fleet for what a whole turn costs; the rest was measured among the million."""
    async with fleet.staged(scale.work / "fleet", server, workers=1, people=48) as stage:
        await stage.turns(scale.pick(60, 10))
        before = await stage.calls()
        turns = await stage.turns(scale.pick(300, 30))
        after = await stage.calls()
    poll = usual.poll or least.poll
    many = usual.poll_many or least.poll_many
    assert poll is not None
    assert many is not None
    more = max(many.cpu - poll.cpu, 0.0) / (1_000 - HOLDS)
    looks = (after[_LOOK][0] - before[_LOOK][0]) / scale.pick(300, 30)
    # What looks cost there is added by how many there are, and with how many holds.
    looked = looks * poll.cpu
    return Constants(
        database=max(turns.cpu["database"] - looked, turns.cpu["database"] / 4),
        worker=turns.cpu["worker"],
        gateway=turns.cpu["gateway"],
        look=max(poll.cpu - more * HOLDS, 0.0),
        look_hold=more,
        renew=usual.renew.cpu,
        commit=commit,
    )


def _hour(known: Constants, scale: Scale) -> list[Table]:
    measured = Table(
        "What the simulation stands on, measured above and in a fleet with one worker",
        ("", "µs"),
        [(name, us(value)) for name, value in asdict(known).items()],
        [
            "CPU of a turn: database, worker, gateway; of one look, and more for each hold; of a renewal; a commit's wait"
        ],
    )
    rows: list[tuple[Cell, ...]] = []
    for plan in _plans(scale):
        done = peak(plan, known)
        gateways = plan.rate * known.gateway / 0.5
        shares = [100 * done.steady, 100 * done.busy, done.p50, done.p95, 100 * done.answered]
        flows = [done.held, done.moved, done.renewals, done.looks]
        rows.append((plan.name, plan.rate, done.workers, max(1.0, gateways), *flows, *shares))
    head = (
        *(
            "",
            "messages a second",
            "workers",
            "gateways",
            "held",
            "moved a second",
            "renewals a second",
            "looks a second",
        ),
        *("% steady", "% busy", "wait p50 s", "p95 s", "% answered"),
    )
    notes = [
        f"a session says {PER_DAY} things a day, {PEAK:.0%} of them in the peak hour, {TALK} in a row, "
        f"{PAUSE:.0f} s apart; the model takes {MODEL:.0f} s, which is no part of the wait",
        "steady: what looks and renewals alone ask of PostgreSQL's cores; busy: with the turns; from 100 on it drowns",
        "simulated: beyond this machine's two cores all of it is extrapolated",
    ]
    return [measured, Table("A minute of the peak hour, simulated", head, rows, notes)]


def _plans(scale: Scale) -> Sequence[Plan]:
    small = [Plan("10^4, as it comes, 2 cores", 10_000, 2)]
    if scale.quick:
        return small
    million = 1_000_000
    return [
        *small,
        Plan("10^5, as it comes, 8 cores", 100_000, 8),
        Plan("10^6, as it comes, 16 cores", million, 16),
        Plan("10^6, as it comes, 32 cores", million, 32),
        Plan("10^6, as it comes, 64 cores", million, 64),
        Plan("10^6, 500 holds, idle 30 s, 32 cores", million, 32, 500, 30.0),
        Plan(
            "10^6, 500 holds, idle 30 s, 10 looks a second, 16 cores", million, 16, 500, 30.0, 10.0
        ),
        Plan("a 16th of 10^6 in its own database, 4 cores", million // 16, 4),
        Plan("2 · 10^6, as it comes, 64 cores", 2 * million, 64),
    ]
