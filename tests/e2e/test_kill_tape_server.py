"""The tape server is killed between an append and its answer, and bots that talk through it go on."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
from kill_checks import check_tape
from platform_program import running
from preloaded import Forked, environment, open_program
from sampling import many

from bot.memory.records.turn_marks import turn_end
from bot.tape.entries import message
from bot.tape.server.tokens import TokenStore
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.remote import RemoteTapeStore
from testkit.openai_server import Reply, ScriptedOpenAI
from testkit.ports import kept_port
from testkit.telegram.server import TelegramServer

PROGRAM = Path(__file__).with_name("faulty_program.py")
TAPES = ("telegram:1", "telegram:2")
WITHIN = 60.0
"""Seconds for a start or a kill; an append may be retried for longer, since it may meet many kills."""


class Server:
    """A tape server that dies and is started again at the same place."""

    def __init__(self, folder: Path, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        listen = {"TAPEBOT_TAPE_SERVER_LISTEN": f"127.0.0.1:{port}"}
        self._environment = environment(folder, **listen)
        self._process: Forked

    async def start(self, calls: int = 0, *, before: bool = False) -> None:
        """Start it; it kills itself at so many syncs of a file, before or after the sync, never with 0."""
        fault = json.dumps({"times": calls, "only": "fdatasync", "after": not before})
        self._process = await open_program(
            [str(PROGRAM), "tape-server", fault], environment=self._environment, stderr=None
        )
        said = b""
        with anyio.fail_after(WITHIN):
            while b"tape server on" not in said:
                said += await self._process.stdout.receive()

    async def dies(self) -> int:
        with anyio.fail_after(WITHIN):
            code = await self._process.wait()
        await self._process.aclose()
        return code

    async def end(self, by: int = signal.SIGTERM) -> int:
        self._process.send_signal(by)
        return await self.dies()


@contextmanager
def server_in(folder: Path) -> Iterator[Server]:
    # While the server is dead, nobody else is given its port.
    with kept_port() as port:
        server = Server(folder, port)
        try:
            yield server
        finally:
            server._process.kill()


@pytest.mark.slow
@pytest.mark.timeout(900)  # a hundred starts, which take minutes on a busy machine
async def test_a_hundred_kills_of_the_server_lose_nothing_and_repeat_nothing(tmp_path):
    folder, kills, chance = tmp_path, many(100), random.Random(2)
    token = TokenStore(folder / "home" / "tape-tokens.json").add("bot", "append", ["*"])
    acknowledged: dict[str, dict[int, str]] = {tape: {} for tape in TAPES}
    finished = anyio.Event()
    with server_in(folder) as server:
        store = RemoteTapeStore(server.url, token, patience=10 * WITHIN)

        async def write(tape: str, writer: int) -> None:
            step = 0
            while not finished.is_set():
                pair = [message("user", f"{writer}.{step}{half}") for half in "ab"]
                for entry in await store.append_many(tape, pair):
                    assert entry.id not in acknowledged[tape], "an id was given twice"
                    acknowledged[tape][entry.id] = entry.payload["content"]
                step += 1

        await server.start()
        for tape in TAPES:
            await store.create_tape(tape)
        assert await server.end() == 0
        async with anyio.create_task_group() as tasks:
            for writer in range(4):
                tasks.start_soon(write, TAPES[writer % 2], writer)
            for _ in range(kills):
                await server.start(chance.randint(1, 6), before=chance.random() < 0.3)
                assert await server.dies() == -signal.SIGKILL
            await server.start()
            finished.set()
        retries = store.statistics()["retries"]
        await store.close()
        assert await server.end() == 0
    assert retries >= kills
    await check(folder, acknowledged)


async def check(folder: Path, acknowledged: dict[str, dict[int, str]]) -> None:
    store = FileTapeStore(folder / "home" / "tapes", read_only=True)
    for tape, known in acknowledged.items():
        entries = await store.read(tape)
        said = {e.id: e.payload["content"] for e in entries if e.kind == "message"}
        assert said.items() >= known.items(), "an acknowledged entry is lost or moved"
        texts = list(said.values())
        assert len(set(texts)) == len(texts), "something was appended twice"
        assert [first[:-1] for first in texts[::2]] == [second[:-1] for second in texts[1::2]]
        assert len(known) == len(said), "the last appends were answered, too"
    await store.close()


@pytest.mark.slow
async def test_a_bot_on_a_tape_server_talks_is_killed_and_goes_on(tmp_path):
    """The server and the bot die in turn; every message is answered once, as on files."""
    token = TokenStore(tmp_path / "home" / "tape-tokens.json").add("bot", "admin", ["*"])
    said = [f"my number is {number}" for number in range(4)]
    async with (
        TelegramServer() as telegram,
        ScriptedOpenAI(lambda asked: Reply(f"So {asked['messages'][-1]['content'][-1]}.")) as model,
    ):
        telegram.private(telegram.user(7, "Ada"))
        settings = {
            "TAPEBOT_MODEL": "openai/test",
            "TAPEBOT_MODEL_API_BASE": model.base_url,
            "TAPEBOT_MODEL_API_KEY": "sk-test",
            "TAPEBOT_TELEGRAM_TOKEN": telegram.token,
            "TAPEBOT_TELEGRAM_API_BASE": telegram.url,
            "TAPEBOT_OWNERS": "telegram:7",
        }
        with server_in(tmp_path) as server:
            await server.start()
            settings |= {"TAPEBOT_TAPE_STORE": server.url, "TAPEBOT_TAPE_STORE_TOKEN": token}
            for number, text in enumerate(said):
                async with running(tmp_path, **settings) as program:
                    telegram.say(7, 7, text)
                    # Killed while it answers, or once it has.
                    wanted = (
                        telegram.until_messages(7, number + 1)
                        if number % 2
                        else model.received(number + 1)
                    )
                    with anyio.fail_after(WITHIN):
                        await wanted
                    await server.end(signal.SIGKILL)
                    program.process.kill()
                    await program.process.wait()
                await server.start()
            async with running(tmp_path, **settings):
                await telegram.until(lambda books: "So 3." in books.texts(7), within=WITHIN)
            store = RemoteTapeStore(server.url, token)
            entries = await store.read("telegram:7")
            await store.close()
            assert await server.end() == 0
    check_tape(entries)
    assert [e.payload["content"] for e in entries if "inbound" in e.meta] == said
    settled = [one for end in filter(None, map(turn_end, entries)) for one in end.data["inbound"]]
    assert len(settled) == len(said)
