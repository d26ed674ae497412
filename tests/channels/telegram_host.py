"""A Telegram channel in a process of its own, for tests that kill it: ``URL TOKEN FOLDER``."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
from telegram_rig import QUICK, Desk, Door

from bot.bus import Answer, DeliveryReport
from bot.bus.local import LocalBus
from channels.base import ChannelContext, GroupPolicy
from channels.telegram import TelegramChannel


async def work(bus: LocalBus) -> None:
    """Answer what comes with ``echo: TEXT``; a message is done once its answer was reported."""
    while True:
        inbox = await bus.claim()
        while (item := inbox.receive_nowait()) is not None:
            if isinstance(item, DeliveryReport):
                continue
            inbound = item.inbound
            number = f"{inbound.session}/{inbound.id}"
            await bus.send(Answer(inbound.address, number, f"echo: {inbound.text}"))
            await item.ack()
        inbox.release()


async def main(url: str, token: str, folder: Path) -> None:
    bus = LocalBus(folder / "bus", max_queued_messages=50)
    access_control = Door()
    access_control.roles["7"] = "owner"
    platform = ChannelContext(
        access_control, Desk(), (), GroupPolicy(), folder / "telegram", lambda line: None
    )
    channel = TelegramChannel("telegram", token, platform, api_base=url, webhook=None, timing=QUICK)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work, bus)
        tasks.start_soon(channel.run, bus.channel("telegram"))


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2], Path(sys.argv[3]))
