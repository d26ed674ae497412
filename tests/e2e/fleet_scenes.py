"""What is done to a fleet while people talk to it; each scene can be played alone, by its seed.

A scene returns what it measured: ``recovery`` is the seconds from a blow to the first answer that shows that
it was overcome, of a session that the struck worker held, or of anybody who spoke after the gateway was
struck; ``whole`` those to the last answer that the struck worker owed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import anyio.to_thread
from fleet_database import until_elected
from fleet_ledger import Said
from fleet_processes import SECONDS, Fleet, Member
from fleet_trial import Row, Trial
from platform_stage import now

_SOME = 3
"""Sessions that are in work when a worker is struck."""

_LONG = 1.5
"""Leases for which a process that is stopped or cut off stays so, and a second more."""


async def calm(_trial: Trial) -> None:
    """Nothing happens."""


# Workers.


async def kill_worker(trial: Trial) -> Row:
    """A worker dies in the middle of its turns; others take its sessions."""

    async def strike(victim: Member) -> None:
        trial.fleet.kill(victim)
        if not trial.fleet.workers:
            await trial.fleet.again(victim)

    row = await _struck(trial, strike)
    await _all_back(trial.fleet)
    return row


async def pause_worker(trial: Trial) -> Row:
    """A worker stands still for longer than its lease, and goes on as if nothing had happened."""

    async def strike(victim: Member) -> None:
        trial.world.tasks.start_soon(trial.fleet.pause, victim, _long(trial))

    return await _struck(trial, strike)


async def cut_worker(trial: Trial) -> Row:
    """A worker's connections to the database break, and none is let in for longer than its lease."""
    return await _struck(trial, lambda victim: _cut(trial, victim), wired=True)


async def freeze_worker(trial: Trial) -> Row:
    """A worker hears nothing of the database; what it had sent arrives when others have its sessions."""
    return await _struck(trial, lambda victim: _freeze(trial, victim), wired=True)


async def leave_and_join(trial: Trial) -> Row:
    """A worker is asked to leave in the middle of its turns, and another joins."""
    left: list[float] = []

    async def strike(victim: Member) -> None:
        at = now()
        left.append(await trial.fleet.stop(victim))
        # What it had in hand may have been shown with its receipt unread.
        trial.fleet.blow("stopped", victim, at)
        await trial.fleet.add("worker")

    row = await _struck(trial, strike)
    return row | Row(left=left[0])


# Gateways.


async def kill_gateway(trial: Trial) -> Row:
    """The gateway that talks to Telegram dies; the other one goes on."""
    victim = await until_elected(trial.fleet)
    at = trial.fleet.kill(victim)
    row = await _spoken_to(trial, victim, at)
    await _all_back(trial.fleet)
    return row


async def kill_standby(trial: Trial) -> Row:
    """The gateway that only waits dies."""
    chosen = await until_elected(trial.fleet)
    victim = next(one for one in trial.fleet.gateways if one is not chosen)
    at = trial.fleet.kill(victim)
    recovery = await _new_answer(trial, at)
    await _all_back(trial.fleet)
    return Row(recovery=recovery)


async def pause_gateway(trial: Trial) -> Row:
    """The gateway that talks to Telegram stands still for longer than its lease, and goes on."""
    victim, at = await until_elected(trial.fleet), now()
    trial.world.tasks.start_soon(trial.fleet.pause, victim, _long(trial))
    return await _spoken_to(trial, victim, at)


async def freeze_gateway(trial: Trial) -> Row:
    """The gateway that talks to Telegram hears nothing of the database for longer than its lease."""
    victim, at = await until_elected(trial.fleet), now()
    await _freeze(trial, victim)
    return await _spoken_to(trial, victim, at)


async def cut_gateway(trial: Trial) -> Row:
    """The gateway that talks to Telegram is cut off from the database for longer than its lease."""
    victim, at = await until_elected(trial.fleet), now()
    await _cut(trial, victim)
    return await _spoken_to(trial, victim, at)


