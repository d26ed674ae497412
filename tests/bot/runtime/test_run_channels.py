"""Channels run side by side: what one of them ends with is told, and ends no other."""

from __future__ import annotations

from functools import partial

import anyio
import pytest

from bot.bus import ChannelPort, ChannelRefused
from bot.runtime.app import open_app
from bot.runtime.app.channels import run_channels
from bot.runtime.settings import Settings
from channels.base import ChannelSpec


class RefusedChannel:
    """Is refused in a task of a task, after the other has begun."""

    def __init__(self, name: str, begun: anyio.Event, context) -> None:
        self.name, self._begun = name, begun

    async def run(self, port: ChannelPort) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(port.receive)
            async with anyio.create_task_group() as inner:
                inner.start_soon(self._log_in)

    async def _log_in(self) -> None:
        await self._begun.wait()
        raise ChannelRefused(f"{self.name}: set TAPEBOT_TOKEN to another token")


class OpenChannel:
    """Ends by itself once the other one was refused."""

    name = "open"

    def __init__(self, begun: anyio.Event, told: anyio.Event, context) -> None:
        self._begun, self._told = begun, told

    async def run(self, port: ChannelPort) -> None:
        self._begun.set()
        await self._told.wait()


@pytest.fixture
async def app(tmp_path):
    async with open_app(Settings(_env_file=None, home=tmp_path, model="offline")) as app:
        yield app


async def test_a_refusal_in_any_task_of_a_channel_is_told_and_ends_this_channel_alone(app):
    begun, told, texts = anyio.Event(), anyio.Event(), []

    def announce(text: str) -> None:
        texts.append(text)
        told.set()

    specs = [
        ChannelSpec("refused", partial(RefusedChannel, "refused", begun)),
        ChannelSpec("open", partial(OpenChannel, begun, told)),
    ]
    with anyio.fail_after(30):
        await run_channels(app, specs, announce)
    assert texts == ["refused: set TAPEBOT_TOKEN to another token"]


async def test_if_all_channels_are_refused_the_last_refusal_ends_the_program(app):
    begun, texts = anyio.Event(), []
    begun.set()
    specs = [ChannelSpec(name, partial(RefusedChannel, name, begun)) for name in ("one", "two")]
    with pytest.raises(ChannelRefused, match="TAPEBOT_TOKEN"), anyio.fail_after(30):
        await run_channels(app, specs, texts.append)
    assert len(texts) == 1
