"""What a person does in a chat, where a gateway and a worker in two processes answer."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from fleet_trial import open_trial

from testkit.openai_server import Reply

SEED = 3
# The smallest picture there is.
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
)


@pytest.mark.family("fleets")
@pytest.mark.slow
async def test_streams_typing_stop_files_and_commands_go_between_processes(tmp_path: Path):
    """Nobody in the chat can tell that there is more than one process."""
    open_gate, shut_gate = anyio.Event(), anyio.Event()
    asked: list[str] = []
    open_gate.set()

    def answer(request: dict) -> Reply:
        said = [one for one in request["messages"] if one["role"] == "user"]
        text = str(said[-1]["content"])
        asked.append(str(said))
        if "for ever" in text:
            return Reply("I begin with this and never come to an end.", piece=30, gate=shut_gate)
        return Reply("A short answer to that.")

    async with open_trial(
        tmp_path, SEED, people=2, gateways=1, workers=1, model="openai/gpt-4o"
    ) as trial:
        world = trial.world
        telegram, books = world.telegram, world.telegram.records
        world.model.server._steps = answer
        ada, bob = world.chats

        def begun(known) -> bool:
            return any("I begin" in str(one) for one in (*known.texts(ada), *known.drafts))

        async def say(chat: int, text: str, reply: str) -> None:
            telegram.say(chat, chat, text)
            await telegram.until(lambda known: reply in str(known.texts(chat)[-1:]), within=60)

        await say(ada, "hello", "A short answer to that.")

        # A stream that hangs is shown as far as it is, with the sign that more is to come, and stopped.
        before = len(books.actions)
        telegram.say(ada, ada, "talk for ever")
        await telegram.until(begun, within=60)
        await telegram.until(lambda known: len(known.actions) > before, within=60)
        await say(ada, "/stop", "Stopped.")

        # A command is the worker's, its menu and its answer the gateway's.
        await say(ada, "remember: I like tea", "Added to memory")
        await say(ada, "/memory", "tea")

        # What the worker writes into its home reaches the chat through the gateway's.
        telegram.say(ada, ada, "/memory export")
        await telegram.until(lambda _: telegram.files(ada), within=60)
        [(name, content)] = telegram.files(ada).items()
        assert name.endswith(".zip")
        assert content.startswith(b"PK")

        # What the gateway takes in is seen by the worker's model.
        telegram.photo(ada, ada, PIXEL, caption="what is this?")
        await telegram.until(lambda _: "data:image" in asked[-1], within=60)

        # The other is nobody's owner, and is let out at once by whoever is.
        await say(bob, "hello", "A short answer to that.")
        await say(bob, "/pair", "Only an owner")
        await trial.fleet.stop_all()
    shut_gate.set()
