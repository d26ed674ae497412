"""The tape store in PostgreSQL, beside the machine and the store of files."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any

import anyio.to_thread

from bench.library import write_store
from bench.machine import Disk, durable_hop
from bench.postgres_server import SETTINGS, Meter, Spent
from bench.report import Cell, Scale, Table, ms, p50, p95, us
from bench.words import Talk
from bench.workload import question
from bot.core.append_file import AppendFile
from bot.core.clock import SystemClock
from bot.core.database.connections import Database
from bot.core.database.wakeups import Wakeups
from bot.tape.codec import encode_entries
from bot.tape.entries import TapeEntry, anchor, message
from bot.tape.search import SearchQuery
from bot.tape.store import TapeStore, header_entry
from bot.tape.stores.changes import stamp
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.folder import TapeFolder
from bot.tape.stores.postgres import PostgresTapeStore
from bot.tape.stores.postgres.rows import pack, text_to_bytea

_ANCHOR = "phase"
_SINCE = 100
"""Entries that follow the last anchor."""

_PHASE = 1_000
_PORTION = 500

_BARE = "insert into public.bare (body) select unnest(%s::bytea[])"
_FILL = """
insert into tapebot.entry (tape, id, kind, name, body)
select tape.id, each.id, case when each.id = any (%s) then 'anchor' else 'message' end,
    case when each.id = any (%s) then %s::bytea end, case when each.id = any (%s) then %s::bytea else %s::bytea end
