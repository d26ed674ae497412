"""What is promised of a chat's work when its channel ends."""

import anyio

from channels.keyed_executor import KeyedExecutor


async def test_what_comes_while_the_channel_ends_does_not_overtake_what_was_cut_off():
    done: list[str] = []
    began, cut = anyio.Event(), anyio.Event()

    async def first() -> None:
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            cut.set()

    async def second() -> None:
        done.append("second")

    async with anyio.create_task_group() as tasks:
        lanes = KeyedExecutor(tasks)

        async def late() -> None:
            with anyio.CancelScope(shield=True):
                await cut.wait()
                for _ in range(5):
                    await anyio.lowlevel.checkpoint()
                lanes.submit("a chat", second)

        lanes.submit("a chat", first)
        tasks.start_soon(late)
        await began.wait()
        tasks.cancel_scope.cancel()

    assert done == []
