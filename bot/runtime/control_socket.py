"""The control socket: local ``tapebot`` commands send requests to the running bot.

``control.sock`` in the home folder is accessible to its owner only. A connection carries one JSON
object on a line, ``{"do": "pair", "code": "AB12-CD34"}``, and gets one back, ``{"ok": true, "text":
"..."}``.
"""

from __future__ import annotations

import json
import logging
import os
import stat
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import SocketListener, SocketStream, TaskStatus
from anyio.streams.buffered import BufferedByteReceiveStream

from bot.core.errors import TapebotError
from bot.core.files import PRIVATE_FILE
from bot.core.i18n import _

logger = logging.getLogger(__name__)

SOCKET = "control.sock"
"""The socket's file name in the home folder."""

Handler = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Answers a request with ``ok`` and a ``text`` for people; a ``TapebotError`` is returned as one.
"""

_LONGEST_PATH = 103  # bytes of sun_path on macOS and BSD; Linux takes 107
_REQUEST = 65_536  # bytes
_REPLY = 1_000_000  # bytes
_SECONDS = 5.0  # for the request to arrive
_HANDLING = 60.0  # for the handler and the answer
_PATIENCE = 10.0  # seconds that the caller waits
_CONNECTIONS = 8
_UNFINISHED = 128  # connections that have sent no whole request; beyond it the oldest is closed
_RECOVERY = 5.0  # seconds to wait when the process is out of file descriptors


async def serve_control(
    home: Path,
    handlers: Mapping[str, Handler],
    *,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serve the control socket until cancelled.

    If no socket can be created, that is logged and the bot runs without.
    """
    try:
        with _reachable(home) as path:
            listener = await _listen(path)
            try:
                async with listener:
                    task_status.started()
                    await _accept(listener, handlers)
            finally:
                with suppress(OSError):
                    _remove(path)
    except _NoSocket as error:
        logger.warning(
            "no control socket in %s: %s; `tapebot pair` works only while the bot is stopped",
            home,
            error,
        )
        task_status.started()


async def call_control(
    home: Path, request: Mapping[str, Any], *, patience: float | None = None
) -> dict[str, Any] | None:
    """Send a request to the running bot; return None if none is running.

    Raises:
        TapebotError: A bot is running, but cannot be reached or does not answer.
    """
    try:
        with _reachable(home) as path, anyio.fail_after(patience or _PATIENCE):
            async with await anyio.connect_unix(path) as stream:
                await stream.send(_line(request))
                buffered = BufferedByteReceiveStream(stream)
                return _object(await buffered.receive_until(b"\n", _REPLY))
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError, _NoSocket):
        return None
    except TimeoutError as error:
        raise TapebotError(_("the bot that runs in {home} does not answer", home=home)) from error
    except OSError as error:
        raise TapebotError(
            _(
                "the bot that runs in {home} cannot be reached ({strerror}); run this as the bot's user",
                home=home,
                strerror=error.strerror,
            )
        ) from error
    except (anyio.IncompleteRead, anyio.DelimiterNotFound, anyio.BrokenResourceError) as error:
        raise TapebotError(
            _("the bot that runs in {home} did not finish its answer", home=home)
        ) from error
    except (ValueError, RecursionError) as error:
        raise TapebotError(
            _("the bot that runs in {home} has another version", home=home)
        ) from error


class _NoSocket(Exception):
    """No socket is possible here; the text says why."""


@contextmanager
def _reachable(home: Path) -> Iterator[str]:
    """Yield a path of the socket that is short enough for the system.

    Raises:
        _NoSocket: There is no such path.
    """
    path = home / SOCKET
    if len(os.fsencode(path)) <= _LONGEST_PATH:
        yield str(path)
        return
    try:
        folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _NoSocket(error.strerror or str(error)) from error
    try:
        short = Path(f"/proc/self/fd/{folder}")
        if not short.is_dir():
            raise _NoSocket(_("the path of the home folder is too long"))
        yield str(short / SOCKET)
    finally:
        os.close(folder)