async def race(trial: Trial) -> Row:
    """Each update is handed to both gateways at once."""
    balancer = trial.world.balancer
    assert balancer is not None
    before, balancer.weights = balancer.weights, {"both": 1.0}
    passed = balancer.passed["both"]
    try:
        await trial.fleet.until(lambda: not trial.traffic.talking, "people did not come to an end")
        await trial.traffic.settled()
    finally:
        balancer.weights = before
    # The answer may be there before the second gateway has taken what it answers.
    with anyio.fail_after(SECONDS):
        while (raced := balancer.passed["both"] - passed) < trial.messages:
            await anyio.sleep(0.05)
    return Row(raced=raced)


# The database.


async def restart_database(trial: Trial) -> Row:
    """The database crashes and recovers."""
    server = trial.world.server
    assert server is not None
    at = now()
    await anyio.to_thread.run_sync(server.restart, "immediate")
    down = now() - at
    trial.fleet.blow("restarted", None, at)
    return Row(recovery=await _new_answer(trial, at + down) + down, down=down)


# Parts of scenes.

Strike = Callable[[Member], Awaitable[None]]


async def _struck(trial: Trial, strike: Strike, *, wired: bool = False) -> Row:
    """Strike a worker that is in the middle of turns, and see what it was to answer answered."""
    victim, held = await _busy_worker(trial, wired=wired)
    at = now()
    await strike(victim)
    ledger, asked_at = trial.world.ledger, trial.world.model.asked_at

    def taken_up() -> bool:
        # What the victim had finished may be shown without being asked for again.
        answered = held - ledger.open.keys()
        return len(answered) == len(held) or any(asked_at[one] > at for one in answered)

    await trial.fleet.until(taken_up, "nobody took its sessions")
    recovery = now() - at
    await trial.fleet.until(lambda: not held & ledger.open.keys(), "not all were taken up")
    return Row(recovery=recovery, whole=now() - at, held=len(held))


async def _busy_worker(trial: Trial, *, wired: bool) -> tuple[Member, set[str]]:
    """Wait until a worker is in the middle of turns; return it and the tokens that it is to answer."""
    world, fleet, found = trial.world, trial.fleet, dict[str, set[str]]()

    def busy() -> list[str]:
        found.clear()
        for token in world.ledger.open:
            if token in world.model.asker:
                found.setdefault(world.model.asker[token], set()).add(token)
        names = [one.name for one in fleet.workers if not wired or one.name in world.wires]
        return [one for one in names if len(found.get(one, ())) >= _SOME]

    await fleet.until(busy, "no worker had something to do")
    name = trial.chance.choice(busy())
    return fleet.members[name], found[name]


async def _spoken_to(trial: Trial, victim: Member, at: float) -> Row:
    """Wait until somebody who spoke after a blow was answered, and another gateway was elected."""
    recovery = await _new_answer(trial, at)
    successor = await until_elected(trial.fleet, but=victim)
    return Row(recovery=recovery, successor=successor.name)


async def _new_answer(trial: Trial, since: float) -> float:
    """Wait until something that was said since then is answered; return the seconds since then."""
    ledger, traffic = trial.world.ledger, trial.traffic

    def late() -> list[Said]:
        return [one for one in ledger.said if one.at > since]

    # Whoever was struck late may have been struck after the last word.
    await trial.fleet.until(lambda: late() or not traffic.talking, "nobody spoke")
    if not late():
        traffic.speak()
    await trial.fleet.until(
        lambda: any(one.shown_at is not None for one in late()), "nobody who spoke was answered"
    )
    return now() - since


async def _cut(trial: Trial, victim: Member) -> None:
    """Cut a process off from the database, and heal that after a while."""
    wire, at = trial.world.wires[victim.name], now()
    await wire.cut()

    async def heal() -> None:
        await anyio.sleep(_long(trial))
        await wire.heal()
        trial.fleet.blow("cut off", victim, at)

    trial.world.tasks.start_soon(heal)


async def _freeze(trial: Trial, victim: Member) -> None:
    """Let a process hear nothing of the database, and heal that after a while."""
    wire, at = trial.world.wires[victim.name], now()
    wire.freeze()

    async def heal() -> None:
        await anyio.sleep(_long(trial))
        await wire.heal()
        trial.fleet.blow("frozen", victim, at)

    trial.world.tasks.start_soon(heal)


async def _all_back(fleet: Fleet) -> None:
    """Start again what was killed, as a service manager does."""
    for member in [*fleet.members.values()]:
        if member.killed:
            await fleet.again(member)


def _long(trial: Trial) -> float:
    return _LONG * trial.fleet.lease + 1.0
