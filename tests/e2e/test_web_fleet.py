"""The site of a fleet: gateways and workers of one database; real processes, real sockets."""

from __future__ import annotations

import itertools
import random
import re
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import anyio
import httpx
import pytest
from databases import drop, fresh_database, server
from fleet_database import rows
from fleet_processes import Fleet, Member
from fleet_world import World, open_world
from waiting import until
from web_chat import Page

from testkit.ports import kept_port

OWNER = 1_001
CHAT = "web:telegram.1001"
SEED = 20_261_122


async def code_by_telegram(world: World, fleet: Fleet) -> str:
    """Ask for a code in the private chat on Telegram; return what the bot answers."""
    found: list[str] = []

    def answered() -> bool:
        texts = [str(one.versions[-1].text) for one in world.telegram.records.messages(OWNER)]
        found[:] = re.findall(r"\b[0-9A-Z]{4}(?:-[0-9A-Z]{4})+\b", "\n".join(texts))
        return bool(found)

    world.telegram.say(OWNER, OWNER, "/login")
    await fleet.until(answered, "no code came")
    return found[-1]


async def token_of(client: httpx.AsyncClient, code: str) -> str:
    """Log in by a code, and make a token on the page for that."""
    assert (await client.post("/login", data={"code": code})).status_code == 303
    assert (await client.post("/login", data={"code": code})).status_code == 403
    account = (await client.get("/account")).text
    (csrf, *_) = re.findall(r'name="csrf" value="([0-9a-f]{64})"', account)
    made = await client.post(
        "/account/tokens", data={"csrf": csrf, "name": "test", "chat": "on", "site": "on"}
    )
    (token,) = set(re.findall(r"tapebot_[\w-]{43}", made.text))
    return token


async def serving(fleet: Fleet) -> Member:
    sql = (
        "select holder from tapebot.lease where name = 'channel/web' and until > clock_timestamp()"
    )
    found = await until(lambda: rows(fleet, sql), every=0.1)
    pid = int(found[0][0].split("/")[1])
    return next(one for one in fleet.gateways if one.pid == pid)


async def up(client: httpx.AsyncClient) -> None:
    async def answers() -> bool:
        with suppress(httpx.TransportError):
            assert (await client.get("/login")).status_code == 200
            return True
        return False

    await until(answers, every=0.1)


async def talked(page: Page, text: str, **more: Any) -> dict[str, Any]:
    before = set(page.rows)
    await page.say(text, **more)

    def answers() -> list[dict[str, Any]]:
        fresh = (row for key, row in page.rows.items() if key not in before)
        return [row for row in fresh if row["author"] == "bot"]

    await page.until(answers, within=60)
    return answers()[-1]


@pytest.mark.family("fleets")
@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_fleet_has_one_site_whichever_of_its_processes_serves_it(tmp_path):
    chance, database = random.Random(SEED), fresh_database()
    try:
        with kept_port() as port:
            address = f"http://127.0.0.1:{port}"
            listen = {"TAPEBOT_WEB_LISTEN": f"127.0.0.1:{port}", "TAPEBOT_WEB_URL": address}
            async with open_world(chance, people=2, database=database, server=server()) as world:
                # So long that none is lost on a busy machine: the site may move by a kill alone.
                fleet = Fleet(world, tmp_path, lease=10, settings=listen)
                async with fleet.running(gateways=2, workers=1):
                    await played(world, fleet, address)
                    await fleet.stop_all()
    finally:
        drop(database)


async def played(world: World, fleet: Fleet, address: str) -> None:
    async with httpx.AsyncClient(base_url=address, timeout=60) as browser:
        await up(browser)
        token = await token_of(browser, await code_by_telegram(world, fleet))
    bearer = {"Authorization": f"Bearer {token}"}
    page = Page(SimpleNamespace(url=address), "", bearer)  # type: ignore[arg-type]
    async with (
        httpx.AsyncClient(base_url=address, timeout=60, headers=bearer) as client,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(page.run)
        await page.until(lambda: page.welcome, within=60)
        assert page.welcome is not None
        assert (page.welcome["session"], page.welcome["role"]) == (CHAT, "owner")
        await chatted(page, client)
        await taken_over(page, fleet)
        tasks.cancel_scope.cancel()


async def chatted(page: Page, client: httpx.AsyncClient) -> None:
    """Answers stream from the worker; what is sent comes to it, and is shown again."""
    with anyio.fail_after(60):
        # Of an answer that is whole too soon nothing is shown before it.
        for number in itertools.count(1):
            await talked(page, f"Tell me about K{number:06}, please.")
            if any(frame["type"] == "partial" for frame in page.frames):
                break
    data = b"%PDF not quite"
    kept = await client.post("/chat/uploads?name=a.pdf&mime=application/pdf", content=data)
    assert kept.status_code == 201, kept.text
    await talked(page, "look at K001002", files=(kept.json()["id"],))
    (said,) = (row for row in page.rows.values() if row["text"] == "look at K001002")
    (attached,) = said["attachments"]
    assert (await page.fetch(attached["url"])).content == data


async def taken_over(page: Page, fleet: Fleet) -> None:
    """Another gateway goes on at the same address when the one that serves is killed."""
    first, connections = await serving(fleet), page.connections
    fleet.kill(first)
    await page.until(lambda: page.connections > connections, within=60)
    await talked(page, "Tell me about K001004, please.")
    assert await serving(fleet) is not first
    said = [row["text"] for row in page.rows.values() if row["author"] == "person"]
    assert len(said) == len(set(said))
