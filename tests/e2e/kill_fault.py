"""A kill, or an error, at one of the system calls that change files; nobody in tapebot keeps these under a name of theirs."""

from __future__ import annotations

import errno
import json
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

_CHANGES = ("write", "pwrite", "fsync", "fdatasync", "rename", "replace", "link", "unlink")
_FIRST_FILE = 3
_write = os.write


def emit(**event: Any) -> None:
    """Say something; a line that is in the pipe has been heard."""
    rest = json.dumps(event).encode() + b"\n"
    while rest:
        rest = rest[_write(1, rest) :]


class Fault:
    def __init__(self) -> None:
        self.done = self._at = 0
        self._part, self._only, self._moment, self._after = 0.0, "", "", False
        self._error, self._many = "", 1
        self._counting = threading.Lock()

    def arm(
        self,
        times: int,
        part: float = 0.0,
        *,
        only: str = "",
        moment: str = "",
        after: bool = False,
        error: str = "",
        many: int = 1,
    ) -> None:
        """Die at this many calls from now.

        Args:
            times: At which; 0 for none.
            part: How much of it is done, if it is a write.
            only: The name of the calls that count; all of them if it is empty.
            moment: Likewise with the kind of file, as in ``after rename live``.
            after: Right after the call.
            error: Do not die, but refuse it with an error of this name.
            many: How many in a row are refused.
        """
        self.done, self._at, self._part = 0, times, part
        self._only, self._moment = only, moment
        self._error, self._many = error, many
        self._after = moment.startswith("after") if moment else after

    def install(self) -> None:
        for name in _CHANGES:
            setattr(os, name, self._guarded(name, getattr(os, name)))

    def _guarded(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any, **kwargs: Any) -> Any:
            file = not (type(args[0]) is int and args[0] < _FIRST_FILE)
            if file and self._only in ("", name):
                # Appending and packing are threads of their own: two that came at once would count past it.
                with self._counting:
                    self.done += not self._moment or self._moment == self._told(name, args[0])
                    if self._at <= self.done < self._at + self._many and self._error:
                        raise OSError(getattr(errno, self._error), self._error)
                    if self.done == self._at:
                        self._die(name, call, *args)
            return call(*args, **kwargs)

        return guarded

    def _told(self, name: str, file: Any) -> str:
        return f"{'after' if self._after else 'before'} {name} {kind_of(file)}"

    def _die(self, name: str, call: Callable[..., Any], *args: Any) -> None:
        told = self._told(name, args[0])
        if self._after:
            with suppress(OSError):
                call(*args)
        elif call is _write:
            call(args[0], bytes(args[1])[: int(len(args[1]) * self._part)])
        if self._after or self._moment:
            emit(died=told)
        os.kill(os.getpid(), signal.SIGKILL)


def kind_of(file: Any) -> str:
    """Return what a descriptor or path is of: a live file, one that takes its place, a segment, a packed one, or another."""
    path = Path(f"/proc/self/fd/{file}").readlink() if type(file) is int else Path(file)
    name = path.name
    kinds = {".gz.new": "packed", ".new": "fresh", ".jsonl": "segment"}
    if name.endswith(".jsonl") and name.count(".") == 1:
        return "live"
    return next((kind for end, kind in kinds.items() if name.endswith(end)), "other")


FAULT = Fault()
