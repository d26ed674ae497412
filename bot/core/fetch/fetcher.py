"""Fetch one file from the internet, within limits of address, time and size.

Rule 1: each name is resolved once, and the connection goes to exactly the address that was checked;
    the server still sees the name, in TLS too. Each redirect is checked like the first address.
Rule 2: no cookies, credentials, proxies or kept connections: a request carries its address alone.
Rule 3: whatever the server does, a fetch ends within ``FetchLimits``.

It imports httpx, so it is loaded only when something is fetched.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass
from ipaddress import ip_address

import anyio
import httpx

from bot.core.errors import FetchFailed
from bot.core.fetch.fetched_file import FetchedFile
from bot.core.fetch.public_addresses import (
    IPAddress,
    Resolver,
    resolve_public,
    system_resolver,
)
from bot.core.patterns import LazyPattern

_HEADERS = {"User-Agent": "tapebot", "Accept-Encoding": "gzip"}
_AT_ONCE = 4
_DEFAULT_PORTS = {"http": 80, "https": 443}
_LONGEST_ADDRESS = 2_000
_NOT_IN_HOSTS = LazyPattern(r"[^\w.:-]")
"""What no host has, as it is looked up."""
_PIECE = 65_536


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Limits of one fetch.

    Attributes:
        seconds: The most seconds for all of it, redirects included.
        idle_seconds: The most seconds to connect, and between two pieces of the answer.
        bytes: The most bytes of the body, as sent and unpacked.
        redirects: The most redirects to follow.
    """

    seconds: float = 30.0
    idle_seconds: float = 10.0
    bytes: int = 5_000_000
    redirects: int = 5


class Fetcher:
    """Fetches files from public addresses. To make one takes a while: it reads certificates.

    Args:
        ports: The ports that may be reached.
        limits: The limits of a fetch.
        resolve: Resolves names.
        local: Addresses with ports that are reached although they are not public. For tests; no
            setting leads here.
    """

    def __init__(
        self,
        *,
        ports: Collection[int] = (80, 443),
        limits: FetchLimits | None = None,
        resolve: Resolver = system_resolver,
        local: Collection[tuple[str, int]] = (),
    ) -> None:
        self._ports = frozenset(ports)
        self._limits = limits or FetchLimits()
        self._resolve = resolve
        self._local = frozenset((ip_address(address), port) for address, port in local)
        self._capacity = anyio.CapacityLimiter(_AT_ONCE)
        self._tls = httpx.create_ssl_context()

    async def fetch(self, url: str, accepts: Callable[[str], bool]) -> FetchedFile:
        """Fetch a file.

        Raises:
            FetchFailed: It cannot be had, or must not be reached; the text says why.
        """
        limits = self._limits
        try:
            async with self._capacity:
                with anyio.fail_after(limits.seconds):
                    return await self._follow(parse_url(url), accepts)
        except TimeoutError as error:
            raise FetchFailed(f"it took longer than {limits.seconds:g} seconds") from error

    async def _follow(self, url: httpx.URL, accepts: Callable[[str], bool]) -> FetchedFile:
        for _ in range(self._limits.redirects + 1):
            found = await self._get(url, accepts)
            if isinstance(found, FetchedFile):
                return found
            url = found
        raise FetchFailed(f"it redirects more than {self._limits.redirects} times")

    async def _get(self, url: httpx.URL, accepts: Callable[[str], bool]) -> FetchedFile | httpx.URL:
        """Send one request; return the file, or the address that it redirects to."""
        port = url.port or _DEFAULT_PORTS[url.scheme]
        local = {address for address, allowed in self._local if allowed == port}
        addresses = await resolve_public(_host(url), self._resolve, local.__contains__)
        if port not in self._ports and not local.issuperset(addresses):
            raise FetchFailed(f"port {port} is not allowed (TAPEBOT_WEB_FETCH_PORTS)")
        # One connection for one request: a kept one would be reused for other names.
        idle = httpx.Timeout(self._limits.idle_seconds)
        async with httpx.AsyncHTTPTransport(verify=self._tls, trust_env=False) as transport:
            response = await _first_that_connects(transport, url, addresses, idle)
            try:
                return await self._answer(url, response, accepts)
            except httpx.TransportError as error:
                raise FetchFailed(_failure(error)) from error
            finally:
                with anyio.CancelScope(shield=True):
                    await response.aclose()

    async def _answer(
        self, url: httpx.URL, response: httpx.Response, accepts: Callable[[str], bool]
    ) -> FetchedFile | httpx.URL:
        if response.has_redirect_location:
            return parse_url(response.headers["Location"], url)
        if not response.is_success:
            phrase = f" {response.reason_phrase[:60]}" if response.reason_phrase.strip() else ""
            raise FetchFailed(f"the server answered {response.status_code}{phrase}")
        content_type = response.headers.get("Content-Type", "")[:200]
        kind = content_type.partition(";")[0].strip().lower()
        if not accepts(kind):
            raise FetchFailed(f"files of the type {kind[:80]!r} are not read")
        body = _unpacked(response, self._limits.bytes)
        data = b"".join([piece async for piece in body])
        return FetchedFile(str(url.copy_with(fragment=None)), content_type, data)


