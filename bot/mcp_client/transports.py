"""Connections to MCP servers, bounded: no server can fill memory, or lead requests elsewhere.

The library's own stdio transport collects a line of any length and inherits standard error; its HTTP
transport reads JSON bodies of any length.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import httpx2
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from bot.agent.foreign_text import one_line
from bot.core.errors import McpUnavailable
from bot.core.reasons import Reason
from bot.mcp_client.bounded_http import MOST_BYTES, Origin, OriginTransport, origin
from bot.mcp_client.logins import ServerLogin
from bot.mcp_client.oauth import program_auth, server_auth
from bot.mcp_client.settings import McpServer
from bot.mcp_client.wire import mend_text

logger = logging.getLogger(__name__)

Streams = tuple[Any, Any]

_EXIT_SECONDS = 2.0
_EXIT_POLL = 0.02
_LONGEST_LOG_LINE = 500
_MOST_LOG_LINES = 50
_MOST_BAD_LINES = 1_000


@asynccontextmanager
async def stdio_transport(
    name: str, server: McpServer, redact: Callable[[str], str], ended: Callable[[str], None]
) -> AsyncGenerator[Streams]:
    """Start a server's program and speak with it over its standard input and output.

    Args:
        name: The server's name, for the log.
        server: Its settings.
        redact: Removes secrets from what it writes to standard error.
        ended: Called with the reason when nothing more can be read from it.

    Raises:
        McpUnavailable: The program cannot be started.
    """
    process = await _start(server)
    incoming, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read_messages, process, incoming, ended)
        tasks.start_soon(_write_messages, process, outgoing)
        tasks.start_soon(_log_errors, name, process, redact)
        try:
            yield from_server, to_server
        finally:
            for stream in (from_server, to_server):
                stream.close()
            # A cancelled program must not leave the server's process behind; each wait is bounded.
            with anyio.CancelScope(shield=True):
                await _stop(process)
            tasks.cancel_scope.cancel()


async def _start(server: McpServer) -> Process:
    assert server.command is not None
    given = {name: value.get_secret_value() for name, value in server.env.items()}
    try:
        return await anyio.open_process(
            [server.command, *server.args],
            env=get_default_environment() | given,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or Reason("mcp_bad_command")
        raise McpUnavailable(Reason("mcp_not_started", error=reason)) from error


async def _read_messages(
    process: Process,
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
    ended: Callable[[str], None],
) -> None:
    """Hand on each line of standard output that is a message; stop at one that is too long."""
    assert process.stdout is not None
    lines, bad, reason = BufferedByteReceiveStream(process.stdout), 0, Reason("mcp_ended")
    async with incoming:
        try:
            while bad < _MOST_BAD_LINES:
                line = await lines.receive_until(b"\n", MOST_BYTES)
                try:
                    message = jsonrpc_message_adapter.validate_json(mend_text(line), by_name=False)
                except ValueError:
                    bad += 1
                else:
                    await incoming.send(SessionMessage(message))
            reason = Reason("mcp_bad_output")
        except anyio.DelimiterNotFound:
            reason = Reason("mcp_long_message", limit=f"{MOST_BYTES:,}")
        except (anyio.IncompleteRead, anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass
        ended(reason)


async def _write_messages(
    process: Process, outgoing: MemoryObjectReceiveStream[SessionMessage]
) -> None:
    assert process.stdin is not None
    async with outgoing:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            async for sent in outgoing:
                line = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                await process.stdin.send(f"{line}\n".encode())


async def _log_errors(name: str, process: Process, redact: Callable[[str], str]) -> None:
    """Log the first lines that a server writes to standard error, and read the rest."""
    assert process.stderr is not None
    lines, logged = BufferedByteReceiveStream(process.stderr), 0
    with suppress(anyio.IncompleteRead, anyio.ClosedResourceError, anyio.BrokenResourceError):
        while logged < _MOST_LOG_LINES:
            try:
                line = await lines.receive_until(b"\n", 8 * _LONGEST_LOG_LINE)
            except anyio.DelimiterNotFound:
                line = await lines.receive(8 * _LONGEST_LOG_LINE)
            text = redact(one_line(line.decode("utf-8", "replace"), _LONGEST_LOG_LINE))
            if text:
                logger.info("the MCP server %s: %s", name, text)
                logged += 1
        logger.info("the MCP server %s writes more, which is not logged", name)
    with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
        while True:
            await process.stderr.receive()


async def _stop(process: Process) -> None:
    """Close a server's standard input, and end its process group if it does not end by itself."""
    assert process.stdin is not None
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        await process.stdin.aclose()
    for wanted in (signal.SIGTERM, signal.SIGKILL):
        if await _exits(process):
            break
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, wanted)
    with anyio.move_on_after(_EXIT_SECONDS):
        await process.aclose()


async def _exits(process: Process) -> bool:
    # Not wait(): it also waits for pipes, which a child of the server may hold open.
    with anyio.move_on_after(_EXIT_SECONDS):
        while process.returncode is None:  # noqa: ASYNC110 (the process has no event)
            await anyio.sleep(_EXIT_POLL)
    return process.returncode is not None


@asynccontextmanager
async def http_transport(
    server: McpServer, login: ServerLogin | None, ended: Callable[[str], None]
) -> AsyncGenerator[Streams]:
    """Speak streamable HTTP with a server.

    Args:
        server: Its settings.
        login: Its login in a browser; None if it has none.
        ended: Called with the reason when only a person can go on.
    """
    assert server.url is not None
    headers = {name: value.get_secret_value() for name, value in server.headers.items()}
    auth, origins = await _auth(server, login, ended)
    async with (
        httpx2.AsyncClient(
            headers={**headers, "Accept-Encoding": "identity"},
            auth=auth,
            timeout=httpx2.Timeout(30, read=None),
            transport=OriginTransport(origins),
        ) as client,
        streamable_http_client(
            server.url, http_client=client, max_sse_event_size=MOST_BYTES
        ) as streams,
    ):
        yield streams


async def _auth(
    server: McpServer, login: ServerLogin | None, ended: Callable[[str], None]
) -> tuple[httpx2.Auth | None, Callable[[], set[Origin]]]:
    """Return what authenticates requests, and where they may go."""
    assert server.url is not None
    if login is not None:
        return await server_auth(login, ended)
    allowed = {origin(server.url)}
    if server.oauth is None:
        return None, lambda: allowed
    allowed.add(origin(server.oauth.issuer))
    return program_auth(server.url, server.oauth), lambda: allowed
