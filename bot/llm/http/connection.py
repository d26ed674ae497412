"""Post JSON to a model server, and read its answer within bounds.

Rule 1: bytes are counted as they arrive; more than the limit is never held.
Rule 2: nothing compressed is accepted, since its size says nothing of its content's.
Rule 3: bytes that are no UTF-8 are replaced; text that is no JSON is an error of the server's.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import anyio

from bot.core.reasons import Reason
from bot.llm.bounds import MOST_BYTES, MOST_LINE
from bot.llm.http.answer import ServerError
from bot.llm.http.request_encoding import RequestEncoder

if TYPE_CHECKING:
    import aiohttp

_JSON = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
_LONGEST_ERROR = 100_000
_CONNECT_SECONDS = 20.0
_IDLE_SECONDS = 60.0
_REST_SECONDS = 0.2
"""How long the end of a stream may come behind its last event."""


class TooLarge(Exception):
    """A server sent more than is read; the text says of what."""


class Connection:
    """Connections to one model server, kept between calls; after seconds of silence a call fails."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._session: aiohttp.ClientSession | None = None
        self._proxies: dict[str, str | None] = {}
        self._encoder = RequestEncoder()

    @asynccontextmanager
    async def post(
        self, url: str, headers: Mapping[str, str], body: Any
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send JSON; yield the response before its content is read.

        Raises:
            ServerError: The server cannot be reached, breaks off, or answers with an error.
            TimeoutError: It is silent for too long.
            TooLarge: The error's page is too large, or the answer is compressed.
        """
        with _map_errors(url):
            async with self._opened().post(
                url,
                data=self._encoder.encode(body),
                headers={**headers, **_JSON},
                allow_redirects=False,
                proxy=self._proxy(url),
            ) as response:
                await _check(response)
                yield response

    async def aclose(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _opened(self) -> aiohttp.ClientSession:
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(
                    total=None,
                    sock_connect=min(_CONNECT_SECONDS, self._timeout),
                    sock_read=self._timeout,
                ),
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_SECONDS),
                auto_decompress=False,
            )
        return self._session

    def _proxy(self, url: str) -> str | None:
        """Return the proxy that the environment names for an address.

        The library would ask anew for each call, in a thread, and read passwords from ``.netrc``.
        """
        if url not in self._proxies:
            self._proxies[url] = _proxy_from_environment(url)
        return self._proxies[url]


def _proxy_from_environment(url: str) -> str | None:
    try:
        parts = urlsplit(url)
    except ValueError:
        # The call itself says what is wrong with the address.
        return None
    host = parts.hostname or ""
    near = host == "localhost" or host.startswith("127.") or host == "::1"
    return None if near or proxy_bypass(host) else getproxies().get(parts.scheme)


@contextmanager
def _map_errors(url: str) -> Iterator[None]:
    import aiohttp

    try:
        yield
    except aiohttp.ClientConnectorError as exc:
        why = exc.os_error.strerror or str(exc.os_error)
        raise ServerError(
            Reason("model_unreachable", address=f"{exc.host}:{exc.port}", error=why), None
        ) from exc
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, ConnectionError) as exc:
        raise ServerError(Reason("model_connection_broken"), None) from exc
    except aiohttp.InvalidURL as exc:
        raise ServerError(Reason("model_bad_address", address=url), 400) from exc
    except TimeoutError:
        raise
    except aiohttp.ClientError as exc:
        raise ServerError(Reason("model_server_unusable", error=type(exc).__name__), None) from exc


async def _check(response: aiohttp.ClientResponse) -> None:
    """Raise the error that a response's head reports."""
    packed = response.headers.get("Content-Encoding", "identity").strip().lower()
    if packed not in {"", "identity"}:
        raise TooLarge(Reason("model_answer_packed", packing=packed[:20]))
    if response.status >= 300:
        text = (await _read(response)).decode("utf-8", "replace")[:_LONGEST_ERROR]
        headers = {name.lower(): value for name, value in response.headers.items()}
        if response.status < 400:
            text = Reason("model_redirected", address=headers.get("location", "nowhere"))
        elif text.lstrip("\ufeff \r\n\t").startswith("<"):
            text = Reason("model_web_page")
        raise ServerError(text or f"status {response.status}", response.status, headers)


async def read_json(response: aiohttp.ClientResponse) -> Any:
    """Return the JSON of an answer.

    Raises:
        ValueError: It is no JSON.
        TooLarge: It is too large.
    """
    text = (await _read(response)).decode("utf-8-sig", "replace")
    try:
        return json.loads(text)
    except ValueError:
        check_page(response, text)
        raise


def check_page(response: aiohttp.ClientResponse, text: str = "") -> None:
    """Raise an error if what answered is no model's API: a web page, or a text.

    Raises:
        ServerError: It is.
    """
    if text.lstrip().startswith("<") or response.content_type in {"text/html", "text/plain"}:
        raise ServerError(Reason("model_web_page"), 404)


async def read_events(response: aiohttp.ClientResponse) -> AsyncGenerator[Any]:
    """Yield the JSON of each server-sent event until ``[DONE]``, which is yielded as None.

    A line of data is usually one event; lines that are no JSON by themselves are joined up to the
    next empty line, as the standard says.

    Raises:
        ValueError: An event is no JSON.
        TooLarge: A line or the answer is too large.
    """
    kept: list[str] = []
    async with aclosing(read_lines(response)) as lines:
        async for line in lines:
            if not line:
                if kept:
                    yield json.loads("\n".join(kept))
                    kept.clear()
                continue
            name, _, data = line.partition(":")
            if name != "data":
                continue
            data = data.removeprefix(" ")
            if data.lstrip().startswith(":"):
                continue  # a gateway's comment within a comment
            if data.strip() == "[DONE]":
                yield None
                await _read_rest(response)
                return
            if not kept:
                try:
                    yield json.loads(data)
                except ValueError:
                    kept.append(data)
            else:
                kept.append(data)
    if kept:
        yield json.loads("\n".join(kept))


async def _read_rest(response: aiohttp.ClientResponse) -> None:
    """Read on to the end of a stream whose events are complete, so that its connection is kept for the next call."""
    import aiohttp

    # The answer is complete: whatever happens now costs no more than the connection.
    with anyio.move_on_after(_REST_SECONDS), suppress(aiohttp.ClientError, OSError):
        async for _ in response.content.iter_any():
            pass


async def read_lines(response: aiohttp.ClientResponse) -> AsyncGenerator[str]:
    """Yield the lines of an answer without their ends.

    Raises:
        TooLarge: A line or the answer is too large.
    """
    rest = bytearray()
    total = 0
    async for chunk in response.content.iter_any():
        total += len(chunk)
        if total > MOST_BYTES:
            raise TooLarge(Reason("model_answer_too_long", limit=MOST_BYTES // 1_000_000))
        if b"\n" not in chunk:
            rest += chunk
        else:
            *lines, last = chunk.split(b"\n")
            lines[0] = bytes(rest) + lines[0]
            rest = bytearray(last)
            for line in lines:
                yield line.decode("utf-8", "replace").rstrip("\r").removeprefix("\ufeff")
        if len(rest) > MOST_LINE:
            raise TooLarge(Reason("model_line_too_long", limit=MOST_LINE // 1_000_000))
    if rest:
        yield rest.decode("utf-8", "replace").rstrip("\r")


async def _read(response: aiohttp.ClientResponse) -> bytes:
    read = bytearray()
    async for chunk in response.content.iter_any():
        read += chunk
        if len(read) > MOST_BYTES:
            raise TooLarge(Reason("model_answer_too_long", limit=MOST_BYTES // 1_000_000))
    return bytes(read)
