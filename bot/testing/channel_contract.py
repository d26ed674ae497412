"""The channel contract: what every channel promises, seen by a person and by the bus.

A test class of yours inherits it, and opens a chat on your platform; see ``docs/plugins.md``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel

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
    ReleaseRequest,
    SessionFull,
    SessionInbox,
)
from bot.bus.local import LocalBus
from bot.testing.channel_scene import ChannelScene
from bot.testing.waiting import until


class ContractBus:
    """The real bus, and the session's end of it in the test's hands.

    Attributes:
        refusals: Errors that the next calls of ``publish`` raise.
        heard: All messages that the channel published.
        reports: All reports of deliveries.

    Args:
        bus: The bus.
    """

    def __init__(self, bus: LocalBus) -> None:
        self._bus = bus
        self.refusals: list[BusError] = []
        self.heard: list[Inbound] = []
        self.reports: list[DeliveryReport] = []

    async def publish(self, inbound: Inbound) -> PublishResult:
        """Publish a message, or refuse it."""
        if self.refusals:
            raise self.refusals.pop(0)
        return await self._port.publish(inbound)

    async def receive(self) -> Outbound:
        """Return the next item for the channel."""
        return await self._port.receive()

    async def report(self, report: DeliveryReport) -> None:
        """Take the channel's report."""
        await self._port.report(report)

    async def wait_drained(self) -> None:
        """Wait until every message is acknowledged."""
        await self._port.wait_drained()

    async def send(self, outbound: Outbound) -> None:
        """Send an item to the channel."""
        await self._bus.send(outbound)

    async def hear(self, count: int = 1) -> Inbound:
        """Wait for so many messages; return the last."""
        await until(lambda: len(self.heard) >= count)
        return self.heard[count - 1]

    def finals(self, answer: str) -> list[DeliveryReport]:
        """Return the final reports on an answer."""
        return [one for one in self.reports if one.final and one.answer == answer]

    async def serve(self, channel: str) -> None:
        """Hold the channel's sessions until cancelled."""
        self._port = self._bus.channel(channel)
        async with anyio.create_task_group() as tasks:
            while True:
                tasks.start_soon(self._hold, await self._bus.claim())

    async def _hold(self, inbox: SessionInbox) -> None:
        while True:
            item = await inbox.receive()
            if isinstance(item, DeliveryReport):
                self.reports.append(item)
            elif not isinstance(item, ReleaseRequest | None):
                self.heard.append(item.inbound)
                await item.ack()


@asynccontextmanager
async def running(scene: ChannelScene, bus: ContractBus) -> AsyncIterator[None]:
    """Run the channel within the block, and cancel it at its end."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scene.channel().run, bus)
        await anyio.lowlevel.checkpoint()
        await scene.ready()
        yield
        tasks.cancel_scope.cancel()


def answer_for(
    scene: ChannelScene, text: str, name: str = "t1", to: Inbound | None = None
) -> Answer:
    """Return an answer in the scene's chat."""
    address = Address.parse(scene.session)
    return Answer(address, name, text, reply_to=to.id if to else None, stream=name)


async def _until_seen(scene: ChannelScene, text: str) -> None:
    await until(lambda: text in scene.seen())


def _outgoing_file(folder: Path, name: str, data: bytes) -> OutgoingFile:
    (folder / name).write_bytes(data)
    return OutgoingFile(name, folder / name)


