"""A server that dies, hangs, floods or talks nonsense is "not there now"; nothing else notices."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketAttribute
from mcp_talk import (
    RAW,
    calls_of,
    connected,
    gone,
    http_process,
    obeying,
    port_of,
    raw_server,
    stdio_server,
    talk,
    tool,
    write_tools,
)
from pydantic import SecretStr
from waiting import until

from bot.bus.media.blobs import FolderBlobs
from bot.mcp_client import McpOAuth, McpServer
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel

TOOLS = ("echo", "hang", "big", "image", "structured", "fail", "secret", "pattern")


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "files"
    write_tools(folder, *map(tool, TOOLS))
    return folder


async def allow(host, *tools, server="files", how="reads"):
    for name in tools:
        answer = await host.channel.ask(f"/mcp allow {server} {name} {how} everybody")
        assert answer.startswith("Allowed"), answer


@pytest.mark.slow
async def test_a_server_killed_in_a_call_ends_the_call_and_comes_back(tmp_path, files):
    async with talk(tmp_path / "home", files=stdio_server(files)) as host:
        await allow(host, "hang", "echo")
        sent = await host.channel.send("use mcp_files_hang")
        await until(lambda: calls_of(files))
        os.kill(int((files / "pid").read_text()), signal.SIGKILL)
        answer = await host.channel.wait_for_answer(sent)
        assert "the connection ended; it is not known whether the call was carried out" in answer
        await connected(host)
        assert "echo: " in await host.channel.ask("use mcp_files_echo")


@pytest.mark.slow
async def test_stopping_a_turn_stops_its_call(tmp_path, files):
    async with talk(tmp_path / "home", files=stdio_server(files)) as host:
        await allow(host, "hang", how="always")
        await allow(host, "echo")
        await host.channel.send("use mcp_files_hang")
        await until(lambda: calls_of(files))
        await host.channel.ask("/stop")
        [result] = await host.events("tool.result")
        assert result.data["status"] == "unknown"
        assert "echo: " in await host.channel.ask("use mcp_files_echo")


@pytest.mark.slow
async def test_a_stopped_server_hangs_nobody(tmp_path, files):
    """SIGSTOP: it reads nothing and answers nothing, and cannot be asked to end."""
    async with talk(tmp_path / "home", files=stdio_server(files, timeout=0.5)) as host:
        await allow(host, "echo")
        os.kill(int((files / "pid").read_text()), signal.SIGSTOP)
        assert "no answer within 0.5 seconds" in await host.channel.ask("use mcp_files_echo")
        assert await host.channel.ask("hello")
    # Leaving the program ends the stopped process, too: nothing of it is left.
    pid = int((files / "pid").read_text())
    await until(lambda: not Path(f"/proc/{pid}").exists())


@pytest.mark.slow
async def test_a_server_that_never_answers_holds_up_the_first_turn_a_little_and_no_other(
    tmp_path, files
):
    async with talk(tmp_path / "home", files=stdio_server(files)) as host:
        await allow(host, "echo")
    silent = McpServer(command=sys.executable, args=("-c", "import time; time.sleep(3600)"))
    model = ScriptedModel(obeying)
    async with session_host(tmp_path / "home", model, mcp={"files": silent}) as host:
        for number in range(2):
            sent = await host.channel.send("use mcp_files_echo", message_id=f"later-{number}")
            assert "There is no tool" in await host.channel.wait_for_answer(sent)
        assert not host.mcp.connections["files"].connected


@pytest.mark.slow
async def test_a_call_that_is_approved_just_after_a_start_waits_for_its_server(tmp_path, files):
    async with talk(tmp_path / "home", files=stdio_server(files)) as host:
        assert "Allowed" in await host.channel.ask("/mcp allow files echo ask everybody")
        assert "(call 1)" in await host.channel.ask("use mcp_files_echo")
    told = stdio_server(files)
    waits = f'until [ -e {tmp_path}/go ]; do sleep 0.01; done; exec "$0" "$@"'
    late = replace(told, command="sh", args=("-c", waits, str(told.command), *told.args))
    async with session_host(tmp_path / "home", ScriptedModel(obeying), mcp={"files": late}) as host:
        sent = await host.channel.send("/approve 1", message_id="yes")
        await until(lambda: host.events("tool.decided"))
        (tmp_path / "go").touch()
        assert "it ran: call 1" in await host.channel.wait_for_answer(sent)
    assert calls_of(files) == ["echo {}"]


@pytest.mark.slow
async def test_one_server_that_cannot_be_started_does_not_hinder_another(tmp_path, files):
    servers = {
        "files": stdio_server(files),
        "missing": McpServer(command="/nowhere/server"),
        "quits": McpServer(command=sys.executable, args=("-c", "")),
        "refuses": McpServer(url="http://127.0.0.1:9/mcp"),
    }
    async with session_host(tmp_path / "home", ScriptedModel([]), mcp=servers) as host:
        await connected(host, "files")
        for connection in host.mcp.connections.values():
            await connection.wait_until_tried()
        shown = await host.channel.ask("/mcp")
        assert "`files`: 8 tools" in shown
        assert "`missing`: not there now (`its program cannot be started" in shown
        assert "`quits`: not there now" in shown
        assert "`refuses`: not there now (`it cannot be reached" in shown


@pytest.mark.slow
async def test_a_result_is_cut_and_one_that_is_too_large_ends_the_connection(tmp_path, files):
    async with talk(tmp_path / "home", files=stdio_server(files)) as host:
        await allow(host, "big", "echo")
        await host.channel.ask("Sizes are 3000000 and 6000000.")
        answer = await host.channel.ask('use mcp_files_big {"size": 3000000}')
        assert "more characters were left out" in answer
        [result] = [entry for entry in await host.tape() if entry.kind == "tool_result"]
        assert len(result.payload["content"]) < 20_000
        answer = await host.channel.ask('use mcp_files_big {"size": 6000000}')
        assert "the connection ended" in answer
        await connected(host)
        assert "echo: " in await host.channel.ask("use mcp_files_echo")


@pytest.mark.slow
async def test_images_are_kept_as_blobs_and_other_results_become_text(tmp_path, files):
    async with talk(tmp_path / "home", files=stdio_server(files)) as host:
        await allow(host, "image", "structured", "fail")
        answer = await host.channel.ask("use mcp_files_image")
        assert "> a picture\n> (image image, image/png, 70 bytes: kept)" in answer
        [result] = [entry for entry in await host.tape() if entry.kind == "tool_result"]
        [record] = result.meta["attachments"]
        data = await FolderBlobs(tmp_path / "home" / "blobs").get(record["blob"])
        assert data is not None
        assert data.startswith(b"\x89PNG")
        assert '{"answer": 42}' in await host.channel.ask("use mcp_files_structured")
        await host.channel.ask("use mcp_files_fail")
        results = [entry for entry in await host.tape() if entry.kind == "tool_result"]
        assert results[-1].payload["status"] == "error"


@pytest.mark.slow
async def test_a_servers_secrets_reach_neither_the_log_nor_the_tape(tmp_path, files, caplog):
    caplog.set_level(logging.INFO)
    told = tool("echo", "Echoes with hunter2-hunter2.")
    write_tools(files, tool("secret"), told)
    server = stdio_server(files, env={"FILES_KEY": "hunter2-hunter2"})
    async with talk(tmp_path / "home", files=server) as host:
        await allow(host, "secret")
        assert "my key is [redacted]" in await host.channel.ask("use mcp_files_secret")
        await until(lambda: "a line for the log" in caplog.text)
        assert "`Echoes with [redacted].`" in await host.channel.ask("/mcp files echo")
    assert "hunter2-hunter2" not in caplog.text
    assert "with [redacted] in it" in caplog.text


async def test_an_older_protocol_works_beside_lines_that_are_no_messages(tmp_path):
    async with talk(tmp_path / "home", files=raw_server(tmp_path / "raw")) as host:
        await allow(host, "fine", "nonsense", "deep")
        assert "It said: " in await host.channel.ask("use mcp_files_fine")
        answer = await host.channel.ask("use mcp_files_nonsense")
        assert "its answer is malformed; it is not known whether" in answer
        assert "fine" in await host.channel.ask("use mcp_files_deep")


BAD_TOOLS = {
    "text": {"inputSchema": {"type": "string"}},
    "nothing": {"inputSchema": None},
    "missing": {},
    "list": {"inputSchema": []},
    "untyped": {"inputSchema": {"properties": {}}},
    "told": {"description": 7, "inputSchema": {"type": "object"}},
}
GOOD_TOOLS = {
    "circle": {"inputSchema": {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}}},
    "huge": {
        "inputSchema": {
            "type": "object",
            "properties": {
                f"p{n}": {"type": "string", "description": "x" * 99} for n in range(900)
            },
        }
    },
    "odd output": {"inputSchema": {"type": "object"}, "outputSchema": {"type": "array"}},
    "odd extras": {"inputSchema": {"type": "object"}, "icons": 5, "_meta": [], "execution": "?"},
}


@pytest.mark.parametrize("over", ["stdio", "http"])
async def test_a_tool_that_cannot_be_used_costs_itself_alone_and_says_why(tmp_path, over):
    folder = tmp_path / "raw"
    folder.mkdir()
    listed = [{"name": name, **one} for name, one in (BAD_TOOLS | GOOD_TOOLS).items()]
    listed += [{"name": 5, "inputSchema": {"type": "object"}}, "no tool", None]
    listed += [{"name": "half\ud83d", "inputSchema": {"type": "object"}}]
    listed += [{"name": "fine", "inputSchema": {"type": "object"}}]
    (folder / "more.json").write_text(json.dumps(listed))
    with raw_over(folder, over) as server:
        async with talk(tmp_path / "home", files=await server()) as host:
            told = await host.channel.ask("/mcp files")
            for page in (2, 3):
                told += await host.channel.ask(f"/mcp files page {page}")
            for name in BAD_TOOLS:
                assert f"- `{name}`: cannot be used: `" in told
            assert "`text`: cannot be used: `inputSchema.type: " in told
            assert "- `fine`: cannot be used: `it names two tools so; the first counts`" in told
            for name in ("circle", "huge", "odd-output", "odd-extras", "half-"):
                assert f"- `{name}" in told
            await allow(host, "fine")
            assert "fine" in await host.channel.ask("use mcp_files_fine")


@contextmanager
def raw_over(folder, over):
    """Yield what awaits the settings of the server that misbehaves, over a transport."""

    async def settings():
        if over == "stdio":
            return raw_server(folder)
        return McpServer(url=f"http://127.0.0.1:{await port_of(folder)}/mcp", timeout=20)

    folder.mkdir(exist_ok=True)
    arguments = [sys.executable, str(RAW), str(folder), "0"]
    process = None if over == "stdio" else subprocess.Popen(arguments)
    try:
        yield settings
    finally:
        if process is not None:
            process.kill()
            process.wait()


@pytest.mark.slow
async def test_output_without_end_ends_the_connection_in_bounded_memory(tmp_path):
    async with talk(tmp_path / "home", files=raw_server(tmp_path / "raw")) as host:
        await allow(host, "endless", "fine")
        assert "the connection ended" in await host.channel.ask("use mcp_files_endless")
        await connected(host)
        assert "fine" in await host.channel.ask("use mcp_files_fine")


@pytest.mark.slow
async def test_streamable_http_works_and_survives_the_servers_death(tmp_path, files):
    with http_process(files) as process:
        port = await port_of(files)
        server = McpServer(url=f"http://127.0.0.1:{port}/mcp", timeout=20)
        async with talk(tmp_path / "home", files=server) as host:
            await allow(host, "echo", "hang")
            assert "echo: tea" in await host.channel.ask('use mcp_files_echo {"text": "tea"}')
            sent = await host.channel.send("use mcp_files_hang")
            await until(lambda: len(calls_of(files)) == 2)
            process.kill()
            assert "it is not known whether" in await host.channel.wait_for_answer(sent)
            await gone(host)
            with http_process(files, port):
                await connected(host)
                assert "echo: " in await host.channel.ask("use mcp_files_echo")


async def test_a_redirect_to_another_address_is_not_followed(tmp_path):
    reached = anyio.Event()

    async def redirecting(stream, target):
        async with stream:
            await stream.receive()
            await stream.send(
                b"HTTP/1.1 307 Temporary Redirect\r\nContent-Length: 0\r\n"
                b"Connection: close\r\nLocation: %b\r\n\r\n" % target
            )

    async def inner(stream):
        async with stream:
            reached.set()

    hidden = await anyio.create_tcp_listener(local_host="127.0.0.1")
    front = await anyio.create_tcp_listener(local_host="127.0.0.1")
    target = b"http://127.0.0.1:%d/latest" % hidden.extra(SocketAttribute.local_port)
    port = front.extra(SocketAttribute.local_port)
    servers = {"files": McpServer(url=f"http://127.0.0.1:{port}/mcp")}
    async with hidden, front, anyio.create_task_group() as tasks:
        tasks.start_soon(hidden.serve, inner)
        tasks.start_soon(front.serve, lambda stream: redirecting(stream, target))
        async with session_host(tmp_path, ScriptedModel([]), mcp=servers) as host:
            await host.mcp.connections["files"].wait_until_tried()
            assert not host.mcp.connections["files"].connected
        assert not reached.is_set()
        tasks.cancel_scope.cancel()


@pytest.mark.slow
async def test_headers_and_a_programs_login_open_a_server_and_stay_secret(tmp_path, files):
    with http_process(files, guarded=True):
        base = f"http://127.0.0.1:{await port_of(files)}"
        login = McpOAuth(issuer=base, client_id="tapebot", client_secret=SecretStr("s3cret-s3cret"))
        servers = {
            "files": McpServer(url=f"{base}/mcp", oauth=login),
            "fixed": McpServer(url=f"{base}/mcp", headers={"X-Key": SecretStr("fixed-fixed")}),
            "strange": McpServer(
                url=f"{base}/mcp", oauth=replace(login, issuer="http://127.0.0.1:9")
            ),
            "nobody": McpServer(url=f"{base}/mcp"),
        }
        async with session_host(tmp_path / "home", ScriptedModel(obeying), mcp=servers) as host:
            for connection in host.mcp.connections.values():
                await connection.wait_until_tried()
            there = {name for name, one in host.mcp.connections.items() if one.connected}
            assert there == {"files", "fixed"}
            await allow(host, "echo")
            assert "echo: " in await host.channel.ask("use mcp_files_echo")
