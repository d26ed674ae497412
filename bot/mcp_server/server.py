"""The MCP server itself, on the library ``mcp``; imported only where it is served."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Mapping
from importlib.metadata import version
from typing import Any, Protocol, TypeVar

import mcp_types as types
from mcp.server.context import CallNext, ServerRequestContext
from mcp.server.lowlevel.server import Server
from pydantic import BaseModel

from bot.bus import Right
from bot.core.errors import MemoryRefused, TapebotError
from bot.mcp_server.client import program_name
from bot.mcp_server.tools import INSTRUCTIONS, MemoryTool, offered_tools

logger = logging.getLogger(__name__)

# It logs each malformed message with a traceback, as often as a program likes to send them.
logging.getLogger("mcp").setLevel(logging.CRITICAL)

_BROKEN = "it did not work, for a reason of tapebot's; its log has details"

Context = ServerRequestContext[Any, Any]
ResultT = TypeVar("ResultT")


class Backend(Protocol):
    """Whom a request is from, and what runs it."""

    async def rights(self, context: Context) -> frozenset[Right]:
        """Return the rights of the program that sends a request.

        Raises:
            TapebotError: It has none, or they cannot be told at the moment.
        """
        ...

    async def call(
        self, context: Context, program: str, name: str, arguments: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Run a tool; see ``MemoryTools.call``.

        Raises:
            TapebotError: It could not be run; the text says why.
        """
        ...

    async def met(self, context: Context, program: str) -> None:
        """Take note of what a program calls itself, at its handshake."""
        ...


def make_server(backend: Backend) -> Server[Any]:
    """Return the server."""

    async def list_tools(
        context: Context, _: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        rights = await _answered(backend.rights(context))
        return types.ListToolsResult(tools=[_tool(one) for one in offered_tools(rights)])

    async def call_tool(
        context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        program = _program(context)
        try:
            done = await _answered(
                backend.call(context, program, params.name, params.arguments or {})
            )
        except MemoryRefused as error:
            return types.CallToolResult(content=_text(str(error)), is_error=True)
        return types.CallToolResult(
            content=_text(str(done["text"])), structured_content=done["data"]
        )

    async def note_program(ctx: Context, call_next: CallNext) -> BaseModel | dict[str, Any] | None:
        if ctx.method == "initialize" and ctx.params is not None:
            info = ctx.params.get("clientInfo")
            if isinstance(info, Mapping):
                name = program_name(info.get("name"), info.get("version"))
                await _answered(backend.met(ctx, name))
        return await call_next(ctx)

    server: Server[Any] = Server(
        "tapebot",
        version=version("tapebot"),
        title="tapebot",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    server.middleware.append(note_program)
    return server


async def _answered(work: Awaitable[ResultT]) -> ResultT:
    """Return what was asked for; what went wrong is a refusal, or is logged.

    Raises:
        MemoryRefused: It cannot be had; the text is for the program's model.
    """
    try:
        return await work
    except MemoryRefused:
        raise
    except TapebotError as error:
        logger.warning("a request of a program that uses memory failed: %s", error)
        raise MemoryRefused(str(error)) from error
    except Exception as error:
        # One request of one program: the library would hand the error's text to it.
        logger.exception("a request of a program that uses memory failed")
        raise MemoryRefused(_BROKEN) from error


def _program(context: Context) -> str:
    """Return what a program calls itself, as far as the request or its handshake says."""
    params = context.session.client_params
    return (
        "" if params is None else program_name(params.client_info.name, params.client_info.version)
    )


def _text(text: str) -> list[types.ContentBlock]:
    return [types.TextContent(type="text", text=text)]


def _tool(tool: MemoryTool) -> types.Tool:
    reads = tool.right == "read"
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=_schema(tool.arguments),
        output_schema=_schema(tool.result, mode="serialization"),
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=reads,
            destructive_hint=False,
            idempotent_hint=True,
            open_world_hint=False,
        ),
    )


def _schema(model: type[BaseModel], mode: Any = "validation") -> dict[str, Any]:
    """Return a model's JSON Schema without what costs tokens and says nothing."""
    found: dict[str, Any] = json.loads(json.dumps(model.model_json_schema(mode=mode)))
    _trim(found)
    return found


def _trim(value: Any, *, names: bool = False) -> None:
    if isinstance(value, dict):
        if not names:
            value.pop("title", None)
            if str(value.get("description", "")).startswith("Arguments of "):
                del value["description"]
        for key, one in value.items():
            _trim(one, names=key in ("properties", "$defs"))
    elif isinstance(value, list):
        for one in value:
            _trim(one)
