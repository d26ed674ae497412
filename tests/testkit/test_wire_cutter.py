"""A wire to a real database that is cut, frozen and healed."""

from __future__ import annotations

from contextlib import suppress

import anyio
import pytest
from anyio.abc import SocketStream

from testkit.wire_cutter import WireCutter


class Echo:
    """A server that repeats what it hears."""

    def __init__(self) -> None:
        self.heard = b""
        self.port = 0

    async def run(self, *, task_status) -> None:
        async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
            self.port = listener.extra(anyio.abc.SocketAttribute.local_port)
            task_status.started()
            await listener.serve(self._repeat)

    async def _repeat(self, stream: SocketStream) -> None:
        async with stream:
            with suppress(anyio.BrokenResourceError):
                async for data in stream:
                    self.heard += data
                    await stream.send(data)


@pytest.fixture
async def echo():
    async with anyio.create_task_group() as tasks:
        one = Echo()
        await tasks.start(one.run)
        yield one
        tasks.cancel_scope.cancel()


async def silent(stream: SocketStream, seconds: float = 0.2) -> bool:
    with anyio.move_on_after(seconds):
        await stream.receive()
        return False
    return True


async def test_a_cut_wire_breaks_what_it_carries_and_refuses_until_it_is_healed(echo):
    async with WireCutter(echo.port) as wire:
        one = await anyio.connect_tcp("127.0.0.1", wire.port)
        await one.send(b"a")
        assert await one.receive() == b"a"
        await wire.cut()
        with pytest.raises((anyio.BrokenResourceError, anyio.EndOfStream)), anyio.fail_after(30):
            await one.receive()
        await one.aclose()
        with pytest.raises(OSError, match="connection"):
            await anyio.connect_tcp("127.0.0.1", wire.port)
        await wire.heal()
        async with await anyio.connect_tcp("127.0.0.1", wire.port) as again:
            await again.send(b"b")
            assert await again.receive() == b"b"


async def test_a_frozen_wire_is_silent_and_what_it_held_comes_late(echo):
    async with (
        WireCutter(echo.port) as wire,
        await anyio.connect_tcp("127.0.0.1", wire.port) as one,
    ):
        await one.send(b"a")
        assert await one.receive() == b"a"
        wire.freeze()
        await one.send(b"late")
        assert await silent(one)
        assert echo.heard == b"a"
        async with await anyio.connect_tcp("127.0.0.1", wire.port) as two:
            await two.send(b"new")
            assert await silent(two)
            await wire.heal()
            with anyio.fail_after(30):
                assert await one.receive() == b"late"
                assert await two.receive() == b"new"
