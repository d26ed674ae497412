"""The program is killed again and again below an open page: everything is said, answered and shown once."""

from __future__ import annotations

import random
import signal
from types import SimpleNamespace

import anyio
import pytest
from sampling import many
from waiting import until
from web_chat import Page
from web_program import web_program

KILLS = many(12)
SEED = 20_261_122


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_kills_below_an_open_page_lose_nothing_and_double_nothing(tmp_path):
    chance = random.Random(SEED)
    said: list[str] = []
    async with web_program(tmp_path) as program, anyio.create_task_group() as tasks:
        await program.start()
        bearer = {"Authorization": f"Bearer {await program.run('web', 'token', 'test')}"}
        page = Page(SimpleNamespace(url=program.url), "", bearer)  # type: ignore[arg-type]
        tasks.start_soon(page.run)
        await page.until(lambda: page.welcome, within=60)
        for number in range(KILLS):
            for _ in range(3):
                said.append(await page.say(f"message {len(said)}"))
                await anyio.sleep(chance.uniform(0, 0.02))
            await program.end(signal.SIGKILL)
            said.append(await page.say(f"said to nobody {number}"))
            await program.start()
        await page.until(lambda: not page.unsent, within=60)
        assert page.refused == []
        fresh = Page(page.site, "", bearer)
        tasks.start_soon(fresh.run)
        # An answer that is still to come is shown by one of them first.
        await until(
            lambda: _settled(page, said) and _shown(page)[-50:] == _shown(fresh)[-50:],
            every=0.05,
        )
        tasks.cancel_scope.cancel()
    people = [one for one in _shown(page) if page.rows[one]["author"] == "person"]
    assert people == [one for one in said if one in people]


def _shown(page: Page) -> list[str]:
    """Return the ids of lines as a person sees them: in the order of the tape."""
    return sorted(page.rows, key=lambda one: page.rows[one]["position"])


def _settled(page: Page, said: list[str]) -> bool:
    """Say whether the last messages are on the tape and answered."""
    there = [page.rows.get(one, {}).get("position") for one in said[-4:]]
    return all(there) and page.rows[_shown(page)[-1]]["author"] == "bot"
