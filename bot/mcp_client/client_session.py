"""A connected MCP server, on the library ``mcp``; imported only if a server is configured."""

from __future__ import annotations

import base64
import binascii
import json
import logging
import math
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import mcp_types
from mcp import MCPError
from mcp.client.client import Client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

from bot.agent.foreign_text import one_line
from bot.core.errors import McpUnavailable
from bot.core.i18n import N_, _
from bot.core.reasons import Reason, reason_of
from bot.mcp_client.definitions import MOST_TOOLS, ToolDefinition, by_name, define
from bot.mcp_client.logins import ServerLogin
from bot.mcp_client.results import RemoteResult, ResultFile
from bot.mcp_client.settings import McpServer
from bot.mcp_client.transports import Streams, http_transport, stdio_transport
from bot.mcp_client.wire import MendedStream

CONNECT_SECONDS = 30.0
"""Seconds that a server has to start and to answer."""

_MOST_PAGES = 20
_LONGEST_ERROR = 500
_TWICE = N_("it names two tools so; the first counts")
_UNKNOWN = N_("it is not known whether the call was carried out")

# It logs each malformed message with a traceback, as often as a server likes to send them. What
# matters of a connection is logged by its owner.
logging.getLogger("mcp").setLevel(logging.CRITICAL)


class McpSession:
    """The open connection to a server.

    Args:
        name: The server's name.
        client: The library's client.
        redact: Removes secrets from texts.
        changed: Called when a call shows that something changed at the server.
        ended: Called with the reason when a call shows that the connection ended.

    Attributes:
        left_out: Why tools of the last list cannot be used, by the server's name for them.
    """

    def __init__(
        self,
        name: str,
        client: Client,
        left_out: dict[str, str],
        redact: Callable[[str], str],
        *,
        changed: Callable[[], None],
        ended: Callable[[str], None],
    ) -> None:
        self._name = name
        self._client = client
        self.left_out = left_out
        self._redact = redact
        self._changed = changed
        self._ended = ended

    async def list_tools(self) -> dict[str, ToolDefinition]:
        """Return the server's tools by name, as far as they fit.

        Raises:
            McpUnavailable: It answers too late or with nonsense.
        """
        found: list[ToolDefinition] = []
        self.left_out.clear()
        cursor: str | None = None
        try:
            with anyio.fail_after(CONNECT_SECONDS):
                for _ in range(_MOST_PAGES):
                    page = await self._client.list_tools(cursor=cursor)
                    # Megabytes of schemas must not hold up the event loop.
                    found += await anyio.to_thread.run_sync(
                        _definitions, self._name, page.tools[:MOST_TOOLS], self._redact
                    )
                    cursor = page.next_cursor
                    if not cursor or len(found) >= MOST_TOOLS:
                        break
        except TimeoutError as error:
            raise McpUnavailable(Reason("mcp_silent")) from error
        except MCPError as error:
            ended = error.code == mcp_types.CONNECTION_CLOSED
            raise McpUnavailable(Reason("mcp_ended") if ended else _told(error)) from error
        except (ValueError, RuntimeError, RecursionError) as error:
            raise McpUnavailable(Reason("mcp_bad_list")) from error
        kept = by_name(found)
        for one in found:
            if kept.get(one.name, one) is not one:
                self.left_out[one.name] = _TWICE
        return kept

    async def watch(self) -> None:
        """Hear when the server says that its tools changed, while that can be heard.

        Servers of older protocols send it unasked, to the handler of ``open_session``.
        """
        try:
            async with self._client.listen(tools_list_changed=True) as events:
                async for _event in events:
                    self._changed()
        except ListenNotSupportedError:
            return
        except (MCPError, SubscriptionLost, RuntimeError, TimeoutError):
            # It cannot be heard: the list of tools is read from time to time anyway.
            self._changed()

    async def call(self, remote_name: str, arguments: dict[str, Any]) -> RemoteResult:
        """Call a tool; an error that the server reports is a result.

        The library's ``call_tool`` would also check the result against the server's own schema,
        whose patterns may take for ever.

        Raises:
            McpUnavailable: The connection ended, or the answer is nonsense.
        """
        params = mcp_types.CallToolRequestParams(name=remote_name, arguments=arguments)
        request = mcp_types.CallToolRequest(params=params)
        try:
            answer = await self._client.session.send_request(request, mcp_types.CallToolResult)
            return _result(answer)
        except MCPError as error:
            if error.code == mcp_types.CONNECTION_CLOSED:
                self._ended(Reason("mcp_ended"))
                raise McpUnavailable(
                    _("the connection ended; {unknown}", unknown=_(_UNKNOWN))
                ) from error
            # A server that was started again refuses sessions of before; its list shows that.
            self._changed()
            return RemoteResult(
                (f"The server refuses: {_told(error)}",), failed=True
            )  # for the model
        except (ValueError, RuntimeError, RecursionError) as error:
            raise McpUnavailable(
                _("its answer is malformed; {unknown}", unknown=_(_UNKNOWN))
            ) from error


