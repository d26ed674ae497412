"""Run the Telegram test server in a process of its own."""

from __future__ import annotations

from testkit.process import ServerProcess


class TelegramProcess(ServerProcess):
    """The server in a process; an async context manager."""

    module = "testkit.telegram"

    @property
    def url(self) -> str:
        return self.urls["url"]

    @property
    def token(self) -> str:
        return self.urls["token"]

    async def texts(self, chat: int) -> list[str]:
        shown = (await self.records())["shown"]
        return [
            one["versions"][-1]["text"]
            for one in shown
            if one["chat"] == chat and one["deleted_at"] is None
        ]
