"""What the routes make of what is sent: no entry, too much or half of it is refused whole, all else is exact."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import product

import anyio
from tape_server_rig import TAPE, entry_line, put, serving

from bot.tape.http_protocol import NDJSON_MEDIA_TYPE

NO_ENTRY = [
    b"",
    b"\n\n",
    b"no json",
    b"[]",
    b"3",
    b"{}",
    b'{"kind":"gossip","payload":{}}',
    b'{"kind":"event","payload":[]}',
    b'{"kind":"event","payload":{},"meta":null}',
    b'{"kind":"event","payload":{},"more":3}',
    b'{"kind":"event","payload":{"n":NaN}}',
    b'{"kind":"event","payload":{"n":-Infinity}}',
    b'{"kind":"event","payload":{"n":1e999}}',
    b'{"kind":"event","payload":' + b'{"a":' * 300 + b"1" + b"}" * 301,
    b'{"kind":"event","payload":{"a":' + b"[" * 40_000 + b"]" * 40_000 + b"}}",
    b'{"kind":"event","payload":{"n":' + b"9" * 5_000 + b"}}",
    b'{"kind":"event","payload":{"t":"\xff"}}',
    b'{"kind":"event","payload":{}}\x00',
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
        assert version.json()["version"] == 1, case


IMPOSSIBLE = [
    ("/v1/tapes", b"[", 400),
    ("/v1/tapes", b"[]", 422),
    ("/v1/tapes", b'{"title":3}', 422),
    ("/v1/tapes", b'{"\\ud800":3}', 422),
    ("/v1/tapes/fork", b"{}", 422),
    ("/v1/tapes/fork", b'{"new_tape":"' + b"x" * 5_000 + b'"}', 422),
    ("/v1/tapes/fork", b'{"new_tape":"x","from_entry":-1}', 422),
    ("/v1/tapes/fork", b'{"new_tape":"x","from_entry":0}', 404),
    ("/v1/tapes/fork", b'{"new_tape":"x","from_entry":99}', 404),
    ("/v1/tapes/fork", b'{"new_tape":"x","from_anchor":"nowhere"}', 404),
    ("/v1/tapes/fork", b'{"new_tape":"telegram:42"}', 409),
    ("/v1/tapes/anchors", b'{"name":" "}', 400),
    ("/v1/tapes/anchors", b'{"name":"memory/seal"}', 400),
    ("/v1/tapes/anchors", b'{"name":"x","state":[]}', 422),
    ("/v1/tapes/anchors", b'{"name":"x","state":{"n":NaN}}', 400),
    ("/v1/tapes/anchors", b'{"name":"x","entry_id":99}', 404),
    ("/v1/search", b'{"limit":0}', 422),
    ("/v1/search", b'{"limit":' + b"9" * 400 + b"}", 422),
    ("/v1/search", b'{"since":"yesterday"}', 422),
    ("/v1/search", b'{"since":"2026-02-10T10:00:00"}', 422),
    ("/v1/search", b'{"problem":7}', 422),
    ("/v1/search", b'{"tags":"red"}', 422),
    ("/v1/search", b'{"tags":[7]}', 422),
    ("/v1/search", b'{"layer":[]}', 422),
    ("/v1/search", b'{"names":{}}', 422),
    ("/v1/search", b'{"after_anchor":"x"}', 400),
    ("/v1/search", b'{"text":"' + b"x" * 5_000 + b'"}', 400),
]


async def test_a_body_that_asks_for_what_cannot_be_is_refused(rig, client):
    for path, body, status in IMPOSSIBLE:
        params = {"tape": TAPE} if path != "/v1/search" else {}
        answer = await client.post(path, params=params, content=body)
        case = f"{path}: {body[:60]!r}: {answer.text}"
        assert answer.status_code == status, case
        assert set(answer.json()) >= {"error", "detail"}, case
    assert await rig.store.list_tapes() == [TAPE]
    assert await rig.store.version(TAPE) == 1


async def test_what_json_hardly_holds_travels_exactly(rig, client):
    body = (
        b'{"kind":"event","payload":{"a":"\\ud83d","b":-0.0,"c":' + b"9" * 400 + b',"d":[],'
        b'"e":1e300,"\\udc00":"\xed\xa0\xbd\xed\xb8\x80"},"meta":{"ts":"x"}}\n'
    )
    answer = await put(client, body)
    assert answer.status_code == 200
    read = await client.get("/v1/tapes/entries", params={"tape": TAPE, "first": 2})
    assert read.content == answer.content
    held = (await rig.store.read(TAPE, 2))[0].payload
    assert json.loads(read.content)["payload"] == held
    assert held["\udc00"] == "\ud83d\ude00"
    assert len(held["\udc00"]) == 2
    assert repr(held["b"]) == "-0.0"


async def test_a_name_with_half_a_character_is_a_name_and_bytes_that_are_no_text_are_not(client):
    for query, status in (("half%20%ED%A0%BD", 200), ("%FF", 422), ("%ED%A0", 422)):
        answer = await client.post(f"/v1/tapes?tape={query}")
        assert answer.status_code == status
    listed = json.loads((await client.get("/v1/tapes")).content)
    assert listed["tapes"] == ["half \ud83d", TAPE]


async def test_a_state_and_a_title_travel_exactly(client):
    title = b'{"title":"half \\ud83d"}'
    await client.post("/v1/tapes", params={"tape": "t"}, content=title)
    read = await client.get("/v1/tapes/title", params={"tape": "t"})
    assert json.loads(read.content) == {"title": "half \ud83d"}
    state = {"half": "\ud83d", "big": 10**300, "none": [], "zero": -0.0}
    body = json.dumps({"name": "here", "state": state}).encode()
    await client.post("/v1/tapes/anchors", params={"tape": TAPE}, content=body)
    read = await client.get("/v1/tapes/anchors/last", params={"tape": TAPE, "name": "here"})
    assert repr(json.loads(read.content)["state"]) == repr(state)


async def test_a_body_beyond_the_bound_is_refused_and_not_read_on(rig, client):
    """Told by its length or not; the connection ends, however much would still come."""
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


async def test_more_entries_than_one_append_takes_are_refused(tmp_path):
    async with serving(tmp_path) as rig, rig.client() as client:
        await rig.store.create_tape(TAPE)
        answer = await put(client, b'{"kind":"event","payload":{}}\n' * 10_001)
        assert answer.status_code == 413
        assert await rig.store.version(TAPE) == 1


async def test_a_request_that_is_broken_off_changes_nothing(rig, client):
    head = f"Authorization: {client.headers['authorization']}\r\nContent-Length: 1000"
    assert await spoken(rig, head, entry_line("half"), hang_up=True) == b""
    assert await rig.store.version(TAPE) == 1


async def test_what_is_not_there_is_told_as_json(client):
    for method, path, status in (
        ("GET", "/", 404),
        ("GET", "/v1/tapes/", 404),
        ("DELETE", "/v1/tapes", 405),
        ("GET", "/v1/tapes/../../etc/passwd", 404),
    ):
        answer = await client.request(method, path)
        assert answer.status_code == status
        assert set(answer.json()) == {"error", "detail"}
    answer = await client.get("/v1/tapes/version", params={"tape": "nobody"})
    assert (answer.status_code, answer.json()["error"]) == (404, "not_found")
    assert "nobody" in answer.json()["detail"]


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
