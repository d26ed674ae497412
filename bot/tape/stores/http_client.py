"""Send requests to a tape server: retries, error mapping and cancellation.

Rule 1: idempotent requests are retried when the connection, the server or a proxy failed. Appends
    are idempotent: they carry a key, and a server performs each key once.
Rule 2: other changes (archive, reset, fork) are retried only if the server certainly has not
    started them.
Rule 3: a started change is not cancelled: its outcome is awaited, within a time limit.
Rule 4: the token goes only to the configured server: redirects are not followed, and requests to
    this machine bypass the proxy.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from ipaddress import ip_address
from typing import Any

import anyio
import anyio.lowlevel
import httpx
import stamina

from bot.core.errors import TapeError, TapeRefused, TapeUnavailable, VersionConflict
from bot.core.i18n import _
from bot.core.response_limits import limit_response
from bot.tape.http_protocol import (
    BUSY,
    CONFLICT,
    SSE_MEDIA_TYPE,
    build_url,
    from_json,
    tape_error,
)

Params = dict[str, str | int]

MAX_CONCURRENT_REQUESTS = 8
"""Concurrent requests; followed streams come on top. More would slow all down, since the client's
pool scans all connections for each one.
"""

_TIMEOUT = httpx.Timeout(10.0, read=130.0, write=60.0, pool=None)
"""Seconds; the server itself aborts a request after 120."""

_SILENCE = httpx.Timeout(10.0, read=45.0, write=60.0, pool=None)
"""A stream that sends nothing for this long is considered dead."""

_LONGEST = 150.0
"""Seconds that a call may take beyond the patience, however slowly a response arrives."""

_CLOSING = 10.0
"""Seconds to wait for requests in progress when closing."""

_KEPT = 2.0
"""Seconds that an idle connection is kept: less than at a server, which might close it just as it
is reused.
"""

_MOST = 64_000_000
"""Most bytes of a response or event: a page ends with the entry that exceeds a megabyte."""

_SURELY_TAKEN = 900_000
"""Bytes of a body that every server accepts. A server's higher limit is queried once."""

_FAILED = frozenset({429, 502, 503, 504})
# The request did not reach a server.
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout)


class _Failed(Exception):
    """The server, or a proxy before it, cannot answer now.

    Attributes:
        answer: The response.
        begun: Whether the server may have started the request.
    """

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self.told = _problem(answer)
        self.begun = answer.status_code != 429 and self.told.get("error") != BUSY
        super().__init__(self.told.get("detail") or f"it answered {answer.status_code}")

    @property
    def wait(self) -> float:
        """Seconds of its ``Retry-After`` header; 0 if there is none."""
        asked = self.answer.headers.get("retry-after", "")
        return float(asked) if asked.isdecimal() else 0.0


