"""Files that the bot shows in Telegram: as documents, within what Telegram takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.bus import Address, OutgoingFile
from channels.delivery.messenger import (
    FileRejected,
    MessageRejected,
    OutgoingMessage,
    PlatformUnreachable,
    RateLimited,
)
from channels.telegram.api import MAX_UPLOAD_BYTES, BotApiClient
from channels.telegram.inbound_composer import RecentMessages
from channels.telegram.messenger import TelegramMessenger
from testkit.telegram.server import TelegramServer

ADA = Address("telegram", "7")


@pytest.fixture
async def telegram():
    async with TelegramServer() as server:
        server.private(server.user(7, "Ada"))
        yield server


@pytest.fixture
async def screen(telegram):
    api = BotApiClient(telegram.token, telegram.url)
    yield TelegramMessenger(api, RecentMessages())
    await api.aclose()


@pytest.fixture
def zipped(tmp_path) -> OutgoingMessage[OutgoingFile]:
    (tmp_path / "exports").mkdir()
    path = tmp_path / "exports" / "on-disk.zip"
    path.write_bytes(b"PK" + bytes(range(256)) * 4_000)
    return OutgoingMessage(ADA, OutgoingFile("memory-7.zip", path), "a1/1")


def grown(out: OutgoingMessage[OutgoingFile], size: int) -> Path:
    """Make the file so large; a hole takes no room on the disk."""
    with out.piece.path.open("r+b") as file:
        file.truncate(size)
    return out.piece.path


async def test_a_file_is_a_document_with_its_name_and_all_its_bytes(telegram, screen, zipped):
    sent = await screen.send_file(zipped)
    assert telegram.files(7) == {"memory-7.zip": zipped.piece.path.read_bytes()}
    [shown] = telegram.records.messages(7)
    assert (str(shown.id), shown.kind, shown.text) == (sent, "document", "")


async def test_a_file_of_more_than_50_mb_is_not_tried_and_its_place_is_told(
    telegram, screen, zipped
):
    grown(zipped, MAX_UPLOAD_BYTES + 1)
    with pytest.raises(FileRejected, match=r"at most 50 MB.*as exports/on-disk\.zip"):
        await screen.send_file(zipped)
    assert not telegram.records.called("sendDocument")


async def test_a_server_that_takes_less_refuses_it_and_what_waits_is_waited_for(
    telegram, screen, zipped
):
    telegram.faults.refuse(413, "Request Entity Too Large", method="sendDocument")
    with pytest.raises(MessageRejected, match="Too Large"):
        await screen.send_file(zipped)
    telegram.faults.flood_once(7, retry_after=3)
    with pytest.raises(RateLimited) as flood:
        await screen.send_file(zipped)
    assert flood.value.seconds == 3
    telegram.faults.hang_up(method="sendDocument", times=1)
    with pytest.raises(PlatformUnreachable):
        await screen.send_file(zipped)
    assert not telegram.files(7)
    await screen.send_file(zipped)
    assert len(telegram.files(7)) == 1
