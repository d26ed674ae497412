"""Search engines: ddgs without a key, SearXNG, Brave, Tavily.

Each raises ``FetchFailed`` with a text that says what to do. httpx is loaded with the first search.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import anyio
import anyio.to_thread

from bot.agent.web import ddgs_program
from bot.core.errors import FetchFailed
from bot.core.i18n import N_, _

logger = logging.getLogger(__name__)

SEARCH_SECONDS = 25.0
"""The most seconds of one search."""

_MOST_BYTES = 2_000_000
_LONGEST_TEXT = 500
_LONGEST_ADDRESS = 2_000
_ANOTHER = N_("try later, or set another engine (TAPEBOT_WEB_SEARCH)")


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One result of a search.

    Attributes:
        title: The page's title, on one line.
        address: The page's address.
        text: An extract, on one line.
        date: When it was published, as the engine states it; empty if unknown.
    """

    title: str
    address: str
    text: str
    date: str = ""


class SearchEngine(Protocol):
    """Searches the web."""

    async def search(self, query: str, count: int) -> list[SearchHit]:
        """Return at most ``count`` hits, best first.

        Raises:
            FetchFailed: The engine refuses, or cannot be reached.
        """
        ...


class DdgsEngine:
    """Asks public search engines without a key, in a process of its own, one search at a time.

    Args:
        command: Runs ``ddgs_program``.
        seconds: The most seconds of a search.
    """

    def __init__(
        self, command: Sequence[str] | None = None, *, seconds: float = SEARCH_SECONDS
    ) -> None:
        self._command = list(command or (sys.executable, "-I", ddgs_program.__file__))
        self._seconds = seconds
        self._turn = anyio.Lock()

    async def search(self, query: str, count: int) -> list[SearchHit]:
        """Return the hits of the first engine that answers."""
        async with self._turn:
            found = await self._run(json.dumps({"query": query, "count": count}))
        if isinstance(error := found.get("error"), str):
            raise FetchFailed(_("{error}; {another}", error=error, another=_(_ANOTHER)))
        return _hits(found.get("hits"), count, ("title", "href", "body", "date"))

    async def _run(self, request: str) -> dict[str, Any]:
        command = [*self._command, str(os.getpid()), str(self._seconds)]
        done: subprocess.CompletedProcess[bytes] | None = None
        with anyio.move_on_after(self._seconds) as bound:
            try:
                done = await anyio.run_process(
                    command, input=request.encode(), stderr=subprocess.DEVNULL, check=False, env={}
                )
            except* (OSError, anyio.BrokenResourceError) as group:
                logger.warning("a process that searches failed: %s", group.exceptions[0])
        if bound.cancelled_caught:
            raise FetchFailed(
                _("no public search engine answered in time; {another}", another=_(_ANOTHER))
            )
        if done is None or done.returncode:
            raise FetchFailed(_("the search broke; {another}", another=_(_ANOTHER)))
        return _json_object(done.stdout)


