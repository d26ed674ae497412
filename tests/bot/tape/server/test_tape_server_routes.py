"""What the routes promise to any client: conflicts, keys, pages, followers, and bodies taken exactly or refused whole."""

from __future__ import annotations

import json
from contextlib import suppress

import anyio
import pytest
from tape_server_rig import TAPE, put, said

from bot.tape.entries import event, message
from bot.tape.server.keyed_appends import LOOK_BACK, KeyedAppends


async def read(client, **asked):
    answer = await client.get("/v1/tapes/entries", params={"tape": TAPE, **asked})
    assert answer.status_code == 200
    return answer.json()


async def test_an_append_for_another_version_is_a_conflict_that_names_the_version(client):
    answer = await put(client, "a", "a", expect=1)
    assert answer.status_code == 200
    assert [entry["id"] for entry in answer.json()] == [2, 3]
    late = await put(client, "late", expect=1)
    assert late.status_code == 409
    body = late.json()
    assert (body["error"], body["version"]) == ("conflict", 3)
    assert len((await read(client))["entries"]) == 3


async def test_appends_asked_at_once_with_one_key_are_one(client):
    answers = []

    async def ask():
        answers.append((await put(client, "a", key="k")).content)

    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(ask)
    assert len(set(answers)) == 1
    assert len((await read(client))["entries"]) == 2


async def test_a_key_used_for_other_entries_is_refused(client):
    await put(client, "a", key="k")
    for other in (["b"], ["a", "a"]):
        answer = await put(client, *other, key="k")
        assert (answer.status_code, answer.json()["error"]) == (422, "key_reused")
    assert len((await read(client))["entries"]) == 2


async def test_a_long_append_is_known_by_its_key_after_a_restart(rig, client):
    entries = [event("e", {"n": n}) for n in range(LOOK_BACK + 500)]
    written = await KeyedAppends(rig.store).append(TAPE, entries, "k", None)
    again = await KeyedAppends(rig.store).append(TAPE, entries, "k", None)
    assert again == written
    assert await rig.store.version(TAPE) == 1 + len(entries)


async def test_an_append_that_is_refused_costs_the_next_no_look_back(rig, client, monkeypatch):
    await put(client, "a", key="k")
    monkeypatch.setattr(rig.store, "read_back", None)
    assert (await put(client, "late", expect=1, key="l")).status_code == 409
    assert (await put(client, "b", expect=2, key="m")).status_code == 200


async def test_the_head_of_a_stream_alone_is_refused(client):
    with anyio.fail_after(10):
        for _ in range(2):
            answer = await client.head("/v1/tapes/follow", params={"tape": TAPE})
            assert answer.status_code == 405


async def test_a_name_too_long_for_an_address_is_refused(rig, client):
    for asked in ({"tape": "x" * 5_000}, {"tape": TAPE, "name": "x" * 5_000}):
        path = "/v1/tapes/anchors" if "name" in asked else "/v1/tapes"
        answer = await client.post(path, json=asked)
        assert (answer.status_code, answer.json()["error"]) == (422, "invalid_request")
        assert len(answer.content) < 200
    longest = "🍳" * 4_096
    assert (await client.post("/v1/tapes", json={"tape": longest})).status_code == 200
    answer = await client.get("/v1/tapes/version", params={"tape": longest})
    assert answer.json() == 1


@pytest.mark.slow
async def test_pages_of_entries_join_to_the_whole(rig, client):
    await rig.store.append_many(TAPE, [message("user", str(n)) for n in range(30)])
    await rig.store.archive(TAPE)
    await rig.store.append_many(TAPE, [message("user", "gone")] * 200)
    await rig.store.reset(TAPE)
    await rig.store.append_many(TAPE, [message("user", "big" * 300_000)] * 3)
    wanted = [entry.id for entry in await rig.store.read(TAPE)]
    for back, cursor, expected in (
        ({}, "from_entry_id", wanted),
        ({"newest_first": "true"}, "to_entry_id", wanted[::-1]),
    ):
        for limit in (1, 7, 1000):
            found: list[int] = []
            asked = {"limit": limit, **back}
            while True:
                page = await read(client, **asked)
                assert len(page["entries"]) <= limit
                found += [entry["id"] for entry in page["entries"]]
                if page["next"] is None:
                    break
                asked[cursor] = page["next"]
            assert found == expected
    page = await read(client, from_entry_id=wanted[-3])
    assert len(page["entries"]) == 2, "bytes count, too"


