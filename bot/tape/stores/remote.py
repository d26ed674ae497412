"""Store tapes on a tape server (``tapebot tape-server``) over HTTP.

Rule 1: what changes nothing, and what the server does once, is sent again when the connection, the server or a proxy
    failed. Another change is sent again only if the server certainly has not begun it.
Rule 2: a change that has begun is not cancelled: its outcome is awaited, within a time limit.
Rule 3: the token goes only to the configured server: redirects are not followed, and requests to this machine bypass
    the proxy.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial, wraps
from inspect import signature
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from urllib.parse import urlencode

import anyio
import anyio.lowlevel
import anyio.to_thread
import httpx
import stamina

from bot.core.addresses import is_loopback
from bot.core.errors import TapeError, TapeRefused, TapeUnavailable
from bot.core.i18n import _
from bot.core.ids import new_id
from bot.core.response_limits import limit_response
from bot.tape import http_protocol as protocol
from bot.tape.codec import MAX_JSON_INTEGER, decode_entry, encode_entries
from bot.tape.entries import TapeEntry
from bot.tape.fold_rows import FoldRows
from bot.tape.http_protocol import CALLS, FOLLOW, SSE_MEDIA_TYPE, Call, Page, Problem, ServerCalls
from bot.tape.search import Hit, SearchQuery
from bot.tape.store import TapeStore
from bot.tape.stores.changes import check_version

logger = logging.getLogger(__name__)

_FIRST_PAGE = 32
_FEW = 32
"""Entries that are encoded at once: more would hold up other tasks."""
_PAUSE = 1.0
"""Seconds before a broken stream is opened again."""

_CONCURRENT = 8
"""Requests at once, besides streams. More would slow all down: the pool scans its connections for each one."""

# Seconds of silence until a request fails, which the server itself aborts after 120, and a stream counts as dead.
_TIMEOUT = httpx.Timeout(10.0, read=130.0, write=60.0, pool=None)
_SILENCE = httpx.Timeout(10.0, read=45.0, write=60.0, pool=None)

_LONGEST = 150.0
"""Seconds that a call may take beyond the patience, however slowly a response arrives."""

_KEPT = 2.0
"""Seconds that an idle connection is kept: less than at a server, which might close it just as it is reused."""

_MOST = 64_000_000
"""Most bytes of a response or event: a page ends with the entry that exceeds a megabyte."""

_BAD_MOMENTS = frozenset({429, 502, 503, 504})

_SURELY_TAKEN = 900_000
"""Bytes of a body that every server accepts."""


P = ParamSpec("P")
T = TypeVar("T")
_Method = Callable[P, Coroutine[Any, Any, T]]


def _asking(method: _Method[P, T]) -> _Method[P, T]:
    """Return a method of the store that has the server do it."""
    parameters = signature(method)

    @wraps(method)
    async def ask(*given: P.args, **named: P.kwargs) -> T:
        asked = parameters.bind(*given, **named).arguments
        answer: T = await asked.pop("self").ask(method, **asked)
        return answer

    return ask


def _encoded(asked: Mapping[str, Any]) -> bytes:
    """Return arguments as JSON; what that would change is refused here, since the server could not see it."""
    for value in asked.values():
        if isinstance(value, list | tuple):
            encode_entries([replace(entry, id=entry.id or 1) for entry in value])
    return protocol.to_json(asked)


_ONCE = (TapeStore.archive, TapeStore.fork, TapeStore.reset)
_ERASING = (TapeStore.erase, TapeStore.reset)


class _Failed(Exception):
    """The server, or a proxy before it, cannot answer now, but may have ``begun``; ``wait`` is what it asks for."""

    def __init__(self, answer: httpx.Response) -> None:
        told = _problem(answer)
        self.begun = answer.status_code != 429 and (told is None or told.error != protocol.BUSY)
        asked = answer.headers.get("retry-after", "")
        self.wait = float(asked) if asked.isdecimal() else 0.0
        super().__init__(told.detail if told else f"it answered {answer.status_code}")


class RemoteTapeStore(TapeStore):
    """Read and write the tapes of a tape server.

    Failed requests are retried for a while; a retried append is applied once. If the connection breaks during an
    archive, reset or fork, its outcome is unknown: it raises ``TapeUnavailable`` and is not retried.

    Args:
        url: The server's address, such as ``https://tapes.example.org``.
        token: The access token.
        patience: Seconds after which a failing request is not retried.
        folds: Where states of the tapes are kept; None for memory.
    """

    def __init__(
        self, url: str, token: str, *, patience: float = 30.0, folds: Path | None = None
    ) -> None:
        self.folds: FoldRows = FoldRows(folds, server=url)
        self._url = url.rstrip("/")
        self._patience = patience
        self._counts = {"requests": 0, "retries": 0, "followed": 0}
        self._erased: Counter[str] = Counter()
        self._client = httpx.AsyncClient(
            base_url=self._url,
            headers={
                "Authorization": f"Bearer {token}",
                "User-Agent": "tapebot",
                "Accept-Encoding": "identity",
            },
            event_hooks={"response": [_bounded]},
            timeout=_TIMEOUT,
            # Reading the certificates takes long, and plain HTTP has none.
            verify=self._url.startswith("https:"),
            limits=httpx.Limits(keepalive_expiry=_KEPT, max_keepalive_connections=_CONCURRENT),
            trust_env=not is_loopback(httpx.URL(self._url).host),
        )
        self._slots = anyio.Semaphore(_CONCURRENT)
        self._most = _SURELY_TAKEN
        self._closed = False

    list_tapes = _asking(TapeStore.list_tapes)
    create_tape = _asking(TapeStore.create_tape)
    get_title = _asking(TapeStore.get_title)
    version = _asking(TapeStore.version)
    segments = _asking(TapeStore.segments)
    list_anchors = _asking(TapeStore.list_anchors)
    get_anchor = _asking(TapeStore.get_anchor)
    archive = _asking(TapeStore.archive)
    reset = _asking(TapeStore.reset)
    erase = _asking(TapeStore.erase)
    fork = _asking(TapeStore.fork)

    async def ask(self, method: Callable[..., Any], **asked: Any) -> Any:
        """Have the server do what a method does, and return its answer."""
        call = CALLS[method]
        if call.verb == "GET":
            return await self._answer(call, asked, repeatable=True)
        replaces = asked.get("replace_if_exists", False)
        if any(isinstance(one, list | tuple) and len(one) > _FEW for one in asked.values()):
            body = await anyio.to_thread.run_sync(_encoded, asked)
        else:
            body = _encoded(asked)
        await anyio.lowlevel.checkpoint_if_cancelled()
        repeatable = method not in _ONCE and not replaces
        with anyio.CancelScope(shield=True):
            if method not in _ERASING and not replaces:
                return await self._answer(call, asked, body, repeatable=repeatable)
            try:
                async with self.folds.erasing(asked["tape"]):
                    return await self._answer(call, asked, body, repeatable=repeatable)
            finally:
                # If the answer was lost, it may have been done.
                self._erased[asked["tape"]] += 1

    async def read(
        self, tape: str, from_entry_id: int | None = None, to_entry_id: int | None = None
    ) -> list[TapeEntry]:
        """Return the entries of an id range, segments included."""
        first: int | None = from_entry_id or 1
        last = MAX_JSON_INTEGER if to_entry_id is None else to_entry_id
        entries: list[TapeEntry] = []
        while first is not None:
            page = await self._page(tape, from_entry_id=first, to_entry_id=last)
            entries += page.entries
            # Entries appended meanwhile are left out.
            first, last = page.next, min(last, page.version)
        return entries

    async def read_back(
        self, tape: str, before: int | None = None
    ) -> AsyncGenerator[TapeEntry, None]:
        """Yield entries newest first; pages grow."""
        last: int | None = MAX_JSON_INTEGER if before is None else before - 1
        limit = _FIRST_PAGE
        while last is not None:
            page = await self._page(tape, to_entry_id=last, limit=limit, newest_first=True)
            for entry in page.entries:
                yield entry
            last, limit = page.next, min(limit * 2, protocol.MAX_PAGE_SIZE)

    async def append_many(
        self, tape: str, entries: Sequence[TapeEntry], *, expect: int | None = None
    ) -> list[TapeEntry]:
        """Append entries in one atomic write."""
        if not entries:
            check_version(tape, expect, await self.version(tape))
            return []
        asked = {"entries": [*entries], "expect": expect, "key": new_id("append")}
        written: list[TapeEntry] = await self.ask(ServerCalls.append, tape=tape, **asked)
        if len(written) != len(entries):
            raise self._unexpected_response(ValueError(f"{len(written)} entries"))
        return written

    async def erasures(self, tape: str) -> int:
        """Return the number of erasures since the start: only one bot uses a server's tapes."""
        return self._erased[tape]

    async def search(self, query: SearchQuery) -> list[Hit]:
        """Return the best matches, best first, on the tapes that the token may access."""
        query.validate()
        hits: list[Hit] = await self.ask(TapeStore.search, query=query)
        return hits

    async def follow(self, tape: str, after: int | None = None) -> AsyncGenerator[TapeEntry, None]:
        """Yield new entries; a broken stream is resumed where it broke."""
        last = await self.newest(tape) if after is None else after
        failing_since: float | None = None
        while True:
            try:
                async with self._stream({"tape": tape, "after": last}) as chunks:
                    failing_since = None
                    async for line in _lines(chunks):
                        if line.startswith(b"data: "):
                            entry = decode_entry(line.removeprefix(b"data: "))
                            if entry is None:
                                raise self._unexpected_response(ValueError("no entry"))
                            last = entry.id
                            yield entry
            except ConnectionError as error:
                now = anyio.current_time()
                failing_since = now if failing_since is None else failing_since
                if now - failing_since > self._patience:
                    raise self._unavailable_error(error) from error
                logger.info("a stream of entries broke and is being reopened: %s", error)
            await anyio.sleep(_PAUSE)

    async def run(self) -> None:
        """Wait until cancelled: the server does all background work."""
        await anyio.sleep_forever()

    def statistics(self) -> dict[str, Any]:
        """Return counts of requests, retries, and streams open now."""
        return dict(self._counts)

    async def close(self) -> None:
        """Close the connections after the requests in progress; later requests fail."""
        if self._closed:
            return
        self._closed = True
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(10):
                # A connection opened while the others are closed would stay open.
                for _unused in range(_CONCURRENT):
                    await self._slots.acquire()
            await self._client.aclose()

    async def newest(self, tape: str) -> int:
        """Return the id of the newest readable entry."""
        return (await self._page(tape, from_entry_id=MAX_JSON_INTEGER)).version

    async def _page(self, tape: str, limit: int = protocol.MAX_PAGE_SIZE, **asked: Any) -> Page:
        page: Page = await self.ask(ServerCalls.read_page, tape=tape, limit=limit, **asked)
        return page

    async def _answer(
        self, call: Call, asked: Mapping[str, Any], body: bytes | None = None, *, repeatable: bool
    ) -> Any:
        self._see_open()
        if body is not None and len(body) > self._most:
            await self._see_size(len(body))
        request = self._client.build_request(call.verb, _url(call, asked), content=body)
        sending = stamina.AsyncRetryingCaller(
            attempts=None, timeout=self._patience, wait_initial=0.05, wait_max=1.0, wait_jitter=0.1
        )
        try:
            with anyio.fail_after(self._patience + _LONGEST):
                answer = await sending(partial(self._again, repeatable), self._once, request, asked)
            return call.answers.validate_python(protocol.from_json(answer.content))
        except (httpx.TransportError, _Failed, TimeoutError) as error:
            raise self._unavailable_error(error) from error
        except (httpx.DecodingError, ValueError) as error:
            raise self._unexpected_response(error) from error

    @asynccontextmanager
    async def _stream(self, asked: Mapping[str, Any]) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a stream of events, and yield its chunks; a ``ConnectionError`` means to open it again."""
        self._see_open()
        self._counts["followed"] += 1
        try:
            async with self._client.stream("GET", _url(FOLLOW, asked), timeout=_SILENCE) as answer:
                if not answer.is_success:
                    await answer.aread()
                self._see_taken(answer, asked)
                if not answer.headers.get("content-type", "").startswith(SSE_MEDIA_TYPE):
                    raise self._unexpected_response(ValueError("it is not a stream of events"))
                yield answer.aiter_bytes()
        except httpx.DecodingError as error:
            raise self._unexpected_response(error) from error
        except (httpx.TransportError, _Failed) as error:
            raise ConnectionError(str(error) or type(error).__name__) from error
        finally:
            self._counts["followed"] -= 1

    def _unavailable_error(self, error: Exception) -> TapeUnavailable:
        """Return the error for a server that cannot be used."""
        told = str(error) or type(error).__name__
        return TapeUnavailable(
            _(
                "the tape server {url} cannot be used ({told}); check that it runs and can be "
                "reached from here",
                url=self._url,
                told=told,
            )
        )

    def _unexpected_response(self, error: Exception) -> TapeUnavailable:
        """Return the error for a response that does not come from a tape server."""
        return TapeUnavailable(
            _(
                "{url} gave an answer that is not a tape server's ({error!r}); check the address, "
                "and the server's version",
                url=self._url,
                error=error,
            )
        )

    def _see_open(self) -> None:
        if self._closed:
            raise TapeError(_("the tape store is closed"))

    async def _see_size(self, size: int) -> None:
        """Refuse a body that is too large: a server might close the connection before its error arrives."""
        # Asked before each refusal: the server's limit may have been raised.
        self._most = (await self.ask(ServerCalls.statistics)).most_bytes
        if size > self._most:
            raise TapeRefused(
                _(
                    "the tape server {url} takes {most} bytes at once, and this is {size}; write less at "
                    "once, or raise its TAPEBOT_TAPE_SERVER_MAX_MB",
                    url=self._url,
                    most=self._most,
                    size=size,
                )
            )

    def _again(self, repeatable: bool, error: Exception) -> bool | float:
        """Return whether a failed request is sent again, or after how many seconds."""
        wanted: bool | float
        if isinstance(error, _Failed):
            # The server may ask for an hour, in which a change could not be cancelled.
            wait = min(error.wait, self._patience)
            wanted = (repeatable or not error.begun) and (wait or True)
        else:
            unsent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            wanted = isinstance(error, httpx.TransportError) and (repeatable or unsent)
        self._counts["retries"] += bool(wanted)
        return wanted

    async def _once(self, request: httpx.Request, asked: Mapping[str, Any]) -> httpx.Response:
        async with self._slots:
            self._see_open()
            self._counts["requests"] += 1
            answer = await self._client.send(request)
        self._see_taken(answer, asked)
        return answer

    def _see_taken(self, answer: httpx.Response, asked: Mapping[str, Any]) -> None:
        """Raise the error of a call that was not done."""
        if answer.is_success:
            return
        if answer.status_code in _BAD_MOMENTS:
            raise _Failed(answer)
        if answer.status_code == 401:
            raise TapeRefused(
                _(
                    "the tape server {url} does not accept the token; set TAPEBOT_TAPE_STORE_TOKEN to "
                    "one from `tapebot tape-server token add`",
                    url=self._url,
                )
            )
        told = _problem(answer)
        if told is None:
            raise self._unexpected_response(ValueError(f"status {answer.status_code}"))
        raise protocol.tape_error(answer.status_code, told, asked)


def _url(call: Call, asked: Mapping[str, Any]) -> str:
    if call.verb == "POST":
        return call.path
    query = {name: value for name, value in asked.items() if value is not None}
    return f"{call.path}?{urlencode(query, errors='surrogatepass')}"


def _problem(answer: httpx.Response) -> Problem | None:
    """Return what an error response says; None if it is not a tape server's."""
    try:
        return Problem.model_validate(protocol.from_json(answer.content))
    except ValueError:
        return None


async def _bounded(answer: httpx.Response) -> None:
    """Limit a response's size as it arrives; an event stream is endless, so limit each line."""
    endless = answer.headers.get("content-type", "").startswith(SSE_MEDIA_TYPE)
    await limit_response(
        answer, most=None if endless else _MOST, most_line=_MOST if endless else None
    )


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield the whole lines of a stream; text decoders would destroy lone surrogates."""
    begun: list[bytes] = []
    async for chunk in chunks:
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            # Joined once per line, however many chunks it arrived in.
            yield b"".join([*begun, line])
            begun = []
        begun.append(rest)
