"""An MCP server of an older protocol that misbehaves on the wire; a script: ``mcp_raw_server.py FOLDER``.

It speaks the handshake of 2025, mixes lines that are no messages into its output, and its tools answer with what
is no result.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])
TOOLS = ("fine", "nonsense", "endless", "deep", "renamed")


def slay(folder: Path) -> None:
    """Kill the client in the middle of a call, if a file names it."""
    victim = folder / "victim"
    if victim.exists():
        process = int(victim.read_text())
        victim.unlink()
        os.kill(process, signal.SIGKILL)


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tools() -> list[dict[str, Any]]:
    told = (FOLDER / "told.txt").read_text() if (FOLDER / "told.txt").exists() else "first"
    return [{"name": n, "description": told, "inputSchema": {"type": "object"}} for n in TOOLS]


def call(number: Any, name: str) -> None:
    with (FOLDER / "calls.txt").open("a") as calls:
        calls.write(f"{name}\n")
    slay(FOLDER)
    fine = {"content": [{"type": "text", "text": "fine"}]}
    if name == "nonsense":
        say({"id": number, "result": {"content": "no list", "isError": "maybe"}})
    elif name == "endless":
        for _ in range(200):
            sys.stdout.write("x" * 65_536)
        sys.stdout.flush()
    elif name == "deep":
        deep = "[" * 5_000 + "]" * 5_000
        sys.stdout.write(f'{{"jsonrpc":"2.0","id":{number},"result":{{"content":{deep}}}}}\n')
        say({"id": number, "result": fine})
    elif name == "renamed":
        (FOLDER / "told.txt").write_text("second")
        say({"method": "notifications/tools/list_changed"})
        say({"id": number, "result": fine})
    else:
        say({"id": number, "result": fine})


def main() -> None:
    sys.stdout.write("Welcome to a server that greets on standard output!\n")
    sys.stdout.write('{"jsonrpc": "1.0", "half": \n')
    for line in sys.stdin:
        asked = json.loads(line)
        number, method = asked.get("id"), asked.get("method")
        if method == "initialize":
            info = {"name": "raw", "version": "1"}
            caps = {"tools": {"listChanged": True}}
            say(
                {
                    "id": number,
                    "result": {
                        "protocolVersion": "2025-06-18",
                        "capabilities": caps,
                        "serverInfo": info,
                    },
                }
            )
        elif method == "tools/list":
            say({"id": number, "result": {"tools": tools()}})
        elif method == "tools/call":
            call(number, asked["params"]["name"])
        elif number is not None:
            say({"id": number, "error": {"code": -32601, "message": "unknown method"}})


if __name__ == "__main__":
    main()
