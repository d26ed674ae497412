"""tapebot beside nanobot, bub, and the least code that keeps a conversation.

Each is driven in its own public way (``bench/drivers``), with the same messages, against the same model server, which
answers at once. Runs are interleaved, so that the machine's noise meets all alike.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bench.instant_server import INSTANT, SLOW
from bench.peers_install import VERSIONS, NotInstalled, install
from bench.peers_processes import DrivenProcess, Peer, Server, instant_server
from bench.peers_table import OTHERS, OURS, TURNS, Samples, peers_table
from bench.prompt_cache import count_tokens, o200k
from bench.report import Scale, Table, ms
from bench.resident import resident
from bench.workload import question

_LEAST = "least"
_LONG, _IN_VIEW = 10_000, 20
_TURNS_EACH = 5
_DROPPED = 1
"""First turns of a chat: they open it."""
_SEEDED = 2 * _TURNS_EACH - 4
"""So many messages less are seeded: those of a measured turn are then as wanted in the mean."""
_SESSIONS = 100
_WARM_TURNS = 10
_LAST = 900
"""Number of the message after a kill."""


async def measure(scale: Scale) -> list[Table]:
    """Measure all of them, and say of each row whether tapebot reaches it."""
    samples, peers = _peers()
    turns, kills = scale.pick(TURNS, 30), scale.pick(12, 2)
    with instant_server(scale.work / "requests") as server:
        benches = [_Bench(one, samples[one.name], server, scale) for one in peers]
        _each(benches, _Bench.prepare)
        for number in range(scale.pick(5, 1)):
            _each(benches, partial(_Bench.round, number=number))
            # The order changes, so that none always follows the same other.
            benches = benches[1:] + benches[:1]
        _each(benches, partial(_Bench.count_tokens, turns=turns))
        for number in range(kills):
            _each(benches, partial(_Bench.kill, number=number, kills=kills))
    names = {_LEAST: "least code", **{one: f"{one} {VERSIONS[one]}" for one in OTHERS}}
    return [peers_table(samples, turns, _notes(scale, kills), names)]


def _peers() -> tuple[dict[str, Samples], list[Peer]]:
    """Return a place for what is measured of each, and those that can be measured."""
    samples = {name: Samples() for name in (OURS, *OTHERS, _LEAST)}
    peers = []
    for name, measured in samples.items():
        try:
            peers.append(Peer(name, install(name)) if name in OTHERS else Peer(name))
        except NotInstalled as error:
            measured.missing = str(error)
    return samples, peers


def _each(benches: list[_Bench], measure_one: Callable[[_Bench], None]) -> None:
    """Measure one after the other; who fails is left out from then on, tapebot itself excepted."""
    for bench in list(benches):
        try:
            measure_one(bench)
        except RuntimeError as error:
            if bench.name == OURS:
                raise
            bench.samples.missing = str(error).strip().splitlines()[-1][:300]
            benches.remove(bench)


def _notes(scale: Scale, kills: int) -> list[str]:
    return [
        f"median of {scale.pick(5, 1)} interleaved runs on {os.cpu_count()} cores, load "
        f"{os.getloadavg()[0]:.1f} at the end; all ask one model server, which answers at once, over loopback",
        "a cache serves what a request has in common with an earlier one of its session, in tokens; "
        "consolidations count",
        f"{kills} kills: what was acknowledged, or asked of the model, and is in no prompt afterwards",
    ]


class _Bench:
    """Measures one assistant."""

    def __init__(self, peer: Peer, samples: Samples, server: Server, scale: Scale) -> None:
        self.name = peer.name
        self.samples = samples
        self._peer = peer
        self._server = server
        self._folder = scale.work / peer.name
        # Assistants know their home by its path: a copy is put where it was made.
        self._seeded, self._home = self._folder / "seeded", self._folder / "home"
        self._chats = {"cpu_10": scale.pick(4, 2), "cpu_1000": 2, "cpu_long": scale.pick(2, 1)}
        self._each = scale.pick(3, 1)

    def prepare(self) -> None:
        """Write long conversations, and start it once so that the file cache is warm."""
        views = {"cpu_10": 10, "cpu_1000": 1_000, "cpu_long": _IN_VIEW}
        chats = []
        for row, name in self._names():
            view = views[row] - _SEEDED
            chats.append([name, _LONG if row == "cpu_long" else view, view])
        with self._peer.drive(self._home, self._server.address(INSTANT), wide=True) as driver:
            driver.ask("seed", chats=chats)
        self._home.rename(self._seeded)
        self._peer.first_reply(self._fresh("once"), self._server.address(INSTANT))

    def round(self, number: int) -> None:
        """Measure everything once that differs from run to run."""
        address = self._server.address(INSTANT)
        self.samples.add("start", ms(self._peer.first_reply(self._fresh("once"), address)))
        with self._peer.drive(self._fresh("new"), address) as driver:
            self._say(driver, "one", _WARM_TURNS)
            self.samples.add("resident", resident(driver.id) / 1_000)
            told = driver.ask("crowd", chats=_SESSIONS, each=1)
            told = driver.ask("crowd", chats=_SESSIONS, each=self._each)
            self.samples.add("rate", _SESSIONS * self._each / told["seconds"])
        shutil.rmtree(self._home, ignore_errors=True)
        shutil.copytree(self._seeded, self._home)
        with self._peer.drive(self._home, address, wide=True) as driver:
            self._say(driver, f"warm-{number}", _WARM_TURNS)
            driver.ask("settle")
            for row, name in self._names():
                self._talk(driver, row, name)

    def _talk(self, driver: DrivenProcess, row: str, name: str) -> None:
        """Take turns in a seeded conversation."""
        taken = self._say(driver, name, 1)
        if row == "cpu_long":
            self.samples.add("first", ms(taken[0]["wall"]))
        # What it does behind the answer is no part of later turns.
        driver.ask("settle")
        taken += self._say(driver, name, _TURNS_EACH - 1)
        self.samples.add(row, *(ms(one["cpu"]) for one in taken[_DROPPED:]))
        wrote = [one["written"] / 1_000 for one in taken[_DROPPED:] if one["written"] is not None]
        if row != "cpu_1000":
            self.samples.add("written_long" if row == "cpu_long" else "written", *wrote)

    def count_tokens(self, turns: int) -> None:
        """Hold one conversation, and count what its requests cost."""
        encode = o200k()
        if encode is None:
            return
        name = f"tokens-{self.name}"
        with self._peer.drive(self._fresh(name), self._server.address(name)) as driver:
            self._say(driver, "one", turns)
            driver.ask("settle")
        found = count_tokens(self._server.requests(name), encode)
        self.samples.add("tools", found.tools)
        self.samples.add("contract", found.contract)
        self.samples.add("sent", found.sent)
        self.samples.add("uncached", found.uncached)

    def kill(self, number: int, kills: int) -> None:
        """Kill it in the middle of a turn; count what it knew and does not know any more."""
        name = f"{SLOW}-{self.name}-{number}"
        home, address = self._fresh(name), self._server.address(name)
        with self._peer.drive(home, address) as driver:
            driver.tell("talk", chat="one", first=1)
            last = 3 + number % 3
            seen = [json.loads(driver.line())]
            while seen[-1] != ["said", last]:
                seen.append(json.loads(driver.line()))
            # Half of the kills come at any time from here, the others once the model was asked.
            while number % 2 and not self._asked(name, last):
                time.sleep(0.001)
            time.sleep(0.06 * number / kills)
            seen += [json.loads(line) for line in driver.kill()]
        known = {at for what, at in seen if what != "said" or self._asked(name, at)}
        with self._peer.drive(home, address) as driver:
            driver.ask("say", chat="one", texts=[question(_LAST)])
        prompt = json.dumps(self._server.requests(name)[-1])
        self.samples.add("lost", sum(f"Message {at}:" not in prompt for at in known))

    def _asked(self, name: str, number: int) -> bool:
        """Say whether the model was asked with a message."""
        return f"Message {number}:" in json.dumps(self._server.requests(name))

    def _say(self, driver: DrivenProcess, chat: str, turns: int) -> list[dict[str, Any]]:
        texts = [question(number) for number in range(1, turns + 1)]
        taken: list[dict[str, Any]] = []
        # In parts: the time that one request may take is bounded.
        for at in range(0, turns, 10):
            taken += driver.ask("say", chat=chat, texts=texts[at : at + 10])["turns"]
        return taken

    def _names(self) -> Iterator[tuple[str, str]]:
        """Yield the seeded conversations, and of which row they are."""
        for row, copies in self._chats.items():
            for copy in range(copies):
                yield row, f"{row}-{copy}"

    def _fresh(self, name: str) -> Path:
        home = self._folder / name
        shutil.rmtree(home, ignore_errors=True)
        return home
