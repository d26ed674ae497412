"""A peak hour of very many sessions, simulated: workers, one PostgreSQL, and people.

Rule 1: what takes time here was measured; how it adds up is simulated.
Rule 2: nothing is left to chance but by the seed.

PostgreSQL is a queue with as many servers as it has cores; a worker is a queue with one. Renewals and looks
are put on PostgreSQL as a steady stream. Locks, wake-ups, cold pages, the disk's bandwidth and the network
are not simulated.
"""

from __future__ import annotations

import math
import random
from collections import OrderedDict, deque
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace

from bench.report import p50, p95

PER_DAY = 20
PEAK = 0.1
"""Messages of a session in a day, and the share of them in the peak hour."""

TALK = 5
PAUSE = 20.0
"""Messages of a conversation, and seconds from an answer to the next one."""

MODEL = 3.0
"""Seconds of an answer of the model, the median; lognormal with sigma 0.5."""

STEPS = 10
"""Round trips of a turn to PostgreSQL, half of them before the model is asked."""

_POLLS = 4.0
_TOLD = 3.0
"""Looks of a process a second where nothing is told; how often a turn tells of something in a queue."""

_TICK = 0.02
_MEASURED = 60.0
_LATE = 15.0
"""Seconds in which messages are said that are waited for, and those before the end in which none is."""


@dataclass(frozen=True, slots=True)
class Constants:
    """What was measured, in seconds.

    Attributes:
        database: PostgreSQL's CPU of a turn; worker: a worker's; gateway: a gateway's.
        look: CPU of a look; look_hold: more of it for each session held by who looks.
        renew: CPU of renewing a hold.
        commit: What a commit waits for the disk, beside its CPU.
    """

    database: float
    worker: float
    gateway: float
    look: float
    look_hold: float
    renew: float
    commit: float