async def _listen(path: str) -> SocketListener:
    await _make_room(path)
    try:
        # anyio sets the mode before it listens: nobody can connect earlier.
        return await anyio.create_unix_listener(path, mode=PRIVATE_FILE, backlog=_UNFINISHED)
    except OSError as error:
        raise _NoSocket(error.strerror or str(error)) from error


async def _make_room(path: str) -> None:
    """Remove a dead process's socket; leave anything else in place."""
    if not _is_socket(path):
        return
    try:
        with anyio.fail_after(_SECONDS):
            await (await anyio.connect_unix(path)).aclose()
    except ConnectionRefusedError:
        _remove(path)
    except FileNotFoundError:
        return
    except (OSError, TimeoutError) as error:
        raise _NoSocket(_("the existing socket cannot be tested ({error})", error=error)) from error
    else:
        raise _NoSocket(_("another process serves it"))


def _is_socket(path: str) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _NoSocket(error.strerror or str(error)) from error
    if not stat.S_ISSOCK(mode):
        raise _NoSocket(_("a file of that name is not a socket; move it away"))
    return True


def _remove(path: str) -> None:
    Path(path).unlink(missing_ok=True)


async def _accept(listener: SocketListener, handlers: Mapping[str, Handler]) -> None:
    slots = anyio.Semaphore(_CONNECTIONS)
    unfinished: dict[anyio.CancelScope, None] = {}
    async with anyio.create_task_group() as tasks:
        while True:
            try:
                stream = await listener.accept()
            except anyio.BrokenResourceError as error:
                logger.warning(
                    "the control socket cannot accept connections now: %s", error.__cause__
                )
                await anyio.sleep(_RECOVERY)
                continue
            if len(unfinished) >= _UNFINISHED:
                next(iter(unfinished)).cancel()
            tasks.start_soon(_converse, stream, handlers, slots, unfinished)


async def _converse(
    stream: SocketStream,
    handlers: Mapping[str, Handler],
    slots: anyio.Semaphore,
    unfinished: dict[anyio.CancelScope, None],
) -> None:
    """Answer one connection, with a slot for the handler alone; give up on slow or closed ones."""
    with (
        anyio.move_on_after(_SECONDS) as waiting,
        suppress(anyio.BrokenResourceError, anyio.IncompleteRead),
    ):
        unfinished[waiting] = None
        try:
            async with stream:
                buffered = BufferedByteReceiveStream(stream)
                try:
                    line = await buffered.receive_until(b"\n", _REQUEST)
                except anyio.DelimiterNotFound:
                    await stream.send(_line(_refusal(_("the request is too long"))))
                    return
                del unfinished[waiting]
                waiting.deadline = anyio.current_time() + _HANDLING
                async with slots:
                    reply = await _reply(line, handlers)
                await stream.send(_line(reply))
        finally:
            unfinished.pop(waiting, None)


async def _reply(line: bytes, handlers: Mapping[str, Handler]) -> Mapping[str, Any]:
    try:
        request = _object(line)
    except (ValueError, RecursionError):
        return _refusal(_("the request is not a JSON object on one line"))
    handler = handlers.get(str(request.get("do")))
    if handler is None:
        return _refusal(_("the running bot does not know this command; it may be another version"))
    try:
        return await handler(request)
    except TapebotError as error:
        return _refusal(f"{error}")


def _refusal(text: str) -> Mapping[str, Any]:
    return {"ok": False, "text": text}


def _line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(dict(value)).encode() + b"\n"


def _object(line: bytes) -> dict[str, Any]:
    """Return the JSON object on a line.

    Raises:
        ValueError: It is not a JSON object.
        RecursionError: It is nested too deeply.
    """
    value = json.loads(line)
    if not isinstance(value, dict):
        raise ValueError("not an object")  # noqa: TRY004 (what json raises for other wrong input)
    return value
