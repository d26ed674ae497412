"""Calls a metered model again and again, four calls at a time, until it is killed.

Arguments: a folder or a database's address, and the process's name. Each call has a conversation of its
own, so that the ledger tells calls apart. Every line of the output is written as soon as it is true:
``began NAME`` and ``ended NAME`` by the model itself, ``refused NAME`` by the caller.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC
from pathlib import Path

import anyio

from bot.agent.spending.metered_model import MeteredModel
from bot.agent.spending.spending import Spending
from bot.core.clock import SystemClock
from bot.core.database.connections import Database
from bot.core.database.wakeups import Wakeups
from bot.llm.base import ModelReply, ModelRequest, OnText, Usage
from bot.llm.spender import Spender, current_spender, spends
from bot.memory.records.spending_amounts import EVERYONE, NANO, Limit
from bot.offline.model import OfflineModel
from bot.tape.store import TapeStore
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.postgres import PostgresTapeStore
from bot.testing.scripted_model import ScriptedModel

LIMIT = 1_000.0
"""Dollars a month."""
COST = 0.5
"""Dollars that each call costs."""


def tell(line: str) -> None:
    os.write(1, f"{line}\n".encode())


class Provider(ScriptedModel):
    """A model that writes down what it bills."""

    async def complete(self, _: ModelRequest, __: OnText | None = None) -> ModelReply:
        name = current_spender().session
        tell(f"began {name}")
        await anyio.sleep(0.002)
        tell(f"ended {name}")
        return ModelReply("hello", usage=Usage(100, 0, 10, COST, 1), model=self.name)


@asynccontextmanager
async def opened(where: str) -> AsyncIterator[TapeStore]:
    """Open the store: a folder, or a database."""
    if not where.startswith("postgresql:"):
        store = FileTapeStore(Path(where))
        yield store
        await store.close()
        return
    database = Database(where, connections=4)
    await database.open()
    try:
        yield PostgresTapeStore(database, Wakeups(database))
    finally:
        await database.close()


async def main(where: str, process: str) -> None:
    numbers = itertools.count()
    async with opened(where) as store, anyio.create_task_group() as tasks:
        spending = Spending(store, SystemClock(), zone=UTC)
        tasks.start_soon(spending.run)
        model = MeteredModel(Provider(), spending, OfflineModel)
        await spending.set_limit(Limit(EVERYONE, "month", "usd", round(LIMIT * NANO)))

        async def call() -> None:
            while True:
                name = f"{process}.{next(numbers)}"
                with spends(Spender("test:1", name, owner=True)):
                    reply = await model.complete(ModelRequest([{"role": "user", "content": "hi"}]))
                if reply.model == "offline":
                    tell(f"refused {name}")
                    await anyio.sleep_forever()

        for _ in range(4):
            tasks.start_soon(call)


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