@dataclass(frozen=True, slots=True)
class Plan:
    """What is deployed.

    Attributes:
        name: For the table.
        sessions: How many people talk.
        cores: Of PostgreSQL.
        holds: Sessions that a worker holds at most.
        idle: Seconds for which it holds one that has nothing to do, unless another needs the place.
        looks: How often a second one worker looks, at most.
    """

    name: str
    sessions: int
    cores: int
    holds: int = 64
    idle: float = 300.0
    looks: float = 33.0

    @property
    def rate(self) -> float:
        """Messages a second in the peak hour."""
        return self.sessions * PER_DAY * PEAK / 3600

    @property
    def wanted(self) -> float:
        """Sessions that would be held at a time if there were room for all."""
        return self.rate / TALK * (TALK * MODEL * 1.13 + (TALK - 1) * PAUSE + self.idle)

    def workers(self, known: Constants) -> int:
        """Return how many there must be: half busy, and with a third of their holds in work."""
        busy = self.rate * known.worker / 0.5
        return max(1, math.ceil(max(busy, self.rate * MODEL * 1.13 / (self.holds / 3))))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it.

    Attributes:
        workers: How many there were.
        held: Sessions that were held at the end; renewals, looks: a second.
        moved: Idle sessions that had to make room for others, a second.
        busy: The share of PostgreSQL's cores that was asked for; steady: that for renewals and looks alone.
        p50: Seconds from a message to its answer without the model's; p95: likewise.
        answered: The share of the messages said while it was measured that were answered by its end.
    """

    workers: int
    held: int
    renewals: float
    looks: float
    moved: float
    busy: float
    steady: float
    p50: float | None
    p95: float | None
    answered: float


class _Peak:
    """One run."""

    def __init__(self, plan: Plan, known: Constants, seed: int) -> None:
        self.plan, self.known, self.chance = plan, known, random.Random(seed)
        self.workers = plan.workers(known)
        self.events: list[tuple[float, int, str, _Talk | None]] = []
        self.cores = [0.0] * plan.cores
        self.free = [0.0] * self.workers
        self.room = self.workers * plan.holds
        self.held = 0
        self.queue: deque[_Talk] = deque()
        self.idle: OrderedDict[_Talk, None] = OrderedDict()
        self.moved = 0
        self.waits: list[float] = []
        self.said = 0
        self.work = 0.0
        self.order = 0
        tells = min(plan.rate * _TOLD, plan.looks)
        self.looks = self.workers * (_POLLS + tells)
        each = min(plan.wanted / self.workers, plan.holds)
        self.look = known.look + known.look_hold * each
        # What idles is what talks no more, and what does.
        self.begin = plan.idle + TALK * (PAUSE + MODEL)
        self.last = self.begin + _MEASURED
        self.end = self.last + _LATE

    def run(self) -> Outcome:
        """Run until the end."""
        self.put(0.0, "arrive", None)
        self.put(0.0, "tick", None)
        while self.events:
            now, _, what, talk = heappop(self.events)
            if now > self.end:
                break
            getattr(self, f"on_{what}")(now, talk)
        renewals = self.held / (30 / 3)
        steady = (self.looks * self.look + renewals * self.known.renew) / self.plan.cores
        busy = self.work / (self.plan.cores * _MEASURED)
        some = self.waits or [math.nan]
        return Outcome(
            self.workers,
            self.held,
            renewals,
            self.looks,
            self.moved / _MEASURED,
            busy,
            steady,
            p50(some) if self.waits else None,
            p95(some) if self.waits else None,
            len(self.waits) / max(self.said, 1),
        )

    def put(self, at: float, what: str, talk: _Talk | None) -> None:
        self.order += 1
        heappush(self.events, (at, self.order, what, talk))

    def serve(self, now: float, work: float) -> float:
        """Have a core of PostgreSQL work; return when it is done."""
        done = max(self.cores[0], now) + work
        heapreplace(self.cores, done)
        if self.begin <= now < self.last:
            self.work += work
        return done

    def on_arrive(self, now: float, _: _Talk | None) -> None:
        self.put(now + self.chance.expovariate(self.plan.rate / TALK), "arrive", None)
        self.on_say(now, _Talk())

    def on_tick(self, now: float, _: _Talk | None) -> None:
        steady = self.looks * self.look + self.held / 10 * self.known.renew
        share = steady * _TICK / self.plan.cores
        for _each in range(self.plan.cores):
            self.serve(now, share)
        self.put(now + _TICK, "tick", None)

    def on_say(self, now: float, talk: _Talk) -> None:
        talk.said, talk.step, talk.number = now, 0, talk.number + 1
        self.said += self.begin <= now < self.last
        self.idle.pop(talk, None)
        if talk.worker is None:
            if not self.room and self.idle:
                self.give_up(next(iter(self.idle)), now)
            if not self.room:
                self.queue.append(talk)
                return
            self.take(talk)
        self.on_step(now, talk)

    def take(self, talk: _Talk) -> None:
        self.room -= 1
        self.held += 1
        talk.worker = self.chance.randrange(self.workers)

    def give_up(self, talk: _Talk, now: float) -> None:
        """Let an idle session go to whoever has something next."""
        del self.idle[talk]
        talk.worker = None
        self.room += 1
        self.held -= 1
        self.moved += self.begin <= now < self.last

    def on_step(self, now: float, talk: _Talk) -> None:
        """Go to PostgreSQL and back; in the middle to the model, and to the worker's own work."""
        if talk.step == STEPS:
            self.on_answer(now, talk)
            return
        if talk.step in (1, STEPS // 2 + 1):
            assert talk.worker is not None
            now = max(self.free[talk.worker], now) + self.known.worker / 2
            self.free[talk.worker] = now
        if talk.step == STEPS // 2:
            talk.model = self.chance.lognormvariate(math.log(MODEL), 0.5)
            now += talk.model
        talk.step += 1
        self.put(now, "trip", talk)

    def on_trip(self, now: float, talk: _Talk) -> None:
        work = self.chance.expovariate(STEPS / self.known.database)
        self.put(self.serve(now, work) + self.known.commit, "step", talk)

    def on_answer(self, now: float, talk: _Talk) -> None:
        if self.begin <= talk.said < self.last:
            self.waits.append(now - talk.said - talk.model)
        self.idle[talk] = None
        if talk.number < TALK:
            self.put(now + self.chance.expovariate(1 / PAUSE), "say", talk)
        else:
            self.put(now + self.plan.idle, "leave", talk)
        if self.queue:
            self.give_up(talk, now)
            waited = self.queue.popleft()
            self.take(waited)
            self.on_step(now, waited)

    def on_leave(self, _: float, talk: _Talk) -> None:
        if self.idle.pop(talk, self) is None:
            talk.worker = None
            self.room += 1
            self.held -= 1


class _Talk:
    """A conversation: its newest message, and where that is on its way."""

    __slots__ = ("model", "number", "said", "step", "worker")

    def __init__(self) -> None:
        self.worker: int | None = None
        self.number = self.step = 0
        self.said = self.model = 0.0


def peak(plan: Plan, known: Constants, seed: int = 1) -> Outcome:
    """Simulate a minute of the peak hour, after as much time as it takes until holds neither grow nor fall."""
    return _Peak(plan, known, seed).run()
