"""An MCP server of the SDK that a test directs by files; a script: ``mcp_server.py FOLDER [PORT [guarded]]``.

Without a port it speaks over standard input and output. ``FOLDER/tools.json`` has its tools, ``tools-next.json``
those after its tool ``change`` was called. ``FOLDER/calls.txt`` gets a line for each call.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ToolsListChanged
from mcp_raw_server import slay
from starlette.responses import JSONResponse

FOLDER = Path(sys.argv[1])
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
BUS = InMemorySubscriptionBus()
PAGE = 100


def text(content: str) -> list[types.ContentBlock]:
    return [types.TextContent(type="text", text=content)]


async def list_tools(_: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    given = json.loads((FOLDER / "tools.json").read_text())
    at = int(params.cursor) if params is not None and params.cursor else 0
    page = [types.Tool.model_validate(one) for one in given[at : at + PAGE]]
    more = str(at + PAGE) if at + PAGE < len(given) else None
    return types.ListToolsResult(tools=page, next_cursor=more)


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    given = params.arguments or {}
    with (FOLDER / "calls.txt").open("a") as calls:
        calls.write(f"{params.name} {json.dumps(given, sort_keys=True)}\n")
    slay(FOLDER)
    match params.name:
        case "hang":
            await anyio.sleep_forever()
        case "slow":
            await anyio.sleep(0.3)
        case "big":
            return types.CallToolResult(content=text("x" * int(given["size"])))
        case "image":
            data = base64.b64encode(PIXEL).decode()
            image = types.ImageContent(type="image", data=data, mime_type="image/png")
            return types.CallToolResult(content=[*text("a picture"), image])
        case "structured":
            return types.CallToolResult(content=[], structured_content={"answer": 42})
        case "fail":
            return types.CallToolResult(content=text("it went wrong"), is_error=True)
        case "secret":
            return types.CallToolResult(content=text(f"my key is {os.environ['FILES_KEY']}"))
        case "repeat":
            return types.CallToolResult(content=text((FOLDER / "tokens.txt").read_text()))
        case "change":
            (FOLDER / "tools-next.json").replace(FOLDER / "tools.json")
            await BUS.publish(ToolsListChanged())
            return types.CallToolResult(content=text("changed"))
    return types.CallToolResult(content=text(f"{params.name}: {given.get('text', '')}"))


SERVER: Server[Any] = Server(
    "test",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_subscriptions_listen=ListenHandler(BUS),
)


def guarded(app: Any, base: str) -> Any:
    """Let in who sends a key, or a token that its own authorization server gave."""
    told = {
        "/.well-known/oauth-protected-resource/mcp": {
            "resource": f"{base}/mcp",
            "authorization_servers": [base],
        },
        "/.well-known/oauth-authorization-server": {
            "issuer": base,
            "authorization_endpoint": f"{base}/authorize",
            "token_endpoint": f"{base}/token",
            "response_types_supported": ["code"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
        },
    }
    secret = base64.b64encode(b"tapebot:s3cret-s3cret").decode()
    allowed = {("x-key", "fixed-fixed"), ("authorization", "Bearer token-of-the-test")}

    async def guard(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        given = {(name.decode(), value.decode()) for name, value in scope["headers"]}
        answer: Any = JSONResponse({}, status_code=401)
        if scope["path"] in told:
            answer = JSONResponse(told[scope["path"]])
        elif scope["path"] == "/token" and ("authorization", f"Basic {secret}") in given:
            answer = JSONResponse({"access_token": "token-of-the-test", "token_type": "Bearer"})
        elif given & allowed:
            answer = app
        await answer(scope, receive, send)

    return guard


async def main() -> None:
    (FOLDER / "pid").write_text(str(os.getpid()))
    sys.stderr.write("a line for the log, with hunter2-hunter2 in it\n")
    sys.stderr.flush()
    if len(sys.argv) > 2:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", int(sys.argv[2])))
        listener.listen()
        (FOLDER / "port").write_text(str(listener.getsockname()[1]))
        app: Any = SERVER.streamable_http_app()
        if len(sys.argv) > 3:
            app = guarded(app, f"http://127.0.0.1:{listener.getsockname()[1]}")
        config = uvicorn.Config(app, log_level="critical")
        await uvicorn.Server(config).serve(sockets=[listener])
        return
    async with stdio_server() as (incoming, outgoing):
        await SERVER.run(incoming, outgoing, SERVER.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
