"""Lives of tapebot on a disk that refuses: a process forks one for each fault that it is told of.

One JSON object a line. In: a ``Fault`` and the ``home`` of the life. Out: what it met (see ``Life``).
A life is three conversations at once, with a file, commands and an archive among them. When they have
their answers the tapes are checked, and tapebot is started again on the same home.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
import sys
import threading
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from kill_checks import Said, check_lines, check_settled, check_tape, read_tape

from bot.bus import BusError, Inbound
from bot.bus.media.ports import RemoteFile
from bot.core.clock import SystemClock
from bot.core.errors import TapebotError
from bot.runtime.app import open_app
from bot.runtime.app.build import App
from bot.runtime.sessions.supervisor import Supervisor
from bot.runtime.sessions.writer import GAVE_UP
from bot.runtime.settings import load_settings
from bot.testing.fake_channel import FakeChannel

CALLS = ("open", "write", "fsync", "fdatasync", "ftruncate", "rename", "replace")
SECONDS = 8.0
FALSE = (GAVE_UP, "error in tapebot", "see its log")
"""What nobody may read because of a disk."""

_AT_ONCE = int(os.environ.get("AT_ONCE", "2"))
_PAUSES = 0.005
_DOCUMENT = b"The key of the boathouse hangs behind the clock.\n" * 40

TALK = {
    "a": ("Remember that my locker is K00000A.", "What is my locker?", "/new now", "Hello again."),
    "b": ("(a file)", "/memory", "Remember that my boat is K00000B.", "What is my boat?"),
    "c": ("/memory add My bus is K00000C.", "/status", "What did I say about the bus?"),
}


@dataclass(frozen=True)
class Fault:
    """Which of the calls that change files in the home are refused, and how.

    Attributes:
        first: The first one that is refused, counted from 1; 0 for none.
        many: How many in a row are.
        error: The name of the error.
        only: The name of the calls that count; all of them if it is empty.
        place: The part of the home that counts: tapes, index, bus or blobs; all of it if it is empty.
        full: Instead, fill the file system at the first one, and make room again ``many`` milliseconds later.
    """

    first: int
    many: int = 1
    error: str = "EIO"
    only: str = ""
    place: str = ""
    full: bool = False


@dataclass
class Life:
    """What a life met.

    Attributes:
        calls: Calls that were made, by name and place.
        refused: Those that were refused.
        told: What was said beside answers.
        unaccepted: Messages that were sent again, since they were refused.
        starts: Starts that failed.
        failure: Why the life did not end well; empty if it did.
    """

    calls: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    unaccepted: int = 0
    starts: int = 0
    failure: str = ""


class Disk:
    """Stands before the operating system, for the files below a folder."""

    def __init__(self, home: Path, fault: Fault, life: Life) -> None:
        self._home, self._fault, self._life = f"{home}/", fault, life
        self._lock = threading.Lock()
        self._count = 0

    def install(self) -> None:
        for name in CALLS:
            setattr(os, name, self._guarded(name, getattr(os, name)))

    def _guarded(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any, **kwargs: Any) -> Any:
            path = self._path(args[0])
            if path is not None and not (name == "open" and not _changes(args, path)):
                self._refuse(name, path)
            return call(*args, **kwargs)

        return guarded

    def _path(self, target: Any) -> str | None:
        """Return the path below the home that a call is about."""
        try:
            path = str(
                Path(f"/proc/self/fd/{target}").readlink() if type(target) is int else target
            )
        except OSError:
            return None
        return path.removeprefix(self._home) if path.startswith(self._home) else None

    def _refuse(self, name: str, path: str) -> None:
        fault = self._fault
        with self._lock:
            if fault.only not in ("", name) or fault.place not in ("", _kind(path)):
                return
            self._count += 1
            what = f"{name} {_kind(path)}"
            self._life.calls.append(what)
            if fault.full:
                if self._count == fault.first:
                    self._fill()
                return
            if not fault.first <= self._count < fault.first + fault.many or not fault.first:
                return
            self._life.refused.append(what)
        number = getattr(errno, fault.error)
        raise OSError(number, os.strerror(number))

    def _fill(self) -> None:
        """Leave no room in the file system, for everybody in it."""
        filler = Path(self._home).parent / "filler"
        with filler.open("wb", buffering=0) as file:
            for size in (1 << 16, 1 << 12, 1 << 8, 1):
                with suppress(OSError):
                    while True:
                        file.write(b"x" * size)
        self._life.refused.append("all")
        threading.Timer(self._fault.many / 1000, filler.unlink).start()


def _changes(args: tuple[Any, ...], path: str) -> bool:
    """Locks and folders aside: a file that is opened to be read is not what this is about."""
    return bool(args[1] & (os.O_WRONLY | os.O_RDWR)) and not path.endswith(".lock")


def _kind(path: str) -> str:
    """Return the part of the home that a path is in."""
    return "index" if ".index.db" in path else path.partition("/")[0]


class FastClock(SystemClock):
    """Waits shorter where nobody waits for the world: between two tries."""

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds * _PAUSES)


@asynccontextmanager
async def running() -> AsyncIterator[tuple[App, FakeChannel]]:
    """Run tapebot with a channel of the test's."""
    async with open_app(load_settings()) as app:
        agent = replace(app.services.agent, clock=FastClock())
        supervisor = Supervisor(replace(app.services, agent=agent))
        channel = FakeChannel(app.bus.channel("fake"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(supervisor.run)
            tasks.start_soon(app.store.run)
            tasks.start_soon(channel.run)
            yield app, channel
            tasks.cancel_scope.cancel()


@dataclass
class Chats:
    """Who talks, and what became of it; it goes on with the next start."""

    life: Life
    said: dict[str, list[Said]] = field(default_factory=dict)
    delivered: set[str] = field(default_factory=set)
    blobs: set[str] = field(default_factory=set)

    async def talk(self, app: App, channel: FakeChannel) -> None:
        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as tasks:
                for chat in TALK:
                    tasks.start_soon(self._chat, app, channel, chat)
            await app.bus.drain()
        for answer in channel.answers:
            self.delivered.add(answer.id)
            if answer.reply_to is None:
                self.life.told.append(answer.text)
            assert not any(false in answer.text for false in FALSE), answer.text

    async def see_nothing_owed(self, app: App, channel: FakeChannel) -> None:
        """What the platform sends again is known, and the files are there."""
        for chat, said in self.said.items():
            for one in said:
                await self._accepted(
                    lambda c=chat, o=one: channel.send(o.text, chat=c, message_id=o.id)
                )
        with anyio.fail_after(SECONDS):
            await app.bus.drain()
        assert not channel.answers, channel.answers
        for found in (app.store.statistics(), await app.bus.statistics()):
            kinds = ("damaged_lines", "torn_bytes", "void_entries", "pending")
            assert not any(found.get(kind) for kind in kinds), found
        for name in self.blobs:
            assert await app.services.agent.images(name) == _DOCUMENT, "a file is lost"

    async def _accepted(self, say: Callable[[], Awaitable[Inbound]]) -> Inbound:
        while True:
            try:
                return await say()
            except BusError as error:
                self.life.told.append(str(error))
                self.life.unaccepted += 1
                await anyio.sleep(0.01)  # as a platform does before it sends again

    async def _chat(self, app: App, channel: FakeChannel, chat: str) -> None:
        said = self.said.setdefault(chat, [])
        for number, text in enumerate(TALK[chat]):
            one = Said(f"{chat}{number}", text)
            inbound = await self._accepted(partial(self._say, app, channel, chat, one))
            answer = await channel.wait_for_answer(inbound, within=SECONDS)
            if answer.startswith("That did not work:"):
                # The person knows, and nothing was promised.
                assert "disk" in answer, answer
                self.life.told.append(answer)
                one = replace(one, text="/memory add")
            said.append(one)

    async def _say(self, app: App, channel: FakeChannel, chat: str, one: Said) -> Inbound:
        async def fetch(_: int) -> bytes:
            return _DOCUMENT

        files: tuple[Any, ...] = ()
        if one.text == "(a file)":
            file = RemoteFile("document", "boathouse.txt", "text/plain", len(_DOCUMENT), fetch)
            files = (await app.attachments.receive(file),)
            # Of a disk that is nearly full files take no more; the person reads so.
            self.blobs |= {found.blob for found in files if found.blob is not None}
        return await channel.send(one.text, chat=chat, message_id=one.id, attachments=files)


async def live(home: Path, life: Life) -> None:
    """Talk; check what is on the disk; start again, and see that nothing is owed."""
    chats = Chats(life)

    async def started(work: Callable[[App, FakeChannel], Awaitable[None]]) -> None:
        """Start until it is not refused any more; once it runs, nothing may end it."""
        running_now = False
        while not running_now:
            try:
                async with running() as (app, channel):
                    running_now = True
                    await work(app, channel)
            except (TapebotError, OSError):
                if running_now:
                    raise
                life.starts += 1

    await started(chats.talk)
    await check(home, chats)
    await started(chats.see_nothing_owed)
    await check(home, chats)


async def check(home: Path, chats: Chats) -> None:
    check_lines(home)
    for chat, said in chats.said.items():
        entries = await read_tape(home, f"fake:{chat}")
        check_tape(entries)
        check_settled(entries, said, chats.delivered)
        assert not any(GAVE_UP in json.dumps(entry.payload) for entry in entries)


def one_life(home: Path, fault: Fault) -> Life:
    """Live it in this process, which is of no use afterwards."""
    os.environ["TAPEBOT_HOME"] = str(home)
    life = Life()
    errors = Errors()
    logging.getLogger().addHandler(errors)
    Disk(home, fault, life).install()
    try:
        anyio.run(live, home, life)
    except BaseException:  # noqa: BLE001 (whatever it is, it is told)
        life.failure = "\n".join([*errors.told, traceback.format_exc()])
    return life


class Errors(logging.Handler):
    """Keeps what is logged with the error that it is about: the reason of a failure may be there alone."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.told.append(self.format(record))


def main() -> None:
    """Fork a life for each line, a few at once; write what each met."""
    logging.basicConfig(level=logging.WARNING)
    waiting: dict[int, tuple[Path, Path]] = {}

    def finish() -> None:
        child, _ = os.wait()
        out, home = waiting.pop(child)
        sys.stdout.write(out.read_text() if out.exists() else '{"failure": "it died"}\n')
        sys.stdout.flush()
        shutil.rmtree(home, ignore_errors=True)

    for line in sys.stdin:
        told = json.loads(line)
        home = Path(told.pop("home"))
        fault = Fault(**told)
        out = home.with_suffix(".json")
        if len(waiting) >= _AT_ONCE:
            finish()
        child = os.fork()
        if child == 0:
            began = time.monotonic()
            life = one_life(home, fault)
            seconds = time.monotonic() - began
            text = json.dumps({**asdict(life), "fault": asdict(fault), "seconds": seconds})
            out.write_text(text + "\n")
            os._exit(0)
        waiting[child] = (out, home)
    while waiting:
        finish()


if __name__ == "__main__":
    main()
