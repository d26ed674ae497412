"""The tape server as a program: starting, refusing to, health, stopping."""

from __future__ import annotations

from contextlib import AsyncExitStack, suppress

import anyio
import pytest
from tape_files import full_disk
from tape_server_rig import TAPE, serving

from bot.cli.main import main
from bot.core.errors import TapeRefused, TapeWriteError
from bot.core.http.server import MOST_SILENT
from bot.tape.entries import message
from bot.tape.server import server as serve
from bot.tape.server.tokens import TokenStore
from bot.tape.stores.file import FileTapeStore


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TAPEBOT_HOME", str(tmp_path))
    return tmp_path


def test_tokens_are_made_listed_and_removed_at_the_command_line(home, capsys):
    def run(*arguments: str) -> str:
        assert main(["tape-server", "token", *arguments]) == 0
        return capsys.readouterr().out

    assert main(["tape-server"]) == 2
    assert "tapebot tape-server token add NAME" in capsys.readouterr().err
    tokens = TokenStore(home / "tape-tokens.json")
    made = run("add", "kitchen", "--scope", "append", "--tapes", "telegram:*", "--tapes", "x")
    assert tokens.find(made.strip()).tapes == ("telegram:*", "x")
    assert run("list") == "kitchen\tappend\ttelegram:* x\n"
    assert run("remove", "kitchen") == ""
    assert tokens.find(made.strip()) is None
    assert main(["tape-server", "token", "remove", "kitchen"]) == 2
    assert "no token kitchen" in capsys.readouterr().err


async def test_no_token_no_session_and_no_word_is_in_the_log_and_no_follower_keeps_it_from_stopping(
    tmp_path, caplog
):
    caplog.set_level("DEBUG")
    with anyio.fail_after(60):
        async with serving(tmp_path) as rig:
            token = rig.tokens.add("bot", "append", ["*"])
            store, stranger = rig.remote(token), rig.remote("tape_wrong")
            await store.create_tape(TAPE)
            await store.append(TAPE, message("user", "private words"))
            with pytest.raises(TapeRefused):
                await stranger.version(TAPE)
            follower = store.follow(TAPE, 1)
            assert (await anext(follower)).id == 2
        await follower.aclose()
        await store.close()
        await stranger.close()
    assert "request method=POST path=/v1/tapes/entries status=200 caller=bot" in caplog.text
    assert "path=/v1/tapes/version status=401 caller=None" in caplog.text
    log = "\n".join(one.getMessage() for one in caplog.records if one.name.startswith("bot."))
    assert not [secret for secret in (token, TAPE, "private words", "Bearer") if secret in log]


@pytest.mark.slow
async def test_connections_that_are_only_held_open_shut_out_nobody(tmp_path, monkeypatch):
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


async def test_a_refused_disk_refuses_the_append_and_takes_the_next(tmp_path, caplog):
    async with serving(tmp_path, FileTapeStore(tmp_path / "tapes", sync=False)) as rig:
        remote = rig.remote()
        await remote.create_tape(TAPE)
        with full_disk(0), pytest.raises(TapeWriteError, match="could not be written"):
            await remote.append(TAPE, message("user", "lost"))
        assert "POST /v1/tapes/entries failed: TapeWriteError (File too large)" in caplog.text
        assert TAPE not in caplog.text
        assert (await remote.append(TAPE, message("user", "kept"))).id == 2
        await remote.close()
