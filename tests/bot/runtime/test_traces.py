"""After words were erased, no file below the home folder holds them: the bytes are looked at."""

from __future__ import annotations

import gzip
import logging
import zipfile
from collections.abc import AsyncIterator, Iterator
from io import BytesIO
from pathlib import Path

import pytest
from waiting import until

from bot.bus.local import LocalBus
from bot.bus.media.blobs import FolderBlobs
from bot.core.errors import ModelRejected
from bot.core.telemetry.logging import configure_logging
from bot.memory.erasure.text_matcher import TextMatcher, needles_in
from bot.runtime.app.residual_files import ResidualFiles
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply
from channels.console.prompt import open_history

SECRET = "Xyzzy-Plugh"
MARKS = (b"xyzzy", b"plugh")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
async def bus(home: Path) -> AsyncIterator[LocalBus]:
    bus = LocalBus(home / "bus", max_queued_messages=10, sync=False)
    yield bus
    await bus.aclose()


@pytest.fixture
def blobs(home: Path) -> FolderBlobs:
    return FolderBlobs(home / "blobs")


@pytest.fixture
def traces(home: Path, bus: LocalBus, blobs: FolderBlobs) -> ResidualFiles:
    return ResidualFiles(home, bus, blobs)


@pytest.fixture
def log(home: Path) -> Iterator[None]:
    stop = configure_logging(home, "debug", to_stderr=False)
    yield
    stop()


def unpacked(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the file, and what is packed in it."""
    yield name, data
    if data.startswith(b"\x1f\x8b"):
        yield from unpacked(f"{name}/", gzip.decompress(data))
    if data.startswith(b"PK"):
        with zipfile.ZipFile(BytesIO(data)) as archive:
            for each in archive.namelist():
                yield from unpacked(f"{name}/{each}", archive.read(each))


def holding(home: Path, but: str = "tapes") -> set[str]:
    """Return the files below the home folder that hold a mark, in their bytes or names."""
    return {
        str(path.relative_to(home))
        for path in home.rglob("*")
        if path.is_file() and path.relative_to(home).parts[0] != but
        for name, data in unpacked(path.name, bytes_of(path))
        if any(mark in data.lower() or mark in name.lower().encode() for mark in MARKS)
    }


def bytes_of(path: Path) -> bytes:
    """Return a file's bytes; none of one that took another's place since it was listed."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def _log(home: Path) -> str:
    return "".join(path.read_text() for path in (home / "logs").glob("*"))


async def test_a_conversation_leaves_no_words_in_the_log_at_any_level(home, log):
    """Faults included: answers that the provider refuses and workers that break down."""
    steps = [ModelRejected("it was too long"), text_reply("fine")]

    def answers(_: object):
        return steps.pop() if len(steps) > 1 else steps[0]

    async with session_host(home, ScriptedModel(answers)) as host:
        for text in (SECRET, SECRET, f"/memory add {SECRET}", f"/{SECRET}", "/new now"):
            await host.channel.ask(text)
        steps[:] = [RuntimeError("broken")]
        await host.channel.send(f"{SECRET} breaks it")
        await host.wait_until(lambda: "the worker of session" in _log(home))
        await host.wait_until(lambda: "broken" in _log(home))
    assert "it was too long" in _log(home)
    assert not {name for name in holding(home) if name.startswith("logs")}


async def test_records_of_the_log_are_masked_in_place_and_typed_lines_gone(home, traces, log):
    typed = open_history(home / "console" / "history")
    for text in (f"my word is {SECRET}", "/memory export", f"/lose {SECRET}"):
        typed.append_string(text)
    logger = logging.getLogger("bot.test")
    logger.info("innocent")
    logger.warning("the provider refused: %s", f"first line\n{SECRET} in the second")
    logger.info("innocent, too")
    path = home / "logs" / "tapebot.log"
    await until(lambda: path.exists() and "too" in path.read_text())
    rotated = write(home / "logs" / "tapebot.log.1", b"a\nb xyzzy-plugh\nc\n")
    before = path.read_bytes()
    assert await traces.erase(TextMatcher(needles_in(SECRET)), []) == 4
    again = open_history(home / "console" / "history")
    assert [line async for line in again.load()] == ["/memory export"]
    logger.info("written later")
    await until(lambda: "later" in path.read_text())
    lines = path.read_text().splitlines()
    assert [line.rpartition(": ")[2] for line in lines if not line.startswith("*")] == [
        "innocent",
        "innocent, too",
        "written later",
    ]
    assert [set(line) for line in lines[1:3]] == [{"*"}, {"*"}]
    assert path.read_bytes().find(b"innocent, too") == before.find(b"innocent, too")
    assert rotated.read_bytes() == b"a\n*************\nc\n"


async def test_links_are_not_followed(home, traces, tmp_path):
    outside = write(tmp_path / "outside.md", b"xyzzy")
    (home / "exports").mkdir()
    (home / "exports" / "link.md").symlink_to(outside)
    assert await traces.erase(TextMatcher(("xyzzy",)), []) == 0
    assert outside.exists()
