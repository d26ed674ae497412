"""An MCP server of an older protocol that misbehaves on the wire: ``mcp_raw_server.py FOLDER [PORT]``.

With a port it speaks HTTP.

It speaks the handshake of 2025, mixes lines that are no messages into its output, and its tools answer with what
is no result.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])
TOOLS = ("fine", "nonsense", "endless", "deep")
SENT: list[list[bytes]] = []
"""What is sent over HTTP as the answer to the request at hand; without it, standard output is written."""


def slay(folder: Path) -> None:
    """Kill the client in the middle of a call, if a file names it."""
    victim = folder / "victim"
    if victim.exists():
        process = int(victim.read_text())
        victim.unlink()
        os.kill(process, signal.SIGKILL)


def say(message: dict[str, Any]) -> None:
    send(json.dumps({"jsonrpc": "2.0", **message}).encode())


def send(line: bytes) -> None:
    if SENT:
        SENT[0].append(line)
        return
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def tools() -> list[dict[str, Any]]:
    more = (FOLDER / "more.json").read_text() if (FOLDER / "more.json").exists() else "[]"
    mine = [
        {"name": n, "description": "Does it.", "inputSchema": {"type": "object"}} for n in TOOLS
    ]
    return [*mine, *json.loads(more)]


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
    else:
        say({"id": number, "result": fine})


def answer(asked: dict[str, Any]) -> None:
    number, method = asked.get("id"), asked.get("method")
    if method == "initialize":
        info = {"name": "raw", "version": "1"}
        say(
            {
                "id": number,
                "result": {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
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


class OverHttp(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        SENT.append([])
        answer(asked)
        lines = SENT.pop()
        body = b"".join(lines)
        self.send_response(200 if lines else 202)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.send_error(405)

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    if len(sys.argv) > 2:
        with HTTPServer(("127.0.0.1", int(sys.argv[2])), OverHttp) as server:
            (FOLDER / "port").write_text(str(server.server_port))
            server.serve_forever()
    sys.stdout.write("Welcome to a server that greets on standard output!\n")
    sys.stdout.write('{"jsonrpc": "1.0", "half": \n')
    sys.stdout.flush()
    for line in sys.stdin:
        answer(json.loads(line))


if __name__ == "__main__":
    main()
