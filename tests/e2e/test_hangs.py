"""A hang is logged, can be stopped, and costs nobody else their answer; what was only interrupted is answered."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from hanging_views import install
from platform_program import ROOT, Program, running
from waiting import until

from testkit.openai_server import Reply, ScriptedOpenAI
from testkit.telegram.server import TelegramServer

pytestmark = pytest.mark.slow

ADA, BOB = 7, 8
SOON = 120.0


class World:
    """Two people, a model, and a folder for the program; ``patience`` is waited for before what was said is answered."""

    def __init__(self, telegram: TelegramServer, model: ScriptedOpenAI, folder: Path) -> None:
        self.telegram, self.model, self.folder = telegram, model, folder
        self.patience: dict[str, anyio.Event] = {}
        model._steps = self._answer
        install(folder / "site")

    def _answer(self, request: dict[str, Any]) -> Reply:
        said = str(request["messages"][-1]["content"]).rpartition("] ")[2]
        return Reply(f"Heard: {said}", gate=self.patience.get(said))

    @asynccontextmanager
    async def program(self, **more: str) -> AsyncIterator[Program]:
        settings = {
            "TAPEBOT_MODEL": "openai/test",
            "TAPEBOT_MODEL_API_BASE": self.model.base_url,
            "TAPEBOT_MODEL_API_KEY": "sk-test",
            "TAPEBOT_TELEGRAM_TOKEN": self.telegram.token,
            "TAPEBOT_TELEGRAM_API_BASE": self.telegram.url,
            "TAPEBOT_OWNERS": f"telegram:{ADA},telegram:{BOB}",
            "PYTHONPATH": f"{ROOT}:{self.folder / 'site'}",
            **more,
        }
        async with running(self.folder, **settings) as program:
            yield program

    def say(self, who: int, text: str) -> None:
        self.telegram.say(self.telegram.private(who), who, text)

    async def shows(self, who: int, text: str) -> None:
        await self.telegram.until(
            lambda books: any(text in one for one in books.texts(who)), within=SOON
        )

    @property
    def log(self) -> str:
        return (self.folder / "home" / "logs" / "tapebot.log").read_text("utf-8")

    async def logs(self, text: str, count: int = 1) -> None:
        await until(lambda: self.log.count(text) >= count, SOON, every=0.05)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with TelegramServer() as telegram, ScriptedOpenAI([]) as model:
        telegram.user(ADA, "Ada")
        telegram.user(BOB, "Bob")
        yield World(telegram, model, tmp_path)


async def ended(program: Program) -> int:
    with anyio.fail_after(SOON):
        return await program.process.wait()


async def test_a_message_that_hangs_the_process_is_given_up_after_two_hangs(world: World):
    """It can be stopped meanwhile, others are answered at each start, and it can be tried again."""
    hanging, patience = {"TAPEBOT_CONTEXT_BUILDER": "hanging"}, anyio.Event()
    world.patience["are you there?"] = patience
    async with world.program(**hanging) as program:
        world.say(BOB, "are you there?")
        with anyio.fail_after(SOON):
            await world.model.received(1)
        world.say(ADA, "Loop for ever")
        await world.logs("the event loop has been blocked")
        await world.logs("handling session telegram:7, messages")
        assert "hanging_views.py" in world.log
        program.process.terminate()
        assert await ended(program) == 128 + signal.SIGTERM
    async with world.program(**hanging) as program:
        # The suspect comes after everybody else.
        with anyio.fail_after(SOON):
            await world.model.received(2)
        patience.set()
        await world.shows(BOB, "Heard: are you there?")
        await world.logs("the event loop has been blocked", 2)
        await world.logs("handling session telegram:7, messages", 2)
        program.process.terminate()
        assert await ended(program) == 128 + signal.SIGTERM
    async with world.program(**hanging):
        await world.shows(ADA, "I was interrupted more than once while answering this")
        world.say(ADA, "never mind")
        await world.shows(ADA, "Heard: never mind")
        (world.folder / "mended").touch()
        [given_up] = [one for one in world.telegram.records.shown if "interrupted" in one.text]
        [[button]] = given_up.buttons
        world.telegram.press(given_up, button["callback_data"])
        await world.telegram.until(lambda books: len(books.texts(ADA)) == 3, within=SOON)
        assert "Loop for ever" in str(world.model.requests[-1]["messages"])
    assert world.log.count("the event loop has been blocked") == 2


async def test_a_message_that_crashes_the_process_is_given_up_after_three_crashes(world: World):
    """Whoever was being answered beside it is answered, and is not taken for the cause."""
    crashing, patience = {"TAPEBOT_CONTEXT_BUILDER": "hanging"}, anyio.Event()
    world.patience["are you there?"] = patience
    async with world.program(**crashing) as program:
        world.say(BOB, "are you there?")
        with anyio.fail_after(SOON):
            await world.model.received(1)
        world.say(ADA, "Crash at once")
        assert await ended(program) == -signal.SIGSEGV
    patience.set()
    for time in range(1, 3):
        async with world.program(**crashing) as program:
            await world.logs("the process before crashed", time)
            assert await ended(program) == -signal.SIGSEGV
    assert "hanging_views.py" in world.log
    async with world.program(**crashing):
        await world.shows(BOB, "Heard: are you there?")
        await world.shows(ADA, "I was interrupted more than once while answering this")
        world.say(ADA, "never mind")
        await world.shows(ADA, "Heard: never mind")
    assert not list((world.folder / "home").glob("crash.log"))
    # What other people say says nothing of a crash.
    assert world.telegram.records.texts(BOB) == ["Heard: are you there?"]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
async def test_a_turn_that_was_stopped_six_times_in_a_model_call_is_answered(
    world: World, how: signal.Signals
):
    patience = world.patience["take your time"] = anyio.Event()
    world.say(ADA, "take your time")
    for time in range(1, 7):
        async with world.program() as program:
            with anyio.fail_after(SOON):
                await world.model.received(time)
            os.kill(program.process.pid, how)
            await ended(program)
    patience.set()
    async with world.program():
        await world.shows(ADA, "Heard: take your time")
    assert world.telegram.records.texts(ADA) == ["Heard: take your time"]
