"""Threads that wait for the disk: outcomes, limits, callers that are gone."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from threading import Barrier, Event, get_ident

import anyio
import anyio.lowlevel
import pytest

from bot.core.storage_threads import StorageThreads
from tests.waiting import until


def refuse(_: bytes) -> None:
    raise OSError("the disk is full")


async def test_what_the_work_raises_reaches_its_caller_and_the_thread_goes_on():
    threads, done = StorageThreads(1), []
    with pytest.raises(OSError, match="full"):
        await threads.run(refuse, b"")
    await threads.run(done.append, b"next")
    assert done == [b"next"]


async def test_as_many_wait_for_the_disk_at_once_as_allowed_and_the_others_in_turn():
    threads, release = StorageThreads(2), Event()
    begun: list[bytes] = []

    def wait(data: bytes) -> None:
        begun.append(data)
        release.wait()

    async with anyio.create_task_group() as tasks:
        for data in (b"1", b"2", b"3"):
            tasks.start_soon(threads.run, wait, data)
        await until(lambda: len(begun) == 2)
        assert set(begun) == {b"1", b"2"}
        release.set()
    assert set(begun) == {b"1", b"2", b"3"}


async def test_of_the_threads_that_are_idle_the_one_that_worked_last_works_next():
    threads, both = StorageThreads(2), Barrier(2)
    async with anyio.create_task_group() as tasks:
        for _number in range(2):
            tasks.start_soon(threads.run, lambda _: both.wait(), b"")
    worked: list[int] = []
    for _number in range(8):
        await threads.run(lambda _: worked.append(get_ident()), b"")
    assert len(set(worked)) == 1


async def test_work_whose_caller_is_cancelled_is_finished_and_harms_none_after_it():
    threads, release, finished = StorageThreads(1), Event(), Event()

    def wait(_: bytes) -> None:
        release.wait()
        finished.set()

    task = asyncio.create_task(threads.run(wait, b""))
    await anyio.lowlevel.checkpoint()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    release.set()
    await threads.run(lambda _: None, b"")
    assert finished.is_set()


def test_work_that_ends_after_its_event_loop_harms_none_of_another_loop():
    threads, release = StorageThreads(1), Event()

    async def leave() -> None:
        task = asyncio.create_task(threads.run(lambda _: release.wait() and None, b""))
        await anyio.lowlevel.checkpoint()
        task.cancel()

    asyncio.run(leave())
    release.set()
    asyncio.run(threads.run(lambda _: None, b""))


async def test_a_thread_that_the_system_refuses_is_tried_again(monkeypatch):
    threads = StorageThreads(1)
    with monkeypatch.context() as refusing:
        refusing.setattr("bot.core.storage_threads.Thread.start", _no_thread)
        with pytest.raises(BlockingIOError):
            await threads.run(bytes, b"")
    await threads.run(bytes, b"")


async def test_the_threads_that_there_are_do_the_work_of_one_that_the_system_refuses(monkeypatch):
    threads, release, done = StorageThreads(2), Event(), []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(threads.run, lambda _: release.wait() and None, b"")
        await anyio.lowlevel.checkpoint()
        monkeypatch.setattr("bot.core.storage_threads.Thread.start", _no_thread)
        tasks.start_soon(threads.run, done.append, b"second")
        await anyio.lowlevel.checkpoint()
        release.set()
    assert done == [b"second"]


def _no_thread(*_: object) -> None:
    raise RuntimeError("can't start new thread")


FORKS = """
import anyio, os
from bot.core.storage_threads import StorageThreads
threads = StorageThreads(1)
anyio.run(threads.run, bytes, b"")
child = os.fork()
if not child:
    anyio.run(threads.run, bytes, b"")
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


def test_the_child_of_a_process_that_wrote_writes_too():
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORKS], check=True, timeout=60)