@asynccontextmanager
async def open_session(
    name: str,
    server: McpServer,
    redact: Callable[[str], str],
    *,
    login: ServerLogin | None,
    changed: Callable[[], None],
    ended: Callable[[str], None],
) -> AsyncGenerator[McpSession]:
    """Connect to a server; enter and leave it in the same task.

    Args:
        name: The server's name.
        server: Its settings.
        redact: Removes secrets from texts.
        login: Its login in a browser; None if it has none.
        changed: Called when it says that its tools changed.
        ended: Called with the reason when the connection ended.

    Raises:
        McpUnavailable: It does not answer in time.
        Exception: The connection failed; ``explained`` says how.
    """

    async def handle(message: object) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            changed()

    transport = (
        stdio_transport(name, server, redact, ended)
        if server.command is not None
        else http_transport(server, login, ended)
    )
    left_out: dict[str, str] = {}
    client = Client(_mended(transport, left_out), message_handler=handle, cache=None)
    with anyio.CancelScope(deadline=anyio.current_time() + CONNECT_SECONDS) as connecting:
        async with client:
            connecting.deadline = math.inf
            yield McpSession(name, client, left_out, redact, changed=changed, ended=ended)
    if connecting.cancelled_caught:
        raise McpUnavailable(Reason("mcp_slow", seconds=f"{CONNECT_SECONDS:.0f}"))


@asynccontextmanager
async def _mended(
    transport: AbstractAsyncContextManager[Streams], left_out: dict[str, str]
) -> AsyncGenerator[Streams]:
    async with transport as (incoming, outgoing):
        yield MendedStream(incoming, left_out), outgoing


def explained(error: BaseException) -> str:
    """Return why a connection ended, for people; the library raises errors in groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, McpUnavailable):
        return reason_of(error)
    if isinstance(error, MCPError):
        return Reason("mcp_refused", error=_told(error))
    if isinstance(error, httpx2.HTTPError | httpx2.StreamError):
        return Reason("mcp_unreachable", error=_told(error))
    return Reason("mcp_nonsense", error=type(error).__name__)


def _told(error: BaseException) -> str:
    return one_line(str(error), _LONGEST_ERROR).rstrip(".") or type(error).__name__


def _definitions(
    server: str, tools: Iterable[mcp_types.Tool], redact: Callable[[str], str]
) -> list[ToolDefinition]:
    return [
        define(
            server,
            tool.name,
            tool.description,
            tool.input_schema,
            tool.annotations.model_dump(by_alias=True) if tool.annotations is not None else {},
            redact=redact,
        )
        for tool in tools
    ]


def _result(result: mcp_types.CallToolResult) -> RemoteResult:
    texts: list[str] = []
    files: list[ResultFile] = []
    for block in result.content:
        if isinstance(block, mcp_types.TextContent):
            texts.append(block.text)
        elif isinstance(block, mcp_types.ResourceLink):
            # for the model
            texts.append(f"(a link: {one_line(block.name, 80)}, {one_line(str(block.uri), 300)})")
        elif isinstance(block, mcp_types.EmbeddedResource):
            resource = block.resource
            if isinstance(resource, mcp_types.TextResourceContents):
                texts.append(f"({one_line(str(resource.uri), 300)})\n{resource.text}")
            else:
                files += _file("document", str(resource.uri), resource.blob, resource.mime_type)
        else:
            files += _file(block.type, block.type, block.data, block.mime_type)
    structured = result.structured_content
    # Servers that follow the specification send it as text as well.
    if structured is not None and not any(_says(text, structured) for text in texts):
        texts.append(json.dumps(structured, ensure_ascii=False))
    return RemoteResult(tuple(texts), tuple(files), failed=result.is_error)


def _says(text: str, structured: object) -> bool:
    if structured == {"result": text}:
        # How the SDK's servers wrap the text that a function returns.
        return True
    try:
        said: object = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return said == structured


def _file(kind: str, name: str, data: str, mime: str | None) -> list[ResultFile]:
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return [ResultFile(kind, one_line(name, 80), mime or "", None)]
    return [ResultFile(kind, one_line(name, 80), mime or "", content)]