# Bodies.

NO_ENTRY = [
    b"3",
    b"{}",
    b'{"kind":"gossip","payload":{}}',
    b'{"kind":"event","payload":[]}',
    b'{"kind":"event","payload":{},"more":3}',
    b'{"kind":"event","payload":{"n":NaN}}',
    b'{"kind":"event","payload":' + b'{"a":' * 300 + b"1" + b"}" * 301,
    b'{"kind":"event","payload":{"a":' + b"[" * 40_000 + b"]" * 40_000 + b"}}",
    b'{"kind":"event","payload":{"n":' + b"9" * 5_000 + b"}}",
    b'{"kind":"event","payload":{"t":"\xff"}}',
    b'{"kind":"event","payload":{}},{}',
]
NO_BODY = [
    b"",
    b"no json",
    b"[]",
    b'{"tape":3,"%b":[]}',
    b'{"tape":"telegram:42","%b":[],"more":1}',
    b'{"tape":"telegram:42","%b":null}',
    '{"tape":"telegram:42"}'.encode("utf-16"),
]


@pytest.mark.parametrize(
    ("path", "field"), [("entries", "entries"), ("archive", "carry"), ("reset", "carry")]
)
async def test_what_is_no_entry_is_refused_whole_with_a_sentence(client, path, field):
    entries = [b'{"tape":"telegram:42","%b":[%b]}' % (field.encode(), one) for one in NO_ENTRY]
    for body in [*entries, *NO_BODY]:
        told = body.replace(b"%b", field.encode())
        answer = await client.post(f"/v1/tapes/{path}", content=told)
        case = f"{path}: {told[:60]!r} {answer.text}"
        assert answer.status_code in (400, 422), case
        assert len(answer.json()["detail"].split()) >= 3, case
    version = await client.get("/v1/tapes/version", params={"tape": TAPE})
    assert version.json() == 1


async def test_a_body_beyond_the_bound_is_refused_and_not_read_on(rig, client):
    answer = await put(client, "x" * 100_000)
    assert (answer.status_code, answer.json()["error"]) == (413, "too_large")
    assert answer.headers["connection"] == "close"

    head = f"Authorization: {client.headers['authorization']}\r\nTransfer-Encoding: chunked"
    chunk = b"2710\r\n" + b"x" * 10_000 + b"\r\n"
    heard = await spoken(rig, head, chunk * 11)
    assert heard.startswith(b"HTTP/1.1 413")
    assert await rig.store.version(TAPE) == 1
    answer = await put(client, "x" * 90_000)
    assert answer.status_code == 200


async def test_a_tape_that_is_not_there_costs_no_connection(client):
    answer = await client.get("/v1/tapes/version", params={"tape": "telegram:nobody"})
    assert answer.status_code == 404
    assert "connection" not in answer.headers


async def test_a_request_that_is_broken_off_changes_nothing(rig, client):
    head = f"Authorization: {client.headers['authorization']}\r\nContent-Length: 1000"
    assert (
        await spoken(
            rig, head, json.dumps({"tape": TAPE, "entries": [said("half")]}).encode(), hang_up=True
        )
        == b""
    )
    assert await rig.store.version(TAPE) == 1


async def spoken(rig, head: str, body: bytes, *, hang_up: bool = False) -> bytes:
    """Send an append by hand, and return what is heard until the server ends the connection."""
    host, _, port = rig.url.removeprefix("http://").partition(":")
    start = f"POST /v1/tapes/entries HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n"
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
