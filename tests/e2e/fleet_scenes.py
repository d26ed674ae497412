"""What is done to a fleet while people talk to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import anyio.to_thread
from fleet_database import until_elected
from fleet_ledger import Said
from fleet_processes import SECONDS, Fleet, Member
from fleet_trial import Trial
from platform_stage import now

_SOME = 3
"""Sessions that are in work when a worker is struck."""


async def calm(_trial: Trial) -> None:
    """Nothing happens."""


# Workers.


async def kill_worker(trial: Trial) -> None:
    """A worker dies in the middle of its turns; others take its sessions."""

    async def strike(victim: Member) -> None:
        trial.fleet.kill(victim)

    await _struck(trial, strike)
    await _all_back(trial.fleet)


async def pause_worker(trial: Trial) -> None:
    """A worker stands still for longer than its lease, and goes on as if nothing had happened."""

    async def strike(victim: Member) -> None:
        trial.world.tasks.start_soon(trial.fleet.pause, victim, _long(trial))

    await _struck(trial, strike)


async def cut_worker(trial: Trial) -> None:
    """A worker's connections to the database break, and none is let in for longer than its lease."""

    async def strike(victim: Member) -> None:
        await trial.world.wires[victim.name].cut()
        _heal_later(trial, victim)

    await _struck(trial, strike, wired=True)


async def leave_and_join(trial: Trial) -> None:
    """A worker is asked to leave in the middle of its turns, and another joins."""

    async def strike(victim: Member) -> None:
        at = now()
        await trial.fleet.stop(victim)
        # What it had in hand may have been shown with its receipt unread.
        trial.fleet.blow("stopped", victim, at)
        await trial.fleet.add("worker")

    await _struck(trial, strike)


# Gateways.


async def kill_gateway(trial: Trial) -> None:
    """The gateway that talks to Telegram dies; the other one goes on."""
    victim = await until_elected(trial.fleet)
    await _spoken_to(trial, victim, trial.fleet.kill(victim))
    await _all_back(trial.fleet)


async def freeze_gateway(trial: Trial) -> None:
    """The gateway that talks to Telegram hears nothing of the database for longer than its lease."""
    victim, at = await until_elected(trial.fleet), now()
    trial.world.wires[victim.name].freeze()
    _heal_later(trial, victim)
    await _spoken_to(trial, victim, at)


async def race(trial: Trial) -> None:
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
        while balancer.passed["both"] - passed < trial.messages:
            await anyio.sleep(0.05)


# The database.


async def restart_database(trial: Trial) -> None:
    server, at = trial.world.server, now()
    assert server is not None
    await anyio.to_thread.run_sync(server.restart, "immediate")
    trial.fleet.blow("restarted", None, at)
    await _new_answer(trial, now())


# Parts of scenes.


async def _struck(
    trial: Trial, strike: Callable[[Member], Awaitable[None]], *, wired: bool = False
) -> None:
    """Strike a worker that is in the middle of turns, and see what it was to answer answered."""
    victim, held = await _busy_worker(trial, wired=wired)
    await strike(victim)
    open_ones = trial.world.ledger.open
    await trial.fleet.until(lambda: not held & open_ones.keys(), "not all were taken up")


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


async def _spoken_to(trial: Trial, victim: Member, at: float) -> None:
    """Wait until somebody who spoke after a blow was answered, and another gateway was elected."""
    await _new_answer(trial, at)
    await until_elected(trial.fleet, but=victim)


async def _new_answer(trial: Trial, since: float) -> None:
    """Wait until something that was said since then is answered."""
    ledger, traffic = trial.world.ledger, trial.traffic

    def late() -> list[Said]:
        return [one for one in ledger.said if one.at > since]

    # Whoever was struck late may have been struck after the last word.
    await trial.fleet.until(lambda: late() or not traffic.talking, "nobody spoke")
    if not late():
        traffic.say()
    await trial.fleet.until(
        lambda: any(one.shown_at is not None for one in late()), "nobody who spoke was answered"
    )


def _heal_later(trial: Trial, victim: Member) -> None:
    at = now()

    async def heal() -> None:
        await anyio.sleep(_long(trial))
        await trial.world.wires[victim.name].heal()
        trial.fleet.blow("cut off", victim, at)

    trial.world.tasks.start_soon(heal)


async def _all_back(fleet: Fleet) -> None:
    """Start again what was killed, as a service manager does."""
    for member in [*fleet.members.values()]:
        if member.killed:
            await fleet.again(member)


def _long(trial: Trial) -> float:
    return 1.5 * trial.fleet.lease + 1.0
