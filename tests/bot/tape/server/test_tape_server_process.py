"""The tape server as a program: starting, refusing to, health, stopping."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from contextlib import AsyncExitStack, suppress

import anyio
import httpx
import pytest
from tape_server_rig import TAPE, Program, serving

from bot.core.http.server import MOST_SILENT
from bot.tape.entries import message
from bot.tape.server import server as serve
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.remote import RemoteTapeStore


@pytest.fixture
def program(tmp_path):
    held = Program(tmp_path)
    yield held
    held.close()


@pytest.mark.slow
@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
async def test_on_a_signal_the_server_ends_cleanly_and_what_it_took_is_kept(program, by):
    token = program.tokens.add("bot", "append", ["*"])
    store = RemoteTapeStore(program.start(), token)
    await store.create_tape(TAPE, "Küche")
    await store.append(TAPE, message("user", "kept"))
    follower = store.follow(TAPE, 1)
    assert (await anext(follower)).id == 2
    code, errors = await anyio.to_thread.run_sync(program.end, by)
    assert (code, errors) == (0, "")
    await follower.aclose()
    await store.close()
    found = FileTapeStore(program.home / "tapes", read_only=True)
    assert (await found.read(TAPE, 2))[0].payload["content"] == "kept"
    await found.close()


@pytest.mark.slow
async def test_no_token_no_session_and_no_word_is_in_the_log(tmp_path):
    program = Program(tmp_path, log_level="debug")
    token = program.tokens.add("bot", "append", ["*"])
    store = RemoteTapeStore(program.start(), token)
    await store.create_tape(TAPE)
    await store.append(TAPE, message("user", "private words"))
    await store.close()
    async with httpx.AsyncClient(base_url=program.url, timeout=60, verify=False) as client:
        await client.get(f"/v1/tapes/version?tape={TAPE}", headers={"Authorization": "Bearer no"})
    code, _ = await anyio.to_thread.run_sync(program.end)
    log = (program.home / "logs" / "tapebot.log").read_text()
    assert code == 0
    assert "request method=POST path=/v1/tapes/entries status=200 caller=bot" in log
    assert "path=/v1/tapes/version status=401 caller=None" in log
    assert not [secret for secret in (token, TAPE, "private words", "Bearer") if secret in log]


def test_without_a_token_the_server_does_not_start_and_says_how_to_make_one(program):
    assert "tapebot tape-server token add NAME" in program.refusal()


@pytest.mark.slow
def test_tokens_are_made_listed_and_removed_at_the_command_line(program):
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "bot", "tape-server", "token", *arguments],
            env=program.environment,
            cwd=program.home.parent,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    made = run("add", "kitchen", "--scope", "append", "--tapes", "telegram:*", "--tapes", "x")
    token = made.stdout.strip()
    assert program.tokens.find(token).tapes == ("telegram:*", "x")
    assert run("list").stdout == "kitchen\tappend\ttelegram:* x\n"
    assert run("remove", "kitchen").returncode == 0
    assert program.tokens.find(token) is None
    assert "no token kitchen" in run("remove", "kitchen").stderr


async def test_connections_that_are_only_held_open_shut_out_nobody(tmp_path, monkeypatch):
    """However many; the oldest of those on which nothing was asked go first."""
    monkeypatch.setattr(serve, "MAX_CONNECTIONS", 4)
    async with serving(tmp_path) as rig, rig.client() as client, AsyncExitStack() as held:
        assert (await client.get("/v1/tapes")).status_code == 200
        host, port = rig.url.removeprefix("http://").split(":")
        streams = [
            await held.enter_async_context(await anyio.connect_tcp(host, int(port)))
            for _ in range(MOST_SILENT + 20)
        ]
        for stream in streams[20:]:
            await stream.send(b"GET /v1/ta")
        assert (await client.get("/v1/tapes")).status_code == 200
        async with rig.client() as late:
            assert (await late.get("/v1/tapes")).status_code == 200
        with anyio.fail_after(20), suppress(anyio.BrokenResourceError, anyio.EndOfStream):
            await streams[0].receive()


async def test_health_needs_no_token_and_names_no_session(tmp_path):
    folder = tmp_path / "tapes"
    store = FileTapeStore(folder, sync=False)
    async with serving(tmp_path, store, folder=folder) as rig, rig.client(None) as client:
        await store.create_tape(TAPE)
        answer = await client.get("/health")
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
        assert not (folder / ".health").exists()


async def test_a_refused_disk_refuses_the_append_and_takes_the_next(tmp_path, caplog):
    store = FileTapeStore(tmp_path / "tapes", sync=False)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    async with serving(tmp_path, store) as rig:
        remote = rig.remote()
        await remote.create_tape(TAPE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
        try:
            with pytest.raises(Exception, match="could not be written") as refused:
                await remote.append(TAPE, message("user", "lost"))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert type(refused.value).__name__ == "TapeWriteError"
        assert "POST /v1/tapes/entries failed: TapeWriteError (File too large)" in caplog.text
        assert TAPE not in caplog.text
        assert (await remote.append(TAPE, message("user", "kept"))).id == 2
        await remote.close()
