"""What every channel promises (``channels.base.Channel``), seen by a person and by the bus."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from channel_scenes import SCENES, Scene
from waiting import until

from bot.bus import (
    Activity,
    Address,
    Answer,
    BusError,
    DeliveryReport,
    Inbound,
    Outbound,
    OutgoingFile,
    PartialAnswer,
    PublishResult,
    SessionFull,
)
from bot.bus.local import LocalBus


class Bus:
    """The real bus, and the session's end of it in the test's hands."""

    def __init__(self, bus: LocalBus) -> None:
        self._bus = bus
        self.refusals: list[BusError] = []
        self.heard: list[Inbound] = []
        self.reports: list[DeliveryReport] = []

    async def publish(self, inbound: Inbound) -> PublishResult:
        if self.refusals:
            raise self.refusals.pop(0)
        return await self._port.publish(inbound)

    async def receive(self) -> Outbound:
        return await self._port.receive()

    async def report(self, report: DeliveryReport) -> None:
        await self._port.report(report)

    async def wait_drained(self) -> None:
        await self._port.wait_drained()

    async def send(self, outbound: Outbound) -> None:
        await self._bus.send(outbound)

    async def hear(self, count: int = 1) -> Inbound:
        await until(lambda: len(self.heard) >= count)
        return self.heard[count - 1]

    def finals(self, answer: str) -> list[DeliveryReport]:
        return [one for one in self.reports if one.final and one.answer == answer]

    async def serve(self, channel: str) -> None:
        self._port = self._bus.channel(channel)
        async with anyio.create_task_group() as tasks:
            while True:
                tasks.start_soon(self._hold, await self._bus.claim())

    async def _hold(self, inbox) -> None:
        while True:
            item = await inbox.receive()
            if isinstance(item, DeliveryReport):
                self.reports.append(item)
            else:
                self.heard.append(item.inbound)
                await item.ack()


@pytest.fixture(scope="session", autouse=True)
def client_libraries() -> None:
    """Load them before any test's clock runs: that takes seconds."""
    import channels.discord
    import channels.telegram
    import channels.web  # noqa: F401


@pytest.fixture(params=SCENES)
async def scene(request: pytest.FixtureRequest, tmp_path) -> AsyncIterator[Scene]:
    async with SCENES[request.param](tmp_path) as scene:
        yield scene


@pytest.fixture
async def bus(scene: Scene, tmp_path) -> AsyncIterator[Bus]:
    local = LocalBus(tmp_path / "bus", max_queued_messages=50, sync=False)
    bus = Bus(local)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bus.serve, scene.session.partition(":")[0])
        await anyio.lowlevel.checkpoint()
        yield bus
        tasks.cancel_scope.cancel()
    await local.aclose()


