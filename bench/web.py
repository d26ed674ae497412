"""How long the inspector takes by the tape's length: over a socket, and in a browser."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep
from urllib.parse import urlencode

import httpx

from bench.machine import bare_python, clocked
from bench.models import InstantModel
from bench.processes import environment
from bench.program import CHANNEL, program
from bench.report import Cell, Scale, Table, ms, p50, p95
from bench.seed import seed_long
from bot.memory.records.turn_marks import turn_end
from bot.tape.stores.file import FileTapeStore

_CHROMIUM = Path("/usr/bin/chromium")
_FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
_WINDOW = 100
_ENTRIES = 24
_PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class _Site:
    """A site that runs.

    Attributes:
        url: Where.
        cookie: Name and value of an owner's login.
        started: Seconds from starting its process until it answered.
        first: Seconds that its first page took.
    """

    url: str
    cookie: tuple[str, str]
    started: float
    first: float

    def client(self) -> httpx.Client:
        """Return a client that is logged in."""
        return httpx.Client(base_url=self.url, cookies=dict([self.cookie]), timeout=_PATIENCE)


@contextmanager
def _site(home: Path) -> Iterator[_Site]:
    began = perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.web_server", str(home)],
        env=environment(),
        cwd=home,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        if process.stdout is None:
            raise RuntimeError("the site has no output")
        told = json.loads(process.stdout.readline())
        with httpx.Client(base_url=told["url"]) as client:
            _until_answered(client)
        started = perf_counter() - began
        cookie = (told["cookie"], told["secret"])
        with _Site(told["url"], cookie, started, 0).client() as client:
            first = clocked(lambda: _got(client, "/sessions"))
        yield _Site(told["url"], cookie, started, first)
    finally:
        process.terminate()
        process.communicate(timeout=30)


def _until_answered(client: httpx.Client) -> None:
    end = perf_counter() + _PATIENCE
    while True:
        try:
            client.get("/login")
        except httpx.TransportError:
            if perf_counter() > end:
                raise
            sleep(0.01)
        else:
            return


def _got(client: httpx.Client, path: str) -> int:
    answer = client.get(path, headers={"Accept": "text/html"})
    answer.raise_for_status()
    return len(answer.content)


@contextmanager
def _loopback(size: int) -> Iterator[Callable[[], None]]:
    """Give what asks a bare socket for so many bytes: the machine's limit for a page of that size."""
    listening = socket.create_server(("127.0.0.1", 0))
    payload = bytes(size)

    def answer() -> None:
        connection, _ = listening.accept()
        with connection:
            while connection.recv(512):
                connection.sendall(payload)

    answering = threading.Thread(target=answer)
    answering.start()
    with socket.create_connection(listening.getsockname()) as asking:

        def ask() -> None:
            asking.sendall(b"x" * 500)
            left = size
            while left:
                left -= len(asking.recv(65536))

        yield ask
    answering.join()
    listening.close()


def _paths(tape: str, version: int, turn: str) -> dict[str, str]:
    of = {"tape": tape}
    window = {**of, "first": max(1, version - _WINDOW + 1), "last": version}
    return {
        "conversations": "/sessions",
        "timeline, HTML": f"/timeline?{urlencode(of)}",
        f"{_WINDOW} entries, JSON": f"/api/v1/entries?{urlencode(window)}",
        "turns": f"/turns?{urlencode(of)}",
        "what the model saw": f"/turn?{urlencode({**of, 'turn': turn})}",
    }


def _over_sockets(site: _Site, tapes: dict[int, dict[str, str]], runs: int) -> list[list[Cell]]:
    rows: list[list[Cell]] = []
    with site.client() as client:
        short, long = sorted(tapes)
        for name in tapes[short]:
            taken: dict[int, list[float]] = {}
            size = 0
            for entries in (short, long):
                path = tapes[entries][name]
                size = _got(client, path)
                taken[entries] = [
                    clocked(lambda path=path: _got(client, path))  # type: ignore[misc]
                    for _ in range(runs)
                ]
            with _loopback(size) as ask:
                bare = p50([clocked(ask) for _ in range(runs)])
            brief, lengthy = taken[short], taken[long]
            rows.append(
                [name, ms(p50(brief)), ms(p50(lengthy)), ms(p95(lengthy)),
                 p50(lengthy) / p50(brief), size / 1000, ms(bare)]
            )  # fmt: skip
    return rows