from tapebot.tape, generate_series(2, %s::bigint) as each (id) where tape.name = %s
"""
_FILLED = "update tapebot.tape set version = %s where name = %s"


def _said(number: int) -> TapeEntry:
    return message("user", question(number), sender={"id": "1", "name": "Ada"})


async def measure(scale: Scale, meter: Meter, database: Database) -> list[Table]:
    """Measure appends, reads and searches."""
    store = PostgresTapeStore(database, Wakeups(database))
    files = FileTapeStore(scale.work / "tapes")
    disk = Disk(scale.work)
    await database.fetch("create table public.bare (id bigserial primary key, body bytea)")
    try:
        return [
            await _machine(scale, meter, database, disk),
            await _appends(scale, meter, database, store, files),
            await _reads(scale, database, store),
            await _searches(scale, store),
        ]
    finally:
        disk.close()
        await files.close()


async def _machine(scale: Scale, meter: Meter, database: Database, disk: Disk) -> Table:
    times = scale.pick(2_000, 100)
    body = encode_entries([replace(_said(1), id=1)])
    async with database.dedicated_connection() as connection:

        async def nothing(_: int) -> None:
            await (await connection.execute("select 1")).fetchall()

        async def insert(_: int) -> None:
            await connection.execute(_BARE, [[body]])

        rows = {
            "select 1, one connection": await meter.each(nothing, times),
            "insert and commit, one connection": await meter.each(insert, times),
        }
    pooled = await meter.each(lambda _: database.fetch("select 1"), times)
    inserts = await meter.each(lambda _: database.fetch(_BARE, [[body]]), times, beside=16)
    rows |= {"select 1, by the pool": pooled, "insert and commit, 16 at once": inserts}
    synced = [await durable_hop(disk) for _ in range(times // 4)]
    table: list[tuple[Cell, ...]] = [(name, *_cells(spent)) for name, spent in rows.items()]
    table.append(("append a line to a file and fdatasync", ms(p50(synced)), ms(p95(synced))))
    head = ("", "ms p50", "p95", "a second", "server's CPU µs", "log bytes")
    return Table("PostgreSQL on this machine, with nothing of ours", head, table, [SETTINGS])


def _cells(spent: Spent) -> tuple[Cell, ...]:
    return ms(spent.p50), ms(spent.p95), spent.rate, us(spent.cpu), spent.wal


async def _appends(
    scale: Scale, meter: Meter, database: Database, store: TapeStore, files: TapeStore
) -> Table:
    rows: list[tuple[Cell, ...]] = []
    numbers = count()
    for each, beside in ((1, 1), (10, 1), (100, 1), (1, 16)):
        times = scale.pick(400, 30) if each == 1 else scale.pick(100, 4)
        what = f"{each} an append" + (f", {beside} tapes at once" if beside > 1 else "")
        bodies = [encode_entries([replace(_said(n), id=1)]) for n in range(each)]

        def bare(_: int, bodies: list[bytes] = bodies) -> Awaitable[Any]:
            return database.fetch(_BARE, [bodies])

        floor = await meter.each(bare, times, beside=beside, holds=each)
        for name, to in (("PostgreSQL", store), ("files", files)):
            work = await _writer(to, f"bench:{each}:{beside}", each, beside, numbers)
            spent = await meter.each(work, times, beside=beside, holds=each)
            server = (us(spent.cpu), spent.wal) if name == "PostgreSQL" else ()
            rate = spent.rate / floor.rate
            rows.append(
                (f"{what}: {name}", spent.rate, ms(spent.p50), ms(spent.p95), rate, *server)
            )
        rows.append(
            (
                f"{what}: bare insert",
                floor.rate,
                ms(floor.p50),
                ms(floor.p95),
                1.0,
                *(us(floor.cpu), floor.wal),
            )
        )
    head = (
        "",
        "entries a second",
        "ms p50",
        "p95",
        "× bare insert",
        "server's CPU µs",
        "log bytes",
    )
    notes = [
        "ms of an append; CPU and log of an entry, with the documents that a search finds it by"
    ]
    return Table("Durable appends", head, rows, notes)


async def _writer(
    store: TapeStore, name: str, each: int, beside: int, numbers: count[int]
) -> Callable[[int], Awaitable[Any]]:
    """Return what appends, on so many tapes in turns."""
    tapes = [f"{name}:{number}" for number in range(beside)]
    for tape in tapes:
        await store.create_tape(tape)

    def write(number: int) -> Awaitable[Any]:
        return store.append_many(
            tapes[number % beside], [_said(next(numbers)) for _ in range(each)]
        )

    return write


async def _reads(scale: Scale, database: Database, store: PostgresTapeStore) -> Table:
    entries, times = scale.pick(1_000_000, 20_000), scale.pick(300, 30)
    tape = "bench:long"
    anchors = [*range(2, entries - _SINCE, _PHASE), entries - _SINCE]
    await store.create_tape(tape)
    packed = pack(tape, stamp([_said(1), anchor(_ANCHOR)], SystemClock()))
    name, (said, mark) = text_to_bytea(_ANCHOR), packed.bodies
    values = [anchors, anchors, name, anchors, mark, said, entries, text_to_bytea(tape)]
    await database.fetch(_FILL, values, seconds=200)
    await database.fetch(_FILLED, [entries, text_to_bytea(tape)])
    await database.fetch("analyze tapebot.entry", seconds=60)
    root = scale.work / "long"
    await anyio.to_thread.run_sync(_fill_file, root, tape, entries, frozenset(anchors))
    files = FileTapeStore(root)
    rows: list[tuple[Cell, ...]] = []
    try:
        for where, one in (("PostgreSQL", store), ("files", files)):
            await _since(one, tape)
            for what, read in (("since the last anchor", _since), ("the newest entry", _newest)):
                taken = [await _clocked(read, one, tape) for _ in range(times)]
                rows.append((f"{what}: {where}", ms(p50(taken)), ms(p95(taken))))
    finally:
        await files.close()
    taken = [await _clocked(_nothing, database, tape) for _ in range(times)]
    rows.append(("machine: select 1, by the pool", ms(p50(taken)), ms(p95(taken))))
    title = f"Reads of one tape of {entries:,} entries; {_SINCE} follow its last anchor"
    return Table(title, ("", "ms p50", "p95"), rows, ["on a warm cache"])


async def _since(store: TapeStore, tape: str) -> None:
    found = await store.get_anchor(tape, _ANCHOR)
    entries = await store.read(tape, found.at)
    assert len(entries) == _SINCE + 1, len(entries)


async def _newest(store: TapeStore, tape: str) -> None:
    back = store.read_back(tape)
    await anext(back)
    await back.aclose()


async def _nothing(database: Database, _: str) -> None:
    await database.fetch("select 1")


async def _clocked(read: Callable[[Any, str], Awaitable[None]], of: Any, tape: str) -> float:
    began = perf_counter()
    await read(of, tape)
    return perf_counter() - began


def _fill_file(root: Path, tape: str, entries: int, anchors: frozenset[int]) -> None:
    """Write a tape as the file store does, but for the waiting."""
    folder = TapeFolder(root, "")
    root.mkdir(parents=True)
    said, mark = stamp([_said(1), anchor(_ANCHOR)], SystemClock())
    first = replace(header_entry(tape, None), id=1, meta=said.meta)
    file = AppendFile(folder.live_path(tape), sync=False)
    file.append_now(encode_entries([first]), 1)
    for begin in range(2, entries + 1, _PORTION):
        end = min(begin + _PORTION, entries + 1)
        portion = [replace(mark if n in anchors else said, id=n) for n in range(begin, end)]
        file.append_now(encode_entries(portion), end - 1)
    file.close()


async def _searches(scale: Scale, store: PostgresTapeStore) -> Table:
    """Search in one of many tapes, which hold the same in both stores."""
    tapes, each, times = scale.pick(10, 2), 2_000, scale.pick(100, 10)
    talk = Talk(1)
    began = perf_counter()
    for number in range(tapes):
        name = f"bench:{number}"
        await store.create_tape(name)
        said = [*talk.messages(each - 1)]
        for begin in range(0, len(said), _PORTION):
            await store.append_many(name, said[begin : begin + _PORTION])
    loaded = tapes * each / (perf_counter() - began)
    root = scale.work / "library"
    await write_store(root, tapes * each)
    files = FileTapeStore(root, sync=False)
    asking = Talk(2)
    questions = [asking.question() for _ in range(times)]
    rows: list[tuple[Cell, ...]] = []
    try:
        for where, one in (("PostgreSQL", store), ("files", files)):
            await one.search(SearchQuery(text=questions[0], tapes=("bench:0",), limit=10))
            taken = []
            for number, text in enumerate(questions):
                query = SearchQuery(text=text, tapes=(f"bench:{number * 7 % tapes}",), limit=10)
                began = perf_counter()
                await one.search(query)
                taken.append(perf_counter() - began)
            rows.append((f"one tape: {where}", ms(p50(taken)), ms(p95(taken))))
    finally:
        await files.close()
    title = (
        f"Search: questions of 4 to 10 words, 10 hits, in one of {tapes} tapes of {each:,} entries"
    )
    notes = [f"PostgreSQL took {loaded:,.0f} entries a second in, {_PORTION} an append"]
    return Table(title, ("", "ms p50", "p95"), rows, notes)
