"""What the door has written down, in its real file or database: it survives, is private, and is never half done."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from door_host import door_host
from door_talk import opened, private

from bot.bus import AccessDecision, BusError
from bot.bus.access.messages import OWNED
from bot.core.errors import SettingsError


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


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"version": 1, "people": [',
        b'{"version": 2, "people": [], "chats": [], "requests": []}',
        b'{"version": 1, "people": [{"place": "telegram:9", "role": "admin", "name": "",'
        b' "since": "2026-02-10T10:00:00Z"}], "chats": [], "requests": []}',
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


def _killed_after(home: Path | str, first: int, count: int) -> list[str]:
    """Let people in until so many were reported, kill the program, and return all of them."""
    with door_host(home, first) as child:
        reported = [child.stdout.readline().strip() for _ in range(count)]
        os.kill(child.pid, signal.SIGKILL)
        return [one for one in (*reported, *child.stdout.read().split()) if one]


@pytest.mark.slow
async def test_whoever_was_let_in_is_in_after_a_kill(home):
    inside: list[str] = []
    for first, count in ((1_000, 1), (2_000, 7)):
        inside += _killed_after(home, first, count)
        async with opened(home) as access_control:
            for user in inside:
                assert await access_control.authorize(private(user=user)) == AccessDecision(
                    "member"
                )
            assert (await access_control.authorize(private(user="5"))).role is None
    assert len(inside) >= 8