@asynccontextmanager
async def running(scene: Scene, bus: Bus) -> AsyncIterator[None]:
    """Run the channel within the block, and cancel it at its end."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scene.channel().run, bus)
        await anyio.lowlevel.checkpoint()
        await scene.ready()
        yield
        tasks.cancel_scope.cancel()


def answer(scene: Scene, text: str, name: str = "t1", to: Inbound | None = None) -> Answer:
    address = Address.parse(scene.session)
    return Answer(address, name, text, reply_to=to.id if to else None, stream=name)


async def test_a_message_reaches_the_bus_with_who_said_what_where_and_when(scene, bus):
    async with running(scene, bus):
        scene.say("Grüße, 你好!")
        heard = await bus.hear()
    assert (heard.session, heard.text, heard.private) == (scene.session, "Grüße, 你好!", True)
    assert (heard.sender.id, heard.sender.name, heard.role) == (scene.sender, "Ada", "owner")
    assert abs(heard.sent_at - datetime.now(UTC)) < timedelta(minutes=2)
    assert heard.expects_answer


async def test_an_answer_is_shown_and_reported_once(scene, bus):
    async with running(scene, bus):
        scene.say("hello")
        heard = await bus.hear()
        await bus.send(answer(scene, "hello Ada", to=heard))
        await until(lambda: bus.finals("t1"))
        await until(lambda: "hello Ada" in scene.seen())
    assert scene.seen().count("hello Ada") == 1
    (report,) = bus.finals("t1")
    assert (report.delivered, report.error, report.session) == (True, None, scene.session)


async def test_an_answer_that_belongs_to_another_session_is_reported_to_it(scene, bus):
    async with running(scene, bus):
        scene.say("/approve 3")
        told = answer(scene, "Approved.", to=await bus.hear())
        await bus.send(replace(told, report_to="elsewhere:1"))
        await until(lambda: bus.finals("t1"))
    assert bus.finals("t1")[0].session == "elsewhere:1"


@pytest.mark.parametrize("text", ["42", '{"a": [1]}', "null", "/etc/passwd", "a < b && c > d"])
async def test_text_is_text(scene, bus, text):
    async with running(scene, bus):
        scene.say("?")
        await bus.send(answer(scene, text, to=await bus.hear()))
        await until(lambda: bus.finals("t1"))
        await until(lambda: text in scene.seen())


async def test_a_long_answer_arrives_whole(scene, bus):
    words = [f"word{number}" for number in range(1_500)]
    async with running(scene, bus):
        scene.say("tell me all")
        await bus.send(answer(scene, " ".join(words), to=await bus.hear()))
        await until(lambda: bus.finals("t1"))
        await until(lambda: words[-1] in scene.seen())
    assert scene.seen().split() == words


async def test_what_was_streamed_ends_as_the_answer(scene, bus):
    async with running(scene, bus):
        scene.say("a story")
        heard = await bus.hear()
        address = heard.address
        for state in ("thinking", "waiting", "thinking"):
            await bus.send(Activity(address, state))
        for length in (30, 60, 60, 40, 90):
            await bus.send(
                PartialAnswer(address, "t1", "once upon a time " * (length // 10), heard.id)
            )
            await anyio.sleep(0.01)
        await bus.send(answer(scene, "The end of the story.", to=heard))
        await bus.send(Activity(address, "idle"))
        await until(lambda: bus.finals("t1"))
        await until(lambda: "The end" in scene.seen())
    assert scene.seen().strip() == "The end of the story."


async def test_answers_keep_their_order(scene, bus):
    async with running(scene, bus):
        scene.say("count")
        heard = await bus.hear()
        for number in range(5):
            await bus.send(answer(scene, f"number {number}", f"t{number}", heard))
        await until(lambda: len(bus.reports) >= 5)
        await until(lambda: "number 4" in scene.seen())
    shown = [line for line in scene.seen().splitlines() if line]
    assert shown == [f"number {number}" for number in range(5)]


def outfile(folder: Path, name: str, data: bytes) -> OutgoingFile:
    (folder / name).write_bytes(data)
    return OutgoingFile(name, folder / name)


async def test_a_file_is_shown_below_its_answer_once(scene, bus, tmp_path):
    data = bytes(range(256)) * 1_000
    files = outfile(tmp_path, "memory-1.zip", data), outfile(tmp_path, "other-2.zip", b"PK")
    async with running(scene, bus):
        scene.say("/memory export")
        told = answer(scene, "Here it is.", to=await bus.hear())
        await bus.send(replace(told, files=files))
        await until(lambda: bus.finals("t1"))
        await until(lambda: len(scene.files()) == 2)
    assert scene.files() == {"memory-1.zip": data, "other-2.zip": b"PK"}
    assert scene.seen().count("Here it is.") == 1
    (report,) = bus.finals("t1")
    assert (report.delivered, report.error) == (True, None)


async def test_a_file_that_is_gone_is_told_of_and_the_others_are_shown(scene, bus, tmp_path):
    there = outfile(tmp_path, "there.zip", b"PK")
    files = OutgoingFile("gone.zip", tmp_path / "gone.zip"), there, OutgoingFile("folder", tmp_path)
    async with running(scene, bus):
        scene.say("/memory export")
        told = answer(scene, "Here it is.", to=await bus.hear())
        await bus.send(replace(told, files=files))
        await until(lambda: bus.finals("t1"))
        await until(lambda: "(folder could not be sent: it no longer exists.)" in scene.seen())
        await bus.send(answer(scene, "And on it goes.", "t2"))
        await until(lambda: "And on it goes." in scene.seen())
    assert scene.seen().count("Here it is.") == 1
    assert "(gone.zip could not be sent: it no longer exists.)" in scene.seen()
    assert scene.files() == {"there.zip": b"PK"}
    assert bus.finals("t1")[0].delivered


async def test_a_command_is_a_message_like_any_other(scene, bus):
    async with running(scene, bus):
        scene.say("/memory add I like tea")
        assert (await bus.hear()).text == "/memory add I like tea"


async def test_a_full_session_is_told_and_the_next_message_is_taken(scene, bus):
    async with running(scene, bus):
        bus.refusals.append(SessionFull("100 messages already wait here"))
        scene.say("one")
        await until(lambda: not bus.refusals)
        scene.say("two")
        assert (await bus.hear()).text == "two"
        if scene.sees_refusals:
            await until(lambda: "100 messages already wait here" in scene.seen())


@pytest.mark.slow
async def test_an_answer_of_before_a_restart_is_shown_after_it(scene, bus):
    await bus.send(answer(scene, "what you asked before"))
    async with running(scene, bus):
        await until(lambda: bus.finals("t1"))
        await until(lambda: "what you asked before" in scene.seen())


async def test_a_stop_at_any_time_is_safe_and_the_next_start_goes_on(scene, bus):
    for number in range(3):
        async with running(scene, bus):
            scene.say(f"message {number}")
            heard = await bus.hear(number + 1)
            await bus.send(Activity(heard.address, "thinking"))
            await bus.send(PartialAnswer(heard.address, f"t{number}", "so far " * 20, heard.id))
            await anyio.sleep(0.02 * number)
    assert [inbound.text for inbound in bus.heard] == [f"message {n}" for n in range(3)]


async def test_a_stranger_is_neither_heard_nor_answered(scene, bus):
    if not scene.strangers:
        assert scene.session == "console:local"  # whoever started the program owns it
        return
    async with running(scene, bus):
        scene.intrude("let me in")
        scene.say("hello")
        heard = await bus.hear()
        assert heard.sender.id == scene.sender
    assert len(bus.heard) == 1
