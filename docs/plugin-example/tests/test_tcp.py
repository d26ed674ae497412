from __future__ import annotations

import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tapebot_plugin_example.tcp_channel import TcpChannel

from bot.testing.channel_contract import ChannelContract
from bot.testing.channel_scene import channel_context
from bot.testing.waiting import until
from channels.base import Channel


class TcpScene:
    """Ada and Eve, each with a connection of their own."""

    session, sender, strangers, sees_refusals = "tcp:7", "7", True, True

    def __init__(self, folder: Path, port: int) -> None:
        self._folder, self._port, self._output = folder, port, b""
        self._ada = self._eve = socket.socket()

    def channel(self) -> Channel:
        return TcpChannel(channel_context(self._folder, self.sender), f"127.0.0.1:{self._port}")

    async def ready(self) -> None:
        self.close()
        self._ada, self._eve = await self._connect("7 Ada"), await self._connect("13 Eve")

    async def _connect(self, hello: str) -> socket.socket:
        await until(self._listens)
        connection = socket.create_connection(("127.0.0.1", self._port))
        connection.sendall(f"{hello}\n".encode())
        connection.setblocking(False)
        return connection

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0

    def say(self, text: str) -> None:
        self._ada.sendall(text.encode() + b"\n")

    def intrude(self, text: str) -> None:
        self._eve.sendall(text.encode() + b"\n")

    def seen(self) -> str:
        with suppress(BlockingIOError):
            while more := self._ada.recv(65_536):
                self._output += more
        return self._output.decode()

    def files(self) -> dict[str, bytes]:
        told = re.findall(r"^The file is `(.*)`\.$", self.seen(), re.MULTILINE)
        return {Path(one).name: Path(one).read_bytes() for one in told}

    def close(self) -> None:
        self._ada.close()
        self._eve.close()


class TestTcpChannel(ChannelContract):
    @asynccontextmanager
    async def open_scene(self, folder: Path) -> AsyncIterator[TcpScene]:
        with socket.socket() as free:
            # Bound and not listening: nobody else is given this port meanwhile.
            free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            free.bind(("127.0.0.1", 0))
            scene = TcpScene(folder, free.getsockname()[1])
            try:
                yield scene
            finally:
                scene.close()
