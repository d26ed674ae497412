"""A Discord and its people, and a program with a page of the web chat, for the tests of their channels."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest
from discord_rig import Rig
from web_chat import Page, opened
from web_stage import Stage, program

from bot.testing.scripted_model import ScriptedModel, text_reply
from testkit.discord.server import DiscordServer


@pytest.fixture
async def server() -> AsyncIterator[DiscordServer]:
    async with DiscordServer() as listening:
        with anyio.fail_after(60):
            yield listening


@pytest.fixture
def ada(server) -> int:
    return server.user("ada", shown="Ada")


@pytest.fixture
def eve(server) -> int:
    return server.user("eve", shown="Eve")


@pytest.fixture
def home(server, ada, eve) -> int:
    return server.guild("home", [ada, eve])


@pytest.fixture
def general(server, home) -> int:
    return server.channel(home, "general")


@pytest.fixture
def place(server, ada) -> int:
    return server.direct(ada)


@pytest.fixture
def made(server, ada, tmp_path) -> Rig:
    """A channel of Discord, not running, whose owner is Ada."""
    rig = Rig(server, tmp_path)
    rig.doors.people[str(ada)] = "owner"
    return rig


@pytest.fixture
def rig(made) -> Rig:
    return made


@pytest.fixture
async def stage(tmp_path) -> AsyncIterator[Stage]:
    async with program(tmp_path, ScriptedModel(lambda _: text_reply("**Hello** Ada"))) as stage:
        yield stage


@pytest.fixture
async def page(stage: Stage) -> AsyncIterator[Page]:
    async with opened(stage.site) as page:
        await page.until(lambda: page.rows or page.welcome)
        yield page