def parse_url(text: str, base: httpx.URL | None = None) -> httpx.URL:
    """Return the address in a text; with ``base``, it may be relative.

    Raises:
        FetchFailed: It is no http or https address, or holds credentials.
    """
    try:
        url = httpx.URL(text.strip()) if base is None else base.join(text)
    except (httpx.InvalidURL, ValueError) as error:
        raise FetchFailed("it is no valid address") from error
    if _NOT_IN_HOSTS.search(_host(url)):
        raise FetchFailed("it is no valid address")
    if url.scheme not in _DEFAULT_PORTS or not url.host:
        raise FetchFailed("only http:// and https:// addresses are fetched")
    if url.userinfo:
        raise FetchFailed("an address with a user name or password in it is not fetched")
    if len(str(url)) > _LONGEST_ADDRESS:
        raise FetchFailed(f"an address of more than {_LONGEST_ADDRESS:,} characters is not fetched")
    return url


def _host(url: httpx.URL) -> str:
    """Return the host as it is looked up: names of other scripts in Punycode."""
    return url.raw_host.decode("ascii")


async def _first_that_connects(
    transport: httpx.AsyncHTTPTransport,
    url: httpx.URL,
    addresses: Collection[IPAddress],
    idle: httpx.Timeout,
) -> httpx.Response:
    """Send the request to the first of the checked addresses that accepts a connection.

    Raises:
        FetchFailed: None does, or the server's answer is broken.
    """
    failure = ""
    for address in addresses:
        # The name stays in the Host header and, for TLS, in the server name.
        request = httpx.Request("GET", url, headers=_HEADERS)
        request.url = url.copy_with(host=str(address))
        request.extensions = {"timeout": idle.as_dict(), "sni_hostname": _host(url)}
        try:
            return await transport.handle_async_request(request)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            failure = failure or _failure(error)
        except httpx.TransportError as error:
            raise FetchFailed(_failure(error)) from error
    raise FetchFailed(failure)


async def _unpacked(response: httpx.Response, most: int) -> AsyncIterator[bytes]:
    """Yield the body of a response, unpacked; never more than ``most`` bytes.

    Raises:
        FetchFailed: It is larger, or packed in another way than asked for.
    """
    packing = response.headers.get("Content-Encoding", "identity").strip().lower()
    if packing not in ("", "identity", "gzip", "x-gzip"):
        raise FetchFailed(f"the server packed it as {packing[:20]!r}, which was not asked for")
    unpack = zlib.decompressobj(31) if "gzip" in packing else None
    received = total = 0
    async for chunk in response.aiter_raw():
        received += len(chunk)
        if received > most:
            raise FetchFailed(_too_large(most))
        if unpack is None:
            yield chunk
            continue
        rest = chunk
        while rest and not unpack.eof:
            try:
                # In small pieces: a few bytes may unpack to gigabytes.
                piece = unpack.decompress(rest, _PIECE)
            except zlib.error as error:
                raise FetchFailed("the server's compressed answer is damaged") from error
            rest = unpack.unconsumed_tail
            total += len(piece)
            if total > most:
                raise FetchFailed(_too_large(most))
            yield piece
    if unpack is not None and received and not unpack.eof:
        raise FetchFailed("the server ended its compressed answer too early")


def _too_large(most: int) -> str:
    return f"it is larger than {most / 1_000_000:g} MB"


def _failure(error: httpx.TransportError) -> str:
    if isinstance(error, httpx.ConnectTimeout | httpx.PoolTimeout):
        return "the server does not answer"
    if isinstance(error, httpx.TimeoutException):
        return "the server stopped sending"
    if isinstance(error, httpx.ConnectError):
        return f"no connection to the server: {str(error)[:200] or 'it refuses'}"
    return f"the server's answer is broken: {str(error)[:200]}"
