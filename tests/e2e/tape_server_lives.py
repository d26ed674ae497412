"""Runs the real tape server again and again, and lets it die where it is told to.

Reads lines ``PORT CALLS BEFORE`` and forks a server for each, which imports nothing any more: it
kills itself at so many syncs of a file from its start, before or after the sync; never with 0. Tells
``dead CODE`` when it has died. Ends with its standard input.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys

import bot.core.append_file
import bot.tape.server.server
from bot.cli.tape_server import run_tape_server
from bot.runtime.settings import load_settings


def main() -> None:
    for line in sys.stdin:
        port, calls, before = map(int, line.split())
        child = os.fork()
        if child == 0:
            live(port, calls, before=bool(before))
        say(f"pid {child}")
        say(f"dead {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}")


def live(port: int, calls: int, *, before: bool) -> None:
    sync, syncs = os.fdatasync, itertools.count(1)

    def guarded(descriptor: int) -> None:
        last = next(syncs) == calls
        if last and before:
            os.kill(os.getpid(), signal.SIGKILL)
        sync(descriptor)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)

    bot.core.append_file._datasync = guarded
    os._exit(run_tape_server(load_settings(tape_server_listen=f"127.0.0.1:{port}")))


def say(text: str) -> None:
    os.write(1, text.encode() + b"\n")


if __name__ == "__main__":
    main()