async def _in_a_browser(site: _Site, tapes: dict[int, dict[str, str]], runs: int) -> list[Cell]:
    """Return the milliseconds until a timeline can be used, by the length of its tape."""
    from playwright.async_api import async_playwright

    found: list[Cell] = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=str(_CHROMIUM), args=_FLAGS)
        for entries in sorted(tapes):
            taken = []
            # The first shows how long a browser takes to wake up.
            for run in range(-1, runs):
                context = await browser.new_context()
                name, value = site.cookie
                await context.add_cookies([{"name": name, "value": value, "url": site.url}])
                page = await context.new_page()
                await page.goto(site.url + tapes[entries]["timeline, HTML"])
                await page.wait_for_selector("#tape[data-ready]")
                if run >= 0:
                    taken.append(float(await page.evaluate("performance.now()")))
                await context.close()
            found += [p50(taken), max(taken)]
        await browser.close()
    return found


async def _of_many(home: Path, conversations: int, runs: int) -> Table:
    """Return how long the list of conversations takes where there are many."""
    await seed_long(home, {f"chat-{number}": _ENTRIES for number in range(conversations)})
    with _site(home) as site, site.client() as client:
        began, pages, unread = perf_counter(), 1, conversations
        while unread:
            answer = client.get("/api/v1/sessions", params={"limit": 1})
            unread = answer.raise_for_status().json()["unread"]
            pages += 1
        known = perf_counter() - began
        warm = [clocked(lambda: _got(client, "/sessions")) for _ in range(runs)]
    rows: list[tuple[str, Cell]] = [
        ("first page, of which nothing is known yet", ms(site.first)),
        ("until all are known and in order", ms(known)),
        ("  requests that it took", pages),
        ("page after that", ms(p50(warm))),
        ("  p95", ms(p95(warm))),
    ]
    title = f"The list of {conversations:,} conversations of {_ENTRIES} entries"
    return Table(title, ("", "ms"), rows)


async def measure(scale: Scale) -> list[Table]:
    """Measure pages of a short tape and of a long one in the same home, and of a home with many."""
    sizes = {"short": 100, "long": scale.pick(100_000, 6_000)}
    await seed_long(scale.work, sizes)
    async with program(scale.work, InstantModel()) as running:
        for chat in sizes:
            await running.turn(chat)
    store = FileTapeStore(scale.work / "tapes", sync=False)
    tapes = {}
    for tape in (f"{CHANNEL}:{chat}" for chat in sizes):
        version = await store.version(tape)
        near = await store.read(tape, max(1, version - 40), version)
        ends = filter(None, map(turn_end, reversed(near)))
        turn = next(str(end.data["turn"]) for end in ends)
        tapes[version] = _paths(tape, version, turn)
    await store.close()
    runs = scale.pick(50, 5)
    short, long = (f"{entries:,}" for entries in sorted(tapes))
    with _site(scale.work) as site:
        rows = _over_sockets(site, tapes, runs)
        browser = await _in_a_browser(site, tapes, scale.pick(5, 2)) if _CHROMIUM.exists() else []
    starts = [site]
    for _ in range(scale.pick(2, 0)):
        with _site(scale.work) as again:
            starts.append(again)
    first: list[tuple[str, Cell, Cell]] = [
        ("first page after a start", ms(p50([one.first for one in starts])), None),
        ("from the start of the process until it answers", ms(p50([one.started for one in starts])),
         p50([one.started for one in starts]) / bare_python()),
    ]  # fmt: skip
    tables = [
        Table(
            f"Pages of the inspector over a loopback socket, of tapes of {short} and {long} entries",
            ("", f"ms at {short}", f"ms at {long}", "p95", "ratio", "kB", "bare socket ms"),
            rows,
            [
                f"medians of {runs}; bare socket: as many bytes over the same loopback, and nothing else"
            ],
        ),
        Table("The first page", ("", "ms", "× a bare interpreter"), first),
        await _of_many(scale.work / "many", scale.pick(1_000, 100), runs),
    ]
    if browser:
        tables.append(
            Table(
                "Until a timeline can be used, in Chromium with an empty cache",
                ("", f"ms at {short}", "longest", f"ms at {long}", "longest", "ratio"),
                [("timeline", *browser, float(str(browser[2])) / float(str(browser[0])))],
            )
        )
    return tables
