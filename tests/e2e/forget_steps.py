"""What tests of forgetting do: ask for something to be erased, and look for what is left of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from forget_traces import traces

from bot.testing.host import Host


async def erase(host: Host, asked: str, **who: Any) -> str:
    """Ask for something to be forgotten, and press the button; return what is answered."""
    question = await host.channel.send(f"/memory forget {asked}", **who)
    text = await host.channel.wait_for_answer(question)
    buttons = [one.command for one in host.channel.answers[-1].buttons]
    assert buttons, text
    pressed = await host.channel.send(buttons[0], **who)
    return await host.channel.wait_for_answer(pressed, within=20)


async def until_clean(host: Host, folder: Path, words: list[str]) -> None:
    """Wait until the bus has let go of the last message, and see that nothing else holds a word."""
    await host.bus.drain()
    await host.wait_until(lambda: not traces(folder / "bus", words))
    left = traces(folder, words)
    assert left == [], left