@dataclass(frozen=True, slots=True)
class HttpEngine:
    """Asks one search engine's JSON interface.

    Attributes:
        name: The engine's name, for people.
        url: The interface's address.
        arguments: Returns the arguments of a search for so many hits.
        hits: Keys that lead to the list of hits.
        fields: Keys of a hit's title, address, text and date.
        headers: Headers with the key.
        post: Whether the arguments are sent as JSON instead of in the address.
        refused: What to do if the engine refuses the request.
    """

    name: str
    url: str
    arguments: Callable[[str, int], dict[str, str | int]]
    hits: tuple[str, ...]
    fields: tuple[str, str, str, str]
    headers: dict[str, str]
    post: bool = False
    refused: str = N_("check TAPEBOT_WEB_SEARCH_KEY")

    async def search(self, query: str, count: int) -> list[SearchHit]:
        """Return the engine's hits."""
        found: Any = await self._ask(self.arguments(query, count))
        for key in self.hits:
            found = found.get(key) if isinstance(found, dict) else None
        return _hits(found, count, self.fields)

    async def _ask(self, arguments: dict[str, str | int]) -> dict[str, Any]:
        # In a thread: the first import takes a while.
        await anyio.to_thread.run_sync(import_module, "httpx")
        import httpx

        from bot.core.response_limits import limit_response

        headers = {"Accept": "application/json", "Accept-Encoding": "identity", **self.headers}
        try:
            with anyio.fail_after(SEARCH_SECONDS):
                async with httpx.AsyncClient(timeout=10.0, headers=headers) as client:
                    request = (
                        client.build_request("POST", self.url, json=arguments)
                        if self.post
                        else client.build_request("GET", self.url, params=arguments)
                    )
                    response = await client.send(request, stream=True)
                    try:
                        self._check(response.status_code)
                        await limit_response(response, most=_MOST_BYTES)
                        return _json_object(await response.aread())
                    finally:
                        await response.aclose()
        except (httpx.TimeoutException, TimeoutError) as error:
            raise FetchFailed(_("{name} did not answer in time", name=self.name)) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise FetchFailed(
                _("{name} cannot be reached, or its answer is broken", name=self.name)
            ) from error

    def _check(self, status: int) -> None:
        if status == 200:
            return
        if status in (401, 403, 422):
            raise FetchFailed(
                _(
                    "{name} refuses the search ({status}): {refused}",
                    name=self.name,
                    status=status,
                    refused=_(self.refused),
                )
            )
        if status == 429:
            raise FetchFailed(
                _(
                    "{name} allows no more searches now; {another}",
                    name=self.name,
                    another=_(_ANOTHER),
                )
            )
        raise FetchFailed(
            _(
                "{name} answered with the status {status}; {another}",
                name=self.name,
                status=status,
                another=_(_ANOTHER),
            )
        )


def searxng(url: str) -> HttpEngine:
    """Return the engine of a SearXNG server."""
    return HttpEngine(
        "SearXNG",
        f"{url.rstrip('/')}/search",
        lambda query, _: {"q": query, "format": "json"},
        ("results",),
        ("title", "url", "content", "publishedDate"),
        {},
        refused=N_("allow the format json in its settings (search.formats)"),
    )


def brave(key: str, url: str | None = None) -> HttpEngine:
    """Return Brave's engine; ``url`` replaces its address."""
    return HttpEngine(
        "Brave",
        url or "https://api.search.brave.com/res/v1/web/search",
        lambda query, count: {"q": query[:400], "count": count, "text_decorations": "false"},
        ("web", "results"),
        ("title", "url", "description", "page_age"),
        {"X-Subscription-Token": key},
    )


def tavily(key: str, url: str | None = None) -> HttpEngine:
    """Return Tavily's engine; ``url`` replaces its address."""
    return HttpEngine(
        "Tavily",
        url or "https://api.tavily.com/search",
        lambda query, count: {"query": query[:400], "max_results": count},
        ("results",),
        ("title", "url", "content", "published_date"),
        {"Authorization": f"Bearer {key}"},
        post=True,
    )


def _json_object(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FetchFailed(_("the search engine's answer is no JSON")) from error
    return found if isinstance(found, dict) else {}


def _hits(found: Any, count: int, fields: tuple[str, str, str, str]) -> list[SearchHit]:
    """Return the hits in an answer; malformed ones are skipped."""
    hits = []
    for one in found if isinstance(found, list) else []:
        if not isinstance(one, dict):
            continue
        title, address, text, date = (
            " ".join(value.split()) if isinstance(value := one.get(field), str) else ""
            for field in fields
        )
        usable = address.startswith(("http://", "https://")) and " " not in address
        if usable and len(address) <= _LONGEST_ADDRESS:
            short = text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"
            hits.append(SearchHit(title[:200], address, short, date[:40]))
    return hits[:count]
