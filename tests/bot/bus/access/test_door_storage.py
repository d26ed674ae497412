"""What the door has written down, in its real file or database: it survives, is private, and is never half done."""

from __future__ import annotations

import errno
import os
import signal
import stat
from pathlib import Path

import anyio
import pytest
from door_host import door_host
from door_talk import SILENCE, code_in, opened, private

from bot.bus import AccessDecision, BusError
from bot.bus.access.messages import OWNED
from bot.core.errors import SettingsError, TapeLocked


async def test_a_claim_that_cannot_be_recorded_is_refused_and_can_be_made_again(tmp_path):
    async with opened(tmp_path, owners=()) as access_control:
        in_the_way = tmp_path / "access.json.new"
        in_the_way.mkdir()
        claim = private(access_control.claim_code)
        with pytest.raises(BusError, match="could not be saved"):
            await access_control.authorize(claim)
        assert (await access_control.overview()).owners == ()
        in_the_way.rmdir()
        assert await access_control.authorize(claim) == AccessDecision(None, OWNED)


async def test_an_approval_that_was_refused_at_its_last_step_is_not_there_after_a_restart(
    tmp_path, monkeypatch
):
    """The file is replaced already when the folder cannot be synchronised."""
    sync, refusals = os.fsync, [1]

    def refusing(descriptor: int) -> None:
        if refusals and stat.S_ISDIR(os.fstat(descriptor).st_mode):
            refusals.pop()
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(descriptor)

    async with opened(tmp_path) as access_control:
        code = code_in(await access_control.authorize(private()))
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", refusing)
            with pytest.raises(BusError, match="could not be saved: the disk does not work"):
                await access_control.approve(code)
    assert not refusals
    async with opened(tmp_path) as access_control:
        assert (await access_control.authorize(private())).role is None
        assert await access_control.approve(code) is not None
        assert await access_control.authorize(private()) == AccessDecision("member")


async def test_a_cancelled_approval_is_done_or_not_and_the_door_goes_on(home):
    async with opened(home) as access_control:
        code = code_in(await access_control.authorize(private()))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(access_control.approve, code)
            await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        verdict = await access_control.authorize(private())
        assert await access_control.approve(code) is not None
    async with opened(home) as access_control:
        assert await access_control.authorize(private()) == AccessDecision("member")
    assert verdict in (SILENCE, AccessDecision("member"))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b'{"version": 1, "people": [',
        b'{"version": 2, "people": [], "chats": [], "requests": []}',
        b'{"version": 1, "people": [{"place": "telegram:9", "role": "admin", "name": "",'
        b' "since": "2026-02-10T10:00:00Z"}], "chats": [], "requests": []}',
        b'{"version": 1, "people": [{"place": "everybody", "role": "owner", "name": "",'
        b' "since": "2026-02-10T10:00:00Z"}], "chats": [], "requests": []}',
        b'{"version": 1, "people": [{"place": "telegram:9", "role": "owner", "name": "",'
        b' "since": "2026-02-10T10:00:00"}], "chats": [], "requests": []}',
        b'{"version": 1, "people": [], "chats": [], "requests": [{"code": "A", "person":'
        b' "telegram:9", "name": "", "address": {"channel": "Bad name", "chat_id": "9"},'
        b' "since": "2026-02-10T10:00:00Z", "told": "2026-02-10T10:00:00Z"}]}',
        b"\xff\xfe",
    ],
)
async def test_a_damaged_file_is_an_error_that_says_what_to_do_and_is_kept(tmp_path, content):
    path = tmp_path / "access.json"
    path.write_bytes(content)
    with pytest.raises(
        SettingsError, match=r"is damaged or from another version.*move the file away"
    ):
        async with opened(tmp_path):
            pass
    assert path.read_bytes() == content
    path.unlink()
    async with opened(tmp_path) as access_control:
        assert (await access_control.authorize(private())).role is None


async def test_a_file_that_cannot_be_used_lets_nobody_in(tmp_path):
    (tmp_path / "access.json").mkdir()
    with pytest.raises(SettingsError, match="cannot be used"):
        async with opened(tmp_path):
            pass
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match="cannot be used"):
        async with opened(tmp_path / "file" / "home"):
            pass


async def test_the_file_is_its_owners_alone(tmp_path):
    async with opened(tmp_path / "home") as access_control:
        await access_control.authorize(private())
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "home").iterdir()}
    assert modes == {"access.json": 0o600, "access.lock": 0o600}


async def test_two_processes_cannot_have_the_file_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("bot.bus.access.file_store._LOCK_SECONDS", 0.0)
    async with opened(tmp_path):
        with pytest.raises(TapeLocked, match="another tapebot"):
            async with opened(tmp_path):
                pass
    async with opened(tmp_path):
        pass


def _killed_after(home: Path | str, first: int, count: int) -> list[str]:
    """Let people in until so many were reported, kill the program, and return all of them."""
    with door_host(home, first) as child:
        reported = [child.stdout.readline().strip() for _ in range(count)]
        os.kill(child.pid, signal.SIGKILL)
        return [one for one in (*reported, *child.stdout.read().split()) if one]


async def test_whoever_was_let_in_is_in_after_a_kill(home):
    inside: list[str] = []
    for first, count in ((1_000, 1), (2_000, 7), (3_000, 20)):
        inside += _killed_after(home, first, count)
        async with opened(home) as access_control:
            for user in inside:
                assert await access_control.authorize(private(user=user)) == AccessDecision(
                    "member"
                )
            assert (await access_control.authorize(private(user="5"))).role is None
    assert len(inside) >= 28
