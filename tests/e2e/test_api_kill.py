"""The program is killed below a client that repeats its requests: each is answered once."""

from __future__ import annotations

import random
import signal
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from sampling import many
from web_program import web_program

from bot.tape.stores.file import FileTapeStore

KILLS = many(10)
SEED = 20_261_126


class Client:
    """A client that sends its conversation until it is answered."""

    def __init__(self, url: str, token: str) -> None:
        self.said: list[dict[str, str]] = []
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"}

    async def ask(self, text: str) -> None:
        """Say something; send it again, without a word that it is again, until there is an answer."""
        self.said.append({"role": "user", "content": text})
        body: dict[str, Any] = {"model": "tapebot", "messages": self.said}
        async with httpx.AsyncClient(base_url=self._url, headers=self._headers) as http:
            while True:
                try:
                    answer = await http.post("/v1/chat/completions", json=body, timeout=30)
                except httpx.TransportError:
                    await anyio.sleep(0.05)
                    continue
                if answer.status_code == 200:
                    break
                assert answer.status_code >= 500, answer.text
        message = answer.json()["choices"][0]["message"]
        self.said.append({"role": "assistant", "content": message["content"]})


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_kills_below_a_client_answer_each_request_once(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    async with web_program(tmp_path) as program:
        await program.start()
        client = Client(program.url, await program.run("web", "token", "test"))
        for number in range(KILLS):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.ask, f"message {number}")
                await anyio.sleep(chance.uniform(0, 0.12))
                await program.end(signal.SIGKILL)
                await program.start()
        await program.end(signal.SIGKILL)
    store = FileTapeStore(tmp_path / "home" / "tapes")
    tapes = [tape for tape in await store.list_tapes() if tape.startswith("api:")]
    told = {
        tape: [_text(e) for e in await store.read(tape) if e.kind == "message"] for tape in tapes
    }
    await store.close()
    # A kill after an answer was sent and before its receipt is written may give it twice, never anew.
    assert tapes == ["api:local:1"], told
    assert told["api:local:1"] == [one["content"] for one in client.said]


def _text(entry: Any) -> str:
    return str(entry.payload["content"])
