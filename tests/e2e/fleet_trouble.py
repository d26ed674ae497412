"""Scenes about messages: one that kills whoever works on it, and a session that is flooded."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import anyio
from fleet_database import asleep, rows
from fleet_ledger import Said
from fleet_processes import Fleet, Member
from fleet_trial import Row, Trial, late
from platform_stage import now

from bot.bus import Address, Bus, Inbound, Sender
from bot.bus.postgres import PostgresBus
from bot.bus.postgres.row_handler import DEAD_LETTER_NOTICE
from bot.core.database.connections import Database
from bot.core.database.wakeups import Wakeups
from testkit.telegram.world import TelegramUser

FLOOD = 5_000
"""Messages that wait in one session."""

INTERRUPTIONS = 4
"""Workers that are killed while they ask the model about one message."""

DEATHS = 7
"""Workers that a message may kill before they have begun its turn."""

_NOBODY = TelegramUser(1, "Nobody", is_bot=True)

_TRAP = """
create or replace function public.trap() returns trigger language plpgsql as $$
begin
    -- Whoever writes this is killed meanwhile, and then this is ended; if not, it is refused.
    perform pg_sleep(30);
    raise exception 'this cannot be written';
end $$;
create trigger trap before insert on tapebot.entry for each row
    when (position(convert_to('{token}', 'UTF8') in new.body) > 0) execute function public.trap();
"""


async def poison_turn(trial: Trial) -> Row:
    """Whoever asks the model about a message is killed; once nobody is, it is answered: it did nothing."""
    chat, at, deaths = trial.traffic.reserve(), now(), list[str]()
    said = trial.traffic.say(chat, "This is deadly: {}")

    def strike(who: str, tokens: list[str]) -> None:
        if said.token in tokens and len(deaths) < INTERRUPTIONS:
            deaths.append(who)
            _kill(trial, trial.fleet.members[who])

    trial.world.model.on_asked = strike
    try:
        await trial.fleet.until(lambda: said.shown_at is not None, "it was not answered")
    finally:
        trial.world.model.on_asked = lambda _who, _tokens: None
    return Row(deaths=len(deaths), answered=now() - at, next=await _goes_on(trial, chat))


async def poison_message(trial: Trial) -> Row:
    """Whoever puts a message on its tape dies; after seven deaths it is buried, and its chat is told."""
    chat, at, deaths = trial.traffic.reserve(), now(), list[str]()
    token = trial.traffic.draw()
    await rows(trial.fleet, _TRAP.format(token=token))
    said = trial.traffic.say(chat, "This is deadly at once: {}", token)
    async with anyio.create_task_group() as tasks:

        async def strike() -> None:
            struck = set[int]()
            while True:
                for backend, victim in await asleep(trial.fleet):
                    if backend not in struck:
                        struck.add(backend)
                        deaths.append(victim.name)
                        _kill(trial, victim)
                        # Else it goes on, and keeps the tape from whoever comes next.
                        await rows(trial.fleet, "select pg_terminate_backend(%s)", [backend])
                await anyio.sleep(0.05)

        tasks.start_soon(strike)
        await trial.fleet.until(
            lambda: _told(trial, chat, DEAD_LETTER_NOTICE), "its chat was not told"
        )
        tasks.cancel_scope.cancel()
    await rows(trial.fleet, "drop trigger trap on tapebot.entry")
    assert len(deaths) == DEATHS, f"buried after the deaths of {deaths}"
    trial.world.ledger.give_up(said)
    trial.silent.add(said.id)
    trial.expected.append("is set aside$")
    told = now() - at
    return Row(deaths=len(deaths), told=told, next=await _goes_on(trial, chat))


async def flood(trial: Trial) -> Row:
    """A session has thousands of messages waiting; people in others do not notice."""
    world, chat, at = trial.world, trial.traffic.reserve(), now()
    session = f"telegram:{chat}"
    async with publishing(trial.fleet) as bus, bus.lock_session(session):
        port = bus.channel("telegram")
        for number in range(FLOOD):
            text = f"Line {number} of many."
            one = world.telegram.say(chat, chat, text, bot=_NOBODY)
            inbound = Inbound(
                Address("telegram", str(chat)),
                str(one),
                Sender(str(chat), f"Person {chat}"),
                text,
                datetime.now(UTC),
            )
            assert not (await port.publish(inbound)).duplicate
            world.ledger.note(Said(chat, str(one), "", now(), trial.traffic.scene))
    published = now() - at
    await trial.fleet.until(lambda: not trial.traffic.talking, "people did not come to an end")
    scene = trial.traffic.scene
    trial.traffic.scene = f"{scene}, pending"
    began = now()
    await trial.traffic.talk(2 * trial.messages)
    [[left]] = await rows(trial.fleet, _PENDING, [session])
    trial.rows.append(Row(scene=trial.traffic.scene, seconds=now() - began, left=left))
    trial.traffic.scene = scene
    with anyio.fail_after(300):
        while (await rows(trial.fleet, _PENDING, [session]))[0][0]:
            await anyio.sleep(0.25)
    return Row(published=published, worked=now() - began)


_PENDING = "select count(*) from tapebot.inbound where headers ->> 'x-pgmq-group' = %s and headers ->> 'kind' = 'in'"


def compare_floods(trial: Trial, *, most: float, allowance: float) -> None:
    """See that people beside a flood were answered nearly as fast as without one.

    Args:
        trial: Both were played in it.
        most: Times the p95 of calm.
        allowance: Seconds beside that, for a machine that does everything at once.

    Raises:
        AssertionError: They were not.
    """
    ledger = trial.world.ledger
    scenes = {row["scene"]: late(ledger.waits(row["scene"])) for row in trial.rows}
    # In the first one most sessions are opened for the first time.
    quiet = max([value for name, value in scenes.items() if "calm" in name][1:])
    flooded = max(value for name, value in scenes.items() if "pending" in name)
    assert flooded <= most * quiet + allowance, scenes


@asynccontextmanager
async def publishing(fleet: Fleet) -> AsyncIterator[Bus]:
    """Yield a bus of this process's own on the fleet's database."""
    assert fleet.world.database is not None
    database = Database(fleet.world.database)
    await database.open()
    try:
        wakeups, exports = Wakeups(database), Path(fleet.folder / "exports")
        bus = PostgresBus(
            database, wakeups, holder="trial", max_queued_messages=2 * FLOOD, exports=exports
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wakeups.run)
            tasks.start_soon(bus.run)
            yield bus
            await bus.aclose()
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await database.close()


async def _goes_on(trial: Trial, chat: int) -> float:
    """Say something more in a chat; return the seconds to its answer."""
    said = trial.traffic.say(chat)
    await trial.fleet.until(lambda: said.shown_at is not None, "the session does not go on")
    return said.waited


def _kill(trial: Trial, victim: Member) -> None:
    """Kill a worker, and let it be started again."""
    if victim.runs:
        trial.fleet.kill(victim)
        trial.world.tasks.start_soon(trial.fleet.again, victim)


def _told(trial: Trial, chat: int, text: str) -> bool:
    return any(text in one for one in trial.world.ledger.notices[chat])
