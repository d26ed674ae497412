"""Store tapes on a tape server (``tapebot tape-server``) over HTTP."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import httpx

from bot.core.errors import TapeRefused
from bot.core.ids import new_id
from bot.tape.entries import TapeEntry
from bot.tape.http_protocol import (
    IDEMPOTENCY_KEY_HEADER,
    MAX_JSON_INTEGER,
    MAX_PAGE_SIZE,
    NDJSON_MEDIA_TYPE,
    NEXT_PAGE_HEADER,
    SseParser,
    anchor_from,
    encode_new_entries,
    encode_tombstones,
    from_json,
    hit_from,
    parse_entries,
    query_record,
    segment_from,
    to_json,
)
from bot.tape.search import Hit, SearchQuery
from bot.tape.store import Anchor, Segment, TapeStore, named_anchor_entry
from bot.tape.stores.changes import check_version
from bot.tape.stores.http_client import Params, TapeServerClient

logger = logging.getLogger(__name__)

_FIRST_PAGE = 32
_PAUSE = 1.0
"""Seconds before a broken stream is opened again."""

_T = TypeVar("_T")


class RemoteTapeStore(TapeStore):
    """Read and write the tapes of a tape server.

    Failed requests are retried for a while; a retried append is applied once. If the connection
    breaks during an archive, reset or fork, its outcome is unknown: it raises ``TapeUnavailable``
    and is not retried.

    Args:
        url: The server's address, such as ``https://tapes.example.org``.
        token: The access token.
        patience: Seconds after which a failing request is not retried.
    """

    def __init__(self, url: str, token: str, *, patience: float = 30.0) -> None:
        self._server = TapeServerClient(url, token, patience=patience)
        self._used: set[str] = set()
        self._erasures: Counter[str] = Counter()

    async def create_tape(
        self, tape: str, title: str | None = None, *, replace_if_exists: bool = False
    ) -> str:
        """Create the tape with its header if it does not exist; return its name."""
        body = to_json({"title": title, "replace": replace_if_exists})
        await self._change("", tape, body, repeatable=not replace_if_exists)
        self._erasures[tape] += replace_if_exists
        return tape

    async def get_title(self, tape: str) -> str | None:
        """Return the title."""
        return self._json(await self._get("/title", tape), _title_from)

    async def list_tapes(self) -> list[str]:
        """Return the names of the tapes that the token may access."""
        found: list[str] = []
        params: Params = {}
        while True:
            answer = await self._server.request("GET", "/v1/tapes", params)
            names, following = self._json(answer, lambda body: (list(body["tapes"]), body["next"]))
            found += names
            if following is None:
                return found
            params = {"after": following}

    async def version(self, tape: str) -> int:
        """Return the id of the last entry."""
        return self._json(await self._get("/version", tape), lambda body: int(body["version"]))

    async def read(
        self, tape: str, from_entry_id: int | None = None, to_entry_id: int | None = None
    ) -> list[TapeEntry]:
        """Return the entries of an id range, segments included."""
        first: int | None = _bounded(from_entry_id or 1)
        last = None if to_entry_id is None else _bounded(to_entry_id)
        entries: list[TapeEntry] = []
        while first is not None:
            params: Params = {"first": first, "limit": MAX_PAGE_SIZE}
            if last is not None:
                params["last"] = last
            answer = await self._get("/entries", tape, params)
            entries += self._lines(answer)
            first = _number(answer, NEXT_PAGE_HEADER)
            # Entries appended meanwhile are left out: the first page names the tape's version.
            last = _number(answer, "ETag") if last is None else last
        return entries

    async def read_back(
        self, tape: str, before: int | None = None
    ) -> AsyncGenerator[TapeEntry, None]:
        """Yield entries newest first."""
        limit = _FIRST_PAGE
        following = None if before is None else _bounded(before)
        while True:
            params: Params = {"limit": limit}
            if following is not None:
                params["before"] = following
            answer = await self._get("/entries/back", tape, params)
            for entry in self._lines(answer):
                yield entry
            following, limit = _number(answer, NEXT_PAGE_HEADER), min(limit * 2, MAX_PAGE_SIZE)
            if following is None:
                return

    async def append_many(
        self, tape: str, entries: Sequence[TapeEntry], *, expect: int | None = None
    ) -> list[TapeEntry]:
        """Append entries in one atomic write."""
        if not entries:
            check_version(tape, expect, await self.version(tape))
            return []
        headers = {
            IDEMPOTENCY_KEY_HEADER: new_id("append"),
            "Content-Type": NDJSON_MEDIA_TYPE,
            **_if_match(expect),
        }
        body = encode_new_entries(entries)
        return self._lines(
            await self._change("/entries", tape, body, headers=headers, repeatable=True)
        )

    async def archive(
        self, tape: str, carry: Sequence[TapeEntry] = (), *, expect: int | None = None
    ) -> Segment:
        """Seal the live part into a segment."""
        headers = {"Content-Type": NDJSON_MEDIA_TYPE, **_if_match(expect)}
        answer = await self._change("/archive", tape, encode_new_entries(carry), headers=headers)
        return self._json(answer, segment_from)

    async def reset(
        self, tape: str, carry: Sequence[TapeEntry] = (), *, expect: int | None = None
    ) -> None:
        """Drop all entries."""
        headers = {"Content-Type": NDJSON_MEDIA_TYPE, **_if_match(expect)}
        try:
            await self._change("/reset", tape, encode_new_entries(carry), headers=headers)
        finally:
            # If the response was lost, it may have been done.
            self._erasures[tape] += 1

    async def erase(self, tape: str, tombstones: Sequence[TapeEntry]) -> int:
        """Replace entries by tombstones; a retry completes and counts what is left."""
        body = await anyio.to_thread.run_sync(encode_tombstones, tombstones)
        headers = {"Content-Type": NDJSON_MEDIA_TYPE}
        try:
            answer = await self._change("/erase", tape, body, headers=headers, repeatable=True)
        finally:
            # If the response was lost, it may have been done.
            self._erasures[tape] += 1
        return self._json(answer, lambda found: int(found["erased"]))

    async def erasures(self, tape: str) -> int:
        """Return the number of erasures since the start: only one bot uses a server's tapes."""
        return self._erasures[tape]

    async def segments(self, tape: str) -> list[Segment]:
        """Return the sealed segments, oldest first."""
        answer = await self._get("/segments", tape)
        return self._json(answer, lambda body: [segment_from(one) for one in body["segments"]])

    async def fork(
        self,
        from_tape: str,
        new_tape: str,
        *,
        from_entry: int | None = None,
        from_anchor: str | None = None,
        to_entry: int | None = None,
        title: str | None = None,
    ) -> str:
        """Create a tape with a copy of another tape's entries from a point on."""
        asked = {
            "new_tape": new_tape,
            "from_entry": None if from_entry is None else _bounded(from_entry),
            "from_anchor": from_anchor,
            "title": title,
        }
        if to_entry is not None:
            # An older server knows no such field, and refuses it rather than copy too much.
            asked["to_entry"] = _bounded(to_entry)
        await self._change("/fork", from_tape, to_json(asked))
        return new_tape

    async def create_anchor(
        self,
        tape: str,
        name: str,
        entry_id: int | None = None,
        state: dict[str, Any] | None = None,
    ) -> Anchor:
        """Append an anchor, once, that names an entry, by default the newest."""
        target = None if entry_id is None else _bounded(entry_id)
        # A state that is not plain JSON would arrive changed.
        encode_new_entries([named_anchor_entry(name, target or 1, state)])
        body = to_json({"name": name, "entry_id": target, "state": state})
        headers = {IDEMPOTENCY_KEY_HEADER: new_id("anchor")}
        answer = await self._change("/anchors", tape, body, headers=headers, repeatable=True)
        return self._json(answer, anchor_from)

    async def get_anchor(self, tape: str, name: str) -> Anchor:
        """Return the last anchor of this name."""
        answer = await self._get("/anchors/last", tape, {"name": name})
        return self._json(answer, anchor_from)

    async def list_anchors(self, tape: str) -> list[Anchor]:
        """Return all anchors of a tape, oldest first."""
        anchors: list[Anchor] = []
        params: Params = {"limit": MAX_PAGE_SIZE}
        while True:
            page, following = self._json(await self._get("/anchors", tape, params), _anchors_from)
            anchors += page
            if following is None:
                return anchors
            params["after"] = following

    async def resolve_anchor(self, tape: str, name: str) -> int:
        """Return the id of the entry that the last anchor of this name points at."""
        answer = await self._get("/anchors/target", tape, {"name": name})
        return self._json(answer, lambda body: int(body["entry_id"]))

    async def search(self, query: SearchQuery) -> list[Hit]:
        """Return the best matches, best first, on the tapes that the token may access."""
        query.validate()
        first, last = (None if i is None else _bounded(i) for i in (query.first, query.last))
        query = replace(query, first=first, last=last)
        try:
            answer = await self._ask(query)
        except TapeRefused:
            if not (query.is_comparable or query.without_assistant):
                raise
            # A server of an earlier version does not know these, and finds more without them.
            plain = replace(query, at_hand=False, quick=False, without_assistant=False)
            answer = await self._ask(plain)
        return self._json(answer, lambda found: [hit_from(one) for one in found["hits"]])

    async def _ask(self, query: SearchQuery) -> Any:
        body = to_json(query_record(query))
        return await self._server.request("POST", "/v1/search", {}, body)

    async def follow(self, tape: str, after: int | None = None) -> AsyncGenerator[TapeEntry, None]:
        """Yield new entries; a broken stream is resumed where it broke."""
        last = await self._newest(tape) if after is None else _bounded(after)
        failing_since: float | None = None
        while True:
            opened = self._server.stream(
                "/v1/tapes/follow", {"tape": tape}, {"Last-Event-ID": str(last)}
            )
            try:
                async with opened as parts:
                    failing_since = None
                    async for entry in self._streamed(parts):
                        last = entry.id
                        yield entry
            except ConnectionError as error:
                now = anyio.current_time()
                failing_since = now if failing_since is None else failing_since
                if now - failing_since > self._server.patience:
                    raise self._server.unavailable_error(error) from error
                logger.info("a stream of entries broke and is being reopened: %s", error)
            await anyio.sleep(_PAUSE)

    async def run(self) -> None:
        """Wait until cancelled: the server does all background work."""
        await anyio.sleep_forever()

    def statistics(self) -> dict[str, Any]:
        """Return counts of tapes changed, requests, retries, and streams open now."""
        return {"open_tapes": len(self._used), **self._server.counts}

    async def close(self) -> None:
        """Close the connections."""
        await self._server.close()

    async def _get(self, path: str, tape: str, params: Params | None = None) -> httpx.Response:
        asked: Params = {"tape": tape, **(params or {})}
        return await self._server.request("GET", f"/v1/tapes{path}", asked)

    async def _newest(self, tape: str) -> int:
        """Return the id of the newest readable entry; the version may be ahead of the disk."""
        return _number(await self._get("/entries/back", tape, {"limit": 1}), "ETag") or 0

    async def _change(
        self,
        path: str,
        tape: str,
        body: bytes,
        *,
        headers: dict[str, str] | None = None,
        repeatable: bool = False,
    ) -> httpx.Response:
        params: Params = {"tape": tape}
        answer = await self._server.post(
            f"/v1/tapes{path}", params, body, headers=headers, repeatable=repeatable
        )
        self._used.add(tape)
        return answer

    async def _streamed(self, parts: AsyncIterator[bytes]) -> AsyncGenerator[TapeEntry, None]:
        reader = SseParser()
        async for part in parts:
            try:
                entries = list(reader.feed(part))
            except ValueError as error:
                raise self._server.unexpected_response(error) from error
            for entry in entries:
                yield entry

    def _json(self, answer: httpx.Response, take: Callable[[Any], _T]) -> _T:
        try:
            return take(from_json(answer.content))
        except (KeyError, TypeError, ValueError) as error:
            raise self._server.unexpected_response(error) from error

    def _lines(self, answer: httpx.Response) -> list[TapeEntry]:
        try:
            return parse_entries(answer.content)
        except ValueError as error:
            raise self._server.unexpected_response(error) from error


def _number(answer: httpx.Response, header: str) -> int | None:
    told = answer.headers.get(header, "").strip('"')
    return int(told) if told.isdecimal() and len(told) <= len(str(MAX_JSON_INTEGER)) else None


def _title_from(body: Any) -> str | None:
    title = body["title"]
    return title if isinstance(title, str) else None


def _anchors_from(body: Any) -> tuple[list[Anchor], int | None]:
    following = body["next"]
    anchors = [anchor_from(one) for one in body["anchors"]]
    return anchors, None if following is None else int(following)


def _if_match(version: int | None) -> dict[str, str]:
    return {} if version is None else {"If-Match": f'"{version}"'}


def _bounded(number: int) -> int:
    return max(0, min(number, MAX_JSON_INTEGER))
