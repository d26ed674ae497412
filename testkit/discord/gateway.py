"""The gateway of the Discord test server: sessions over WebSockets, version 10, JSON.

A session outlives its connection: events are kept and replayed when a client resumes it. A client
that closes with 1000 or 1001, or identifies again, ends its session.
"""

from __future__ import annotations

import importlib
import json
import math
import secrets
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import anyio
from aiohttp import WSCloseCode, WSMsgType, web

from testkit.discord.serialization import application_flags, guild_json, member_json, user_json
from testkit.discord.world import DiscordWorld, Guild

Shard = tuple[int, int]
"""A shard's number and the number of shards."""
UNSHARDED: Shard = (0, 1)


def shard_of(identify: dict[str, Any]) -> Shard | None:
    """Return the shard that an IDENTIFY requests; None if it is invalid (close code 4010)."""
    asked = identify.get("shard", list(UNSHARDED))
    match asked:
        case [int(number), int(count)] if 0 <= number < count:
            return number, count
    return None


def shard_receives_guild(guild_id: int | None, shard: Shard) -> bool:
    """Return whether a shard receives the events of a guild, or of DMs (None)."""
    number, count = shard
    return number == (0 if guild_id is None else (guild_id >> 22) % count)


GUILDS, GUILD_MEMBERS, GUILD_PRESENCES = 1 << 0, 1 << 1, 1 << 8
GUILD_MESSAGES, DIRECT_MESSAGES = 1 << 9, 1 << 12
MESSAGE_CONTENT = 1 << 15
"""Intents."""
PRIVILEGED = GUILD_MEMBERS | GUILD_PRESENCES | MESSAGE_CONTENT
"""Intents that must be enabled in the application's portal."""

_DISPATCH, _RECONNECT, _INVALID, _HELLO, _ACK = 0, 7, 9, 10, 11
_UNKNOWN_OP, _DECODE, _NOT_AUTHENTICATED, _WRONG_TOKEN = 4001, 4002, 4003, 4004
_ALREADY_AUTHENTICATED, _INVALID_SEQ, _WRONG_SHARD, _DISALLOWED_INTENTS = 4005, 4007, 4010, 4014


Encoder = Callable[[bytes], bytes]


class GatewaySocket:
    """The sending side of a WebSocket; a task of its own sends the queued frames in order."""

    def __init__(self, socket: web.WebSocketResponse, request: web.Request, compress: str) -> None:
        self.closed_here = False
        self.gone = False
        self._socket = socket
        self._request = request
        self._encode = _encoder(compress)
        self._outbox, self._inbox = anyio.create_memory_object_stream[dict[str, Any] | int](
            math.inf
        )

    def send(self, frame: dict[str, Any]) -> None:
        """Queue a frame; frames for a closed connection are dropped, as on a network."""
        if not (self.closed_here or self.gone):
            self._outbox.send_nowait(frame)

    def close(self, code: int | None) -> None:
        """Close with a code after the queued frames; None breaks the connection at once."""
        if self.closed_here or self.gone:
            return
        if code is not None:
            self._outbox.send_nowait(code)
        elif self._request.transport is not None:
            self._request.transport.abort()
        self.closed_here = True

    async def run(self) -> None:
        """Send queued frames until the connection is closed."""
        try:
            with self._inbox, self._outbox:
                async for item in self._inbox:
                    if isinstance(item, int):
                        await self._socket.close(code=item)
                        return
                    await self._send(json.dumps(item).encode())
        except ConnectionError:
            return  # the client disconnected: the reader ends, and the session keeps its events
        finally:
            self.gone = True

    async def _send(self, data: bytes) -> None:
        if self._encode is None:
            await self._socket.send_str(data.decode())
        else:
            await self._socket.send_bytes(self._encode(data))


