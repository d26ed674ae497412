"""What the routes promise to any client: conflicts, keys, pages, followers, and bodies taken exactly or refused whole."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import product

import anyio
import pytest
from tape_server_rig import TAPE, entry_line, put

from bot.tape.entries import message
from bot.tape.http_protocol import NDJSON_MEDIA_TYPE


async def lines(client, path, **params):
    answer = await client.get(path, params={"tape": TAPE, **params})
    assert answer.status_code == 200
    return [json.loads(line) for line in answer.content.splitlines()], answer.headers


async def test_an_append_for_another_version_is_a_conflict_that_names_the_version(client):
    answer = await put(client, entry_line("a") * 2, **{"If-Match": '"1"'})
    assert (answer.status_code, answer.headers["etag"]) == (200, '"3"')
    assert [json.loads(line)["id"] for line in answer.content.splitlines()] == [2, 3]
    late = await put(client, entry_line("late"), **{"If-Match": '"1"'})
    assert (late.status_code, late.headers["etag"]) == (409, '"3"')
    body = late.json()
    assert (body["error"], body["version"]) == ("conflict", 3)
    assert len((await lines(client, "/v1/tapes/entries"))[0]) == 3


async def test_appends_asked_at_once_with_one_key_are_one(client):
    answers = []

    async def ask():
        answers.append((await put(client, entry_line("a"), **{"Idempotency-Key": "k"})).content)

    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(ask)
    assert len(set(answers)) == 1
    assert len((await lines(client, "/v1/tapes/entries"))[0]) == 2


async def test_a_key_used_for_other_entries_is_refused(client):
    await put(client, entry_line("a"), **{"Idempotency-Key": "k"})
    for other in (entry_line("b"), entry_line("a") * 2):
        answer = await put(client, other, **{"Idempotency-Key": "k"})
        assert (answer.status_code, answer.json()["error"]) == (422, "key_reused")
    assert len((await lines(client, "/v1/tapes/entries"))[0]) == 2


@pytest.mark.slow
async def test_pages_of_entries_join_to_the_whole(rig, client):
    await rig.store.append_many(TAPE, [message("user", str(n)) for n in range(30)])
    await rig.store.archive(TAPE)
    await rig.store.append_many(TAPE, [message("user", "gone")] * 200)
    await rig.store.reset(TAPE)
    await rig.store.append_many(TAPE, [message("user", "big" * 300_000)] * 3)
    wanted = [entry.id for entry in await rig.store.read(TAPE)]
    for path, cursor, expected in (
        ("/v1/tapes/entries", "first", wanted),
        ("/v1/tapes/entries/back", "before", wanted[::-1]),
    ):
        for limit in (1, 7, 1000):
            found: list[int] = []
            params = {"limit": limit}
            while True:
                page, headers = await lines(client, path, **params)
                assert len(page) <= limit
                found += [entry["id"] for entry in page]
                if "tape-next" not in headers:
                    break
                params[cursor] = int(headers["tape-next"])
            assert found == expected
    assert len((await lines(client, "/v1/tapes/entries", first=wanted[-3]))[0]) == 2, "bytes, too"


# Bodies.

NO_ENTRY = [
    b"",
    b"no json",
    b"{}",
    b'{"kind":"gossip","payload":{}}',
    b'{"kind":"event","payload":[]}',
    b'{"kind":"event","payload":{},"more":3}',
    b'{"kind":"event","payload":{"n":NaN}}',
    b'{"kind":"event","payload":' + b'{"a":' * 300 + b"1" + b"}" * 301,
    b'{"kind":"event","payload":{"a":' + b"[" * 40_000 + b"]" * 40_000 + b"}}",
    b'{"kind":"event","payload":{"n":' + b"9" * 5_000 + b"}}",
    b'{"kind":"event","payload":{"t":"\xff"}}',
    entry_line("good") + b"{}",
    '{"kind":"event","payload":{}}'.encode("utf-16"),
]


async def test_what_is_no_entry_is_refused_whole(client):
    for body, path in product(NO_ENTRY, ("entries", "archive", "reset")):
        if path != "entries" and not body.strip():
            continue
        answer = await client.post(
            f"/v1/tapes/{path}",
            params={"tape": TAPE},
            content=body,
            headers={"Content-Type": NDJSON_MEDIA_TYPE},
        )
        case = f"{path}: {body[:60]!r}"
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_entry"), case
    version = await client.get("/v1/tapes/version", params={"tape": TAPE})
    assert version.json()["version"] == 1


async def test_a_body_beyond_the_bound_is_refused_and_not_read_on(rig, client):
    answer = await put(client, entry_line("x" * 100_000))
    assert (answer.status_code, answer.json()["error"]) == (413, "too_large")
    assert answer.headers["connection"] == "close"

    head = f"Authorization: {client.headers['authorization']}\r\nTransfer-Encoding: chunked"
    chunk = b"2710\r\n" + b"x" * 10_000 + b"\r\n"
    heard = await spoken(rig, head, chunk * 11)
    assert heard.startswith(b"HTTP/1.1 413")
    assert await rig.store.version(TAPE) == 1
    answer = await put(client, entry_line("x" * 90_000))
    assert answer.status_code == 200


async def test_a_request_that_is_broken_off_changes_nothing(rig, client):
    head = f"Authorization: {client.headers['authorization']}\r\nContent-Length: 1000"
    assert await spoken(rig, head, entry_line("half"), hang_up=True) == b""
    assert await rig.store.version(TAPE) == 1


async def spoken(rig, head: str, body: bytes, *, hang_up: bool = False) -> bytes:
    """Send an append by hand, and return what is heard until the server ends the connection."""
    host, _, port = rig.url.removeprefix("http://").partition(":")
    start = f"POST /v1/tapes/entries?tape={TAPE} HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n"
    heard = b""
    async with await anyio.connect_tcp(host, int(port)) as stream:
        await stream.send(start.encode() + body)
        if hang_up:
            await stream.send_eof()
        # What the server leaves unread cuts the connection behind its answer.
        with anyio.fail_after(20), suppress(anyio.BrokenResourceError):
            async for part in stream:
                heard += part
    return heard