class ChannelContract:
    """Tests of a channel; each opens a chat of its own."""

    def open_scene(self, folder: Path) -> AbstractAsyncContextManager[ChannelScene]:
        """Open a chat, and close it at the end.

        Args:
            folder: An empty folder.
        """
        raise NotImplementedError

    @asynccontextmanager
    async def stage(self, folder: Path) -> AsyncIterator[tuple[ChannelScene, ContractBus]]:
        """Open a chat with a bus behind it; the channel does not run yet."""
        local = LocalBus(folder / "bus", max_queued_messages=50, sync=False)
        bus = ContractBus(local)
        async with self.open_scene(folder) as scene, anyio.create_task_group() as tasks:
            tasks.start_soon(bus.serve, scene.session.partition(":")[0])
            await anyio.lowlevel.checkpoint()
            try:
                yield scene, bus
            finally:
                tasks.cancel_scope.cancel()
        await local.aclose()

    async def test_a_message_reaches_the_bus_with_who_said_what_where_and_when(
        self, tmp_path: Path
    ) -> None:
        async with self.stage(tmp_path) as (scene, bus):
            async with running(scene, bus):
                scene.say("Grüße, 你好!")
                heard = await bus.hear()
            assert (heard.session, heard.text, heard.private) == (
                scene.session,
                "Grüße, 你好!",
                True,
            )
            assert (heard.sender.id, heard.sender.name, heard.role) == (
                scene.sender,
                "Ada",
                "owner",
            )
            assert abs(heard.sent_at - datetime.now(UTC)) < timedelta(minutes=2)
            assert heard.expects_answer

    async def test_an_answer_is_shown_and_reported_once(self, tmp_path: Path) -> None:
        async with self.stage(tmp_path) as (scene, bus):
            async with running(scene, bus):
                scene.say("hello")
                heard = await bus.hear()
                await bus.send(answer_for(scene, "hello Ada", to=heard))
                await until(lambda: bus.finals("t1"))
                await until(lambda: "hello Ada" in scene.seen())
            assert scene.seen().count("hello Ada") == 1
            (report,) = bus.finals("t1")
            assert (report.delivered, report.error, report.session) == (True, None, scene.session)

    async def test_an_answer_that_belongs_to_another_session_is_reported_to_it(
        self, tmp_path: Path
    ) -> None:
        async with self.stage(tmp_path) as (scene, bus):
            async with running(scene, bus):
                scene.say("/approve 3")
                told = answer_for(scene, "Approved.", to=await bus.hear())
                await bus.send(replace(told, report_to="elsewhere:1"))
                await until(lambda: bus.finals("t1"))
            assert bus.finals("t1")[0].session == "elsewhere:1"

    async def test_text_is_text(self, tmp_path: Path) -> None:
        async with self.stage(tmp_path) as (scene, bus), running(scene, bus):
            scene.say("?")
            heard = await bus.hear()
            for text in ("42", '{"a": [1]}', "null", "/etc/passwd", "a < b && c > d"):
                await bus.send(answer_for(scene, text, text, heard))
                await until(partial(bus.finals, text))
                await _until_seen(scene, text)

    async def test_a_long_answer_arrives_whole(self, tmp_path: Path) -> None:
        async with self.stage(tmp_path) as (scene, bus):
            words = [f"word{number}" for number in range(1_500)]
            async with running(scene, bus):
                scene.say("tell me all")
                await bus.send(answer_for(scene, " ".join(words), to=await bus.hear()))
                await until(lambda: bus.finals("t1"))
                await until(lambda: words[-1] in scene.seen())
            assert scene.seen().split() == words

    async def test_what_was_streamed_ends_as_the_answer(self, tmp_path: Path) -> None:
        async with self.stage(tmp_path) as (scene, bus):
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
                await bus.send(answer_for(scene, "The end of the story.", to=heard))
                await bus.send(Activity(address, "idle"))
                await until(lambda: bus.finals("t1"))
                await until(lambda: "The end" in scene.seen())
            assert scene.seen().strip() == "The end of the story."

    async def test_answers_keep_their_order(self, tmp_path: Path) -> None:
        async with self.stage(tmp_path) as (scene, bus):
            async with running(scene, bus):
                scene.say("count")
                heard = await bus.hear()
                for number in range(5):
                    await bus.send(answer_for(scene, f"number {number}", f"t{number}", heard))
                await until(lambda: len(bus.reports) >= 5)
                await until(lambda: "number 4" in scene.seen())
            shown = [line for line in scene.seen().splitlines() if line]
            assert shown == [f"number {number}" for number in range(5)]

    async def test_a_file_is_shown_below_its_answer_once(self, tmp_path: Path) -> None:
        async with self.stage(tmp_path) as (scene, bus):
            data = bytes(range(256)) * 1_000
            files = (
                _outgoing_file(tmp_path, "memory-1.zip", data),
                _outgoing_file(tmp_path, "other-2.zip", b"PK"),
            )
            async with running(scene, bus):
                scene.say("/memory export")
                told = answer_for(scene, "Here it is.", to=await bus.hear())
                await bus.send(replace(told, files=files))
                await until(lambda: bus.finals("t1"))
                await until(lambda: len(scene.files()) == 2)
            assert scene.files() == {"memory-1.zip": data, "other-2.zip": b"PK"}
            assert scene.seen().count("Here it is.") == 1
            (report,) = bus.finals("t1")
            assert (report.delivered, report.error) == (True, None)

    async def test_a_file_that_is_gone_is_told_of_and_the_others_are_shown(
        self, tmp_path: Path
    ) -> None:
        async with self.stage(tmp_path) as (scene, bus):
            there = _outgoing_file(tmp_path, "there.zip", b"PK")
            files = (
                OutgoingFile("gone.zip", tmp_path / "gone.zip"),
                there,
                OutgoingFile("folder", tmp_path),
            )
            async with running(scene, bus):
                scene.say("/memory export")
                told = answer_for(scene, "Here it is.", to=await bus.hear())
                await bus.send(replace(told, files=files))
                await until(lambda: bus.finals("t1"))
                await until(
                    lambda: "(folder could not be sent: it no longer exists.)" in scene.seen()
                )
                await bus.send(answer_for(scene, "And on it goes.", "t2"))
                await until(lambda: "And on it goes." in scene.seen())
            assert scene.seen().count("Here it is.") == 1
            assert "(gone.zip could not be sent: it no longer exists.)" in scene.seen()
            assert scene.files() == {"there.zip": b"PK"}
            assert bus.finals("t1")[0].delivered

    async def test_a_command_is_a_message_like_any_other(self, tmp_path: Path) -> None:
        async with self.stage(tmp_path) as (scene, bus), running(scene, bus):
            scene.say("/memory add I like tea")
            assert (await bus.hear()).text == "/memory add I like tea"

    async def test_a_full_session_is_told_and_the_next_message_is_taken(
        self, tmp_path: Path
    ) -> None:
        async with self.stage(tmp_path) as (scene, bus), running(scene, bus):
            bus.refusals.append(SessionFull("100 messages already wait here"))
            scene.say("one")
            await until(lambda: not bus.refusals)
            scene.say("two")
            assert (await bus.hear()).text == "two"
            if scene.sees_refusals:
                await until(lambda: "100 messages already wait here" in scene.seen())

    async def test_an_answer_of_before_a_restart_is_shown_after_it(self, tmp_path: Path) -> None:
        async with self.stage(tmp_path) as (scene, bus):
            await bus.send(answer_for(scene, "what you asked before"))
            async with running(scene, bus):
                await until(lambda: bus.finals("t1"))
                await until(lambda: "what you asked before" in scene.seen())

    async def test_a_stop_at_any_time_is_safe_and_the_next_start_goes_on(
        self, tmp_path: Path
    ) -> None:
        async with self.stage(tmp_path) as (scene, bus):
            for number in range(3):
                async with running(scene, bus):
                    scene.say(f"message {number}")
                    heard = await bus.hear(number + 1)
                    await bus.send(Activity(heard.address, "thinking"))
                    await bus.send(
                        PartialAnswer(heard.address, f"t{number}", "so far " * 20, heard.id)
                    )
                    await anyio.sleep(0.02 * number)
            assert [inbound.text for inbound in bus.heard] == [f"message {n}" for n in range(3)]

    async def test_a_stranger_is_neither_heard_nor_answered(self, tmp_path: Path) -> None:
        async with self.stage(tmp_path) as (scene, bus):
            if not scene.strangers:
                return  # whoever started the program is the only one there
            async with running(scene, bus):
                scene.intrude("let me in")
                scene.say("hello")
                heard = await bus.hear()
                assert heard.sender.id == scene.sender
            assert len(bus.heard) == 1