def _encoder(compress: str) -> Encoder | None:
    if compress == "zlib-stream":
        deflate = zlib.compressobj()
        return lambda data: deflate.compress(data) + deflate.flush(zlib.Z_SYNC_FLUSH)
    if compress == "zstd-stream":
        # Clients request it only where it is there, and they run on the same machine.
        zstd: Any = importlib.import_module("compression.zstd")  # of Python 3.14
        stream = zstd.ZstdCompressor()
        return lambda data: bytes(stream.compress(data, stream.FLUSH_BLOCK))
    return None


@dataclass(slots=True)
class GatewaySession:
    """An identified client's session."""

    id: str
    intents: int
    shard: Shard = UNSHARDED
    seq: int = 0
    log: list[dict[str, Any]] = field(default_factory=list)
    link: GatewaySocket | None = None

    def push(self, event: str, data: Any) -> None:
        """Number and keep an event, and send it if there is a connection."""
        self.seq += 1
        frame = {"op": _DISPATCH, "s": self.seq, "t": event, "d": data}
        self.log.append(frame)
        if self.link is not None:
            self.link.send(frame)


@dataclass(slots=True)
class Gateway:
    """All sessions and connections."""

    world: DiscordWorld
    token: Callable[[], str]
    address: str = ""
    heartbeat: int = 41_250
    refused_until: float = 0.0
    refusals: int = 0
    concurrency: int = 1
    sessions: dict[str, GatewaySession] = field(default_factory=dict)
    _links: set[GatewaySocket] = field(default_factory=set)

    @property
    def connected(self) -> int:
        return sum(session.link is not None for session in self.sessions.values())

    def dispatch(
        self, event: str, data: Any, *, intent: int = 0, bare: Any = None, everywhere: bool = False
    ) -> None:
        """Send an event to the shard's sessions with the intent; ``bare`` if they lack content's."""
        guild = None if everywhere else data.get("guild_id")
        number = None if guild is None else int(guild)
        for session in self.sessions.values():
            if intent and not session.intents & intent:
                continue
            if not everywhere and not shard_receives_guild(number, session.shard):
                continue
            whole = bare is None or session.intents & MESSAGE_CONTENT
            session.push(event, data if whole else bare)

    def tell_joined(self, guild: Guild) -> None:
        for session in self.sessions.values():
            if session.intents & GUILDS and shard_receives_guild(guild.id, session.shard):
                self._tell_guild(session, guild, joined=True)

    def drop(self, code: int | None = None) -> None:
        """Close every connection with a code; None breaks them without a close frame."""
        for link in tuple(self._links):
            link.close(code)

    def ask_to_reconnect(self) -> None:
        """Ask every client to reconnect and resume (op 7)."""
        for link in tuple(self._links):
            link.send({"op": _RECONNECT, "d": None})

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self._note("connect", request.path)
        if self.refusals > 0 or time.monotonic() < self.refused_until:
            self.refusals = max(0, self.refusals - 1)
            self._note("refused")
            return web.Response(status=503, text="no gateway is available")
        socket = web.WebSocketResponse(timeout=1.0, max_msg_size=0)
        await socket.prepare(request)
        link = GatewaySocket(socket, request, request.query.get("compress", ""))
        self._links.add(link)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(link.run)
                link.send({"op": _HELLO, "d": {"heartbeat_interval": self.heartbeat, "_trace": []}})
                await self._read(socket, link)
                group.cancel_scope.cancel()
        finally:
            self._links.discard(link)
            self._detach(link, socket.close_code)
        return socket

    async def _read(self, socket: web.WebSocketResponse, link: GatewaySocket) -> None:
        async for message in socket:
            if message.type not in {WSMsgType.TEXT, WSMsgType.BINARY}:
                continue
            try:
                frame = json.loads(message.data)
                self._receive(link, int(frame["op"]), frame.get("d"))
            except (ValueError, KeyError, TypeError):
                link.close(_DECODE)

    def _receive(self, link: GatewaySocket, op: int, data: Any) -> None:
        session = self._session_of(link)
        match op:
            case 1:
                link.send({"op": _ACK, "d": None})
            case 2 if session is None:
                self._identify(link, data)
            case 2:
                link.close(_ALREADY_AUTHENTICATED)
            case 6:
                self._resume(link, data)
            case 3 | 4 | 8 if session is None:
                link.close(_NOT_AUTHENTICATED)
            case 8 if session is not None:
                self._members(session, data)
            case 3 | 4:
                pass
            case _:
                link.close(_UNKNOWN_OP)

    def _identify(self, link: GatewaySocket, data: dict[str, Any]) -> None:
        intents = int(data.get("intents", 0))
        self._note("identify", intents)
        if data.get("token") != self.token():
            link.close(_WRONG_TOKEN)
            return
        if intents & PRIVILEGED & ~self.world.portal_intents:
            link.close(_DISALLOWED_INTENTS)
            return
        shard = shard_of(data)
        if shard is None:
            link.close(_WRONG_SHARD)
            return
        session = GatewaySession(secrets.token_hex(16), intents, shard, link=link)
        self.sessions[session.id] = session
        guilds = [each for each in self.world.guilds.values() if self.world.has_bot(each)]
        guilds = [each for each in guilds if shard_receives_guild(each.id, shard)]
        flags = application_flags(self.world.portal_intents)
        ready = {
            "v": 10,
            "user": user_json(self.world.bot) | {"verified": True, "mfa_enabled": False},
            "guilds": [{"id": str(guild.id), "unavailable": True} for guild in guilds],
            "session_id": session.id,
            "shard": list(shard),
            "resume_gateway_url": self.address + "/resume",
            "application": {"id": str(self.world.bot.id), "flags": flags},
        }
        session.push("READY", ready)
        if intents & GUILDS:
            for guild in guilds:
                self._tell_guild(session, guild)
        self._note("ready", session.id)

    def _tell_guild(self, session: GatewaySession, guild: Guild, *, joined: bool = False) -> None:
        # Discord lists members at once only for bots with the presence intent.
        everybody = bool(session.intents & GUILD_PRESENCES)
        shape = guild_json(self.world, guild, everybody=everybody)
        if joined:
            del shape["unavailable"]
        session.push("GUILD_CREATE", shape)

    def _resume(self, link: GatewaySocket, data: dict[str, Any]) -> None:
        session = self.sessions.get(str(data.get("session_id")))
        self._note("resume", data.get("seq"))
        if session is None or data.get("token") != self.token():
            link.send({"op": _INVALID, "d": False})
            return
        seen = int(data["seq"] or 0)
        if seen > session.seq:
            link.close(_INVALID_SEQ)
            return
        if session.link is not None:
            session.link.close(None)
        session.link = link
        for frame in session.log[seen:]:
            link.send(frame)
        session.push("RESUMED", {"_trace": []})
        self._note("resumed", session.id)

    def _members(self, session: GatewaySession, data: dict[str, Any]) -> None:
        guild = self.world.guilds[int(data["guild_id"])]
        users = [self.world.users[member] for member in guild.members]
        members = [member_json(user) for user in users]
        chunk = {"guild_id": str(guild.id), "members": members, "chunk_index": 0, "chunk_count": 1}
        session.push("GUILD_MEMBERS_CHUNK", chunk | {"nonce": data.get("nonce"), "not_found": []})

    def _session_of(self, link: GatewaySocket) -> GatewaySession | None:
        return next((each for each in self.sessions.values() if each.link is link), None)

    def _detach(self, link: GatewaySocket, code: int | None) -> None:
        session = self._session_of(link)
        self._note("disconnect", code)
        if session is None:
            return
        session.link = None
        if code in {WSCloseCode.OK, WSCloseCode.GOING_AWAY} and not link.closed_here:
            del self.sessions[session.id]

    def _note(self, what: str, subject: object = "") -> None:
        self.world.records.note(self.world.records.gateway, what, subject)
