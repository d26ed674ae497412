"""Runs the console channel against a bus end that echoes, for tests over real pipes and ptys.

What a message makes it do: ``slow`` thinks until ``/stop``; ``say:X`` answers X with its escapes
decoded; anything else is streamed back as ``echo: TEXT``.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
from pathlib import Path

import anyio
import anyio.lowlevel

from bot.bus import (
    Activity,
    Answer,
    DeliveryReport,
    Inbound,
    Outbound,
    PartialAnswer,
    PublishResult,
)
from channels.console import ConsoleChannel


class EchoPort:
    """A channel's ends of a bus whose session echoes; logs what the channel does."""

    def __init__(self, log: Path | None) -> None:
        self._log = log
        self._to_bot, self._from_person = anyio.create_memory_object_stream[Inbound](100)
        self._to_person, self._from_bot = anyio.create_memory_object_stream[Outbound](100)
        self._stop = anyio.Event()

    async def publish(self, inbound: Inbound) -> PublishResult:
        self._note(inbound=inbound.text, id=inbound.id)
        if inbound.text == "/stop":
            self._stop.set()
        await self._to_bot.send(inbound)
        return PublishResult()

    async def receive(self) -> Outbound:
        return await self._from_bot.receive()

    async def wait_drained(self) -> None:
        await anyio.lowlevel.checkpoint()

    async def report(self, report: DeliveryReport) -> None:
        self._note(report=report.answer, delivered=report.delivered, session=report.session)

    async def serve(self) -> None:
        async for inbound in self._from_person:
            await self._turn(inbound)

    async def _turn(self, inbound: Inbound) -> None:
        address, text, stream = inbound.address, f"echo: {inbound.text}", f"s-{inbound.id}"
        await self._to_person.send(Activity(address, "thinking"))
        if inbound.text.startswith("say:"):
            text = inbound.text.removeprefix("say:").encode().decode("unicode_escape")
        elif inbound.text == "/stop":
            text = "Stopped."
        elif inbound.text == "slow":
            await self._to_person.send(PartialAnswer(address, stream, "first words"))
            await self._to_person.send(PartialAnswer(address, stream, "first words and more"))
            await self._stop.wait()
            self._stop = anyio.Event()
            text = "**first words** and no more"
        else:
            for end in range(4, min(len(text), 40)):
                await self._to_person.send(PartialAnswer(address, stream, text[:end]))
        answer = Answer(address, f"a-{inbound.id}", text, reply_to=inbound.id, stream=stream)
        await self._to_person.send(answer)
        await self._to_person.send(Activity(address, "idle"))

    def _note(self, **event: object) -> None:
        if self._log is not None:
            with self._log.open("a") as log:
                log.write(json.dumps(event) + "\n")


async def host(options: argparse.Namespace) -> None:
    port = EchoPort(options.log)
    channel = ConsoleChannel(
        history_file=options.history,
        user_name="Ada",
        commands=[("status", "how the bot is"), ("memory", "what it knows")],
        banner="tapebot, for tests\nsecond banner line",
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(port.serve)
        tasks.start_soon(cancel_on_sigterm, tasks.cancel_scope)
        await channel.run(port)
        tasks.cancel_scope.cancel()


async def cancel_on_sigterm(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", type=Path)
    parser.add_argument("--history", type=Path)
    options = parser.parse_args()
    # The mode that files and directories get must not depend on the machine's mask.
    os.umask(0)
    anyio.run(host, options)


if __name__ == "__main__":
    main()