class TapeServerClient:
    """An HTTP client for one tape server.

    Args:
        url: The server's address.
        token: The access token.
        patience: Seconds after which failures are not retried.
    """

    def __init__(self, url: str, token: str, *, patience: float) -> None:
        self.url = url.rstrip("/")
        self.patience = patience
        self.counts = {"requests": 0, "retries": 0, "followed": 0}
        self._client = httpx.AsyncClient(
            base_url=self.url,
            headers={
                "Authorization": f"Bearer {token}",
                "User-Agent": "tapebot",
                "Accept-Encoding": "identity",
            },
            event_hooks={"response": [_bounded]},
            timeout=_TIMEOUT,
            # Reading the certificates takes long, and plain HTTP has none.
            verify=self.url.startswith("https:"),
            limits=httpx.Limits(
                max_connections=None,
                max_keepalive_connections=MAX_CONCURRENT_REQUESTS,
                keepalive_expiry=_KEPT,
            ),
            mounts=_direct(self.url),
        )
        self._slots = anyio.Semaphore(MAX_CONCURRENT_REQUESTS)
        self._most: int | None = None
        self._closed = False

    async def close(self) -> None:
        """Close the connections after the requests in progress; later requests fail."""
        if self._closed:
            return
        self._closed = True
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(_CLOSING):
                # A connection opened while the others are closed would stay open.
                for _unused in range(MAX_CONCURRENT_REQUESTS):
                    await self._slots.acquire()
            await self._client.aclose()

    async def request(
        self,
        method: str,
        path: str,
        params: Params,
        body: bytes | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        repeatable: bool = True,
    ) -> httpx.Response:
        """Send a request, retry while that is safe, and return the successful response.

        Args:
            method: HTTP method.
            path: Path below the server's address.
            params: Query parameters.
            body: Request body.
            headers: Request headers.
            repeatable: Whether the request is idempotent.

        Raises:
            TapeUnavailable: The server cannot be reached, or fails.
            TapeRefused: The server refuses the request.
            TapeError: Any error of the server's store.
        """
        self._see_open()
        if body is not None and len(body) > _SURELY_TAKEN:
            await self._see_size(len(body))
        request = self._client.build_request(
            method, build_url(path, params), content=body, headers=headers
        )

        call = stamina.AsyncRetryingCaller(
            attempts=None, timeout=self.patience, wait_initial=0.05, wait_max=1.0, wait_jitter=0.1
        )
        try:
            with anyio.fail_after(self.patience + _LONGEST):
                answer = await call(partial(self._again, repeatable), self._once, request)
        except (httpx.TransportError, _Failed, TimeoutError) as error:
            raise self.unavailable_error(error) from error
        except httpx.DecodingError as error:
            raise self.unexpected_response(error) from error
        if answer.is_success:
            return answer
        raise self._refusal(answer, params, headers or {})

    async def post(
        self,
        path: str,
        params: Params,
        body: bytes,
        *,
        headers: Mapping[str, str] | None = None,
        repeatable: bool = False,
    ) -> httpx.Response:
        """Send a change as POST: not started if cancelled before, not cancelled once started."""
        await anyio.lowlevel.checkpoint_if_cancelled()
        with anyio.CancelScope(shield=True):
            answer = await self.request(
                "POST", path, params, body, headers=headers, repeatable=repeatable
            )
        return answer  # noqa: RET504 (for all that mypy knows, a scope swallows)

    @asynccontextmanager
    async def stream(
        self, path: str, params: Params, headers: Mapping[str, str]
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open an endless response and yield its chunks.

        Raises:
            ConnectionError: The connection broke; it may be opened again.
            TapeError: The server refused.
        """
        self._see_open()
        self.counts["followed"] += 1
        try:
            async with self._client.stream(
                "GET", build_url(path, params), headers=headers, timeout=_SILENCE
            ) as answer:
                if not answer.is_success:
                    await answer.aread()
                    _see(answer)
                    raise self._refusal(answer, params, {})
                if not answer.headers.get("content-type", "").startswith(SSE_MEDIA_TYPE):
                    raise self.unexpected_response(ValueError("it is not a stream of events"))
                yield answer.aiter_bytes()
        except httpx.DecodingError as error:
            raise self.unexpected_response(error) from error
        except (httpx.TransportError, _Failed) as error:
            raise ConnectionError(str(error) or type(error).__name__) from error
        finally:
            self.counts["followed"] -= 1

    def unavailable_error(self, error: Exception) -> TapeUnavailable:
        """Return the error for a server that cannot be used."""
        told = str(error) or type(error).__name__
        return TapeUnavailable(
            _(
                "the tape server {url} cannot be used ({told}); check that it runs and can be "
                "reached from here",
                url=self.url,
                told=told,
            )
        )

    def unexpected_response(self, error: Exception) -> TapeUnavailable:
        """Return the error for a response that does not come from a tape server."""
        return TapeUnavailable(
            _(
                "{url} gave an answer that is not a tape server's ({error!r}); check the address, "
                "and the server's version",
                url=self.url,
                error=error,
            )
        )

    def _see_open(self) -> None:
        if self._closed:
            raise TapeError(_("the tape store is closed"))

    async def _see_size(self, size: int) -> None:
        """Check a body's size: a server might close the connection before its error arrives.

        Raises:
            TapeRefused: The body is too large.
        """
        if self._most is None or size > self._most:
            # Query again before refusing: the server's limit may have been raised.
            answer = await self.request("GET", "/v1/statistics", {})
            try:
                self._most = int(from_json(answer.content)["most_bytes"])
            except (KeyError, TypeError, ValueError) as error:
                raise self.unexpected_response(error) from error
        if size > self._most:
            raise TapeRefused(
                _(
                    "the tape server {url} takes {most} bytes at once, and this is {size}; write less at "
                    "once, or raise its TAPEBOT_TAPE_SERVER_MAX_MB",
                    url=self.url,
                    most=self._most,
                    size=size,
                )
            )

    def _again(self, repeatable: bool, error: Exception) -> bool | float:
        """Return whether a failed request is sent again, or after how many seconds."""
        if isinstance(error, _Failed):
            # The server may ask for an hour, in which a change could not be cancelled.
            wait = min(error.wait, self.patience)
            wanted: bool | float = (repeatable or not error.begun) and (wait or True)
        else:
            sent = not isinstance(error, _NOT_SENT)
            wanted = isinstance(error, httpx.TransportError) and (repeatable or not sent)
        self.counts["retries"] += bool(wanted)
        return wanted

    async def _once(self, request: httpx.Request) -> httpx.Response:
        async with self._slots:
            self._see_open()
            self.counts["requests"] += 1
            answer = await self._client.send(request)
        _see(answer)
        return answer

    def _refusal(
        self, answer: httpx.Response, params: Params, headers: Mapping[str, str]
    ) -> TapeError:
        told = _problem(answer)
        if answer.status_code == 401:
            return TapeRefused(
                _(
                    "the tape server {url} does not accept the token; set TAPEBOT_TAPE_STORE_TOKEN to "
                    "one from `tapebot tape-server token add`",
                    url=self.url,
                )
            )
        code, detail = told.get("error"), told.get("detail")
        if not isinstance(code, str) or not isinstance(detail, str):
            return self.unexpected_response(ValueError(f"status {answer.status_code}"))
        if code == CONFLICT and type(actual := told.get("version")) is int:
            expected = int(headers["If-Match"].strip('"')) if "If-Match" in headers else 0
            return VersionConflict(str(params.get("tape")), expected=expected, actual=actual)
        return tape_error(answer.status_code, code, detail)


async def _bounded(answer: httpx.Response) -> None:
    """Limit a response's size as it arrives; an event stream is endless, so limit each line."""
    endless = answer.headers.get("content-type", "").startswith(SSE_MEDIA_TYPE)
    await limit_response(
        answer, most=None if endless else _MOST, most_line=_MOST if endless else None
    )


def _direct(url: str) -> dict[str, httpx.AsyncBaseTransport | None]:
    """Return mounts that bypass the environment's proxy if the server is on this machine."""
    host = httpx.URL(url).host
    try:
        here = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        here = False
    named = f"[{host}]" if ":" in host else host
    return {f"all://{named}": None} if here else {}


def _see(answer: httpx.Response) -> None:
    """Check that a response is final.

    Raises:
        _Failed: It is not; a retry may succeed.
    """
    if answer.status_code in _FAILED:
        raise _Failed(answer)


def _problem(answer: httpx.Response) -> dict[str, Any]:
    """Return the body of an error response; empty if it is not a tape server's."""
    if answer.is_success:
        return {}
    try:
        body = from_json(answer.content)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
