"""Real sessions under a channel of a test server, of which one life follows another in a folder."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import anyio

from bot.bus import AccessDecision, AccessRequest
from bot.bus.media.attachments import AttachmentService
from bot.bus.media.blobs import FolderBlobs
from bot.llm.base import CapabilityProfile, ModelRequest
from bot.testing.host import Host, HostLimits, session_host
from bot.testing.scripted_model import ScriptedModel, text_reply
from channels.base import ChannelContext, GroupPolicy, MenuCommand
from testkit.discord.server import DiscordServer
from testkit.telegram.server import TelegramServer

PICTURE = b"\x89PNG\r\n\x1a\n" + b"0" * 64
COMMANDS = tuple(
    MenuCommand(name, name)
    for name in ("files", "status", "memory", "new", "remind", "schedules", "approve", "deny")
)


class Members:
    """Lets these people in as owners, and all others in a role or not at all."""

    def __init__(self, *people: int, others: Literal["member"] | None = None) -> None:
        self.people = {str(person) for person in people}
        self.others = others

    async def authorize(self, access_request: AccessRequest) -> AccessDecision:
        return AccessDecision("owner" if access_request.sender.id in self.people else self.others)


@dataclass
class Told:
    """What the model was told; it answers each message with its number."""

    requests: list[ModelRequest] = field(default_factory=list)

    def model(self) -> ScriptedModel:
        return ScriptedModel(self._answer, profile=CapabilityProfile(vision=True))

    def _answer(self, request: ModelRequest) -> Any:
        self.requests.append(request)
        return text_reply(f"answer {len(self.requests)}")

    def images(self) -> int:
        """Return how many images the newest message of the newest request shows."""
        content = self.requests[-1].messages[-1]["content"]
        return 0 if isinstance(content, str) else sum(one["type"] == "image_url" for one in content)

    @property
    def newest(self) -> str:
        return str(self.requests[-1].messages[-1]["content"])


@asynccontextmanager
async def life(
    folder: Path,
    server: TelegramServer | DiscordServer,
    model: ScriptedModel,
    people: Members,
    sessions: Mapping[str, Any] | None = None,
    **groups: Any,
) -> AsyncIterator[Host]:
    """Run the sessions and the channel of a server until the block ends, as by a signal."""
    blobs = FolderBlobs(folder / "blobs")
    rules = {"bounds": HostLimits(group_context=10), "images": blobs.get, "files_mb": 1}
    async with session_host(folder, model, **rules, **(sessions or {})) as host:
        context = ChannelContext(
            people,
            AttachmentService(blobs, max_bytes=1_000_000),
            COMMANDS,
            GroupPolicy(**groups),
            folder / "channel",
            lambda _: None,
        )
        async with anyio.create_task_group() as tasks:
            if isinstance(server, TelegramServer):
                from channels.telegram import TelegramChannel
                from channels.telegram.api import TelegramTiming

                timing = TelegramTiming(poll=5, message_group_wait=0.15, first_retry=0.02)
                channel: Any = TelegramChannel(
                    "telegram",
                    server.token,
                    context,
                    api_base=server.url,
                    webhook=None,
                    timing=timing,
                )
                tasks.start_soon(channel.run, host.bus.channel("telegram"))
                yield host
            else:
                from channels.discord import DiscordChannel

                before = server.records.count_gateway_events("ready")
                with server.used_by_discord_py():
                    channel = DiscordChannel(
                        "discord",
                        server.token,
                        context,
                        api_base=server.api_url,
                        gateway_url=server.gateway_url,
                    )
                    tasks.start_soon(channel.run, host.bus.channel("discord"))
                    await server.until(lambda books: books.count_gateway_events("ready") > before)
                    yield host
            tasks.cancel_scope.cancel()
