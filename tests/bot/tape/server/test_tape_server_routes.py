"""What the routes promise to any client: conflicts, keys, pages, bounds, refusals, exactness."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import product

import anyio
import pytest
from tape_server_rig import TAPE, entry_line, put, serving

from bot.tape.entries import anchor, event, message
from bot.tape.http_protocol import NDJSON_MEDIA_TYPE
from bot.tape.stores.file import FileTapeStore

HOSTILE = [
    "",
    " ",
    "a/b",
    "../..",
    "%2F",
    "a?b#c&d=e+f",
    "console:a/../b",
    "𝟟 Küche 🍳",
    "\x00\n",
    "~",
]


@pytest.fixture
async def rig(tmp_path):
    async with serving(tmp_path, most=100_000) as rig:
        yield rig


@pytest.fixture
async def client(rig):
    async with rig.client() as client:
        assert (await client.post("/v1/tapes", params={"tape": TAPE})).status_code == 200
        yield client


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


async def test_an_append_asked_twice_with_one_key_is_done_once(client):
    headers = {"Idempotency-Key": "k1", "If-Match": '"1"'}
    first = await put(client, entry_line("a") * 3, **headers)
    await put(client, entry_line("between"))
    again = await put(client, entry_line("a") * 3, **headers)
    assert (again.status_code, again.content) == (200, first.content)
    assert len((await lines(client, "/v1/tapes/entries"))[0]) == 5


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


async def test_a_key_that_was_refused_can_be_used_again(client):
    answer = await put(client, b"{}\n", **{"Idempotency-Key": "k"})
    assert answer.status_code == 400
    answer = await put(client, entry_line("a"), **{"Idempotency-Key": "k", "If-Match": '"9"'})
    assert answer.status_code == 409
    answer = await put(client, entry_line("a"), **{"Idempotency-Key": "k"})
    assert answer.status_code == 200


async def test_an_anchor_asked_twice_with_one_key_is_made_once_and_points_where_it_did(client):
    await put(client, entry_line("a"))
    asked = {"name": "here", "state": {"n": 2**70}}
    answers = [
        await client.post(
            "/v1/tapes/anchors",
            params={"tape": TAPE},
            json=asked,
            headers={"Idempotency-Key": "k"},
        )
        for _ in range(2)
    ]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json() == answers[1].json()
    assert (answers[0].json()["entry_id"], answers[0].json()["at"]) == (2, 3)
    listed = await client.get("/v1/tapes/anchors", params={"tape": TAPE})
    assert len(listed.json()["anchors"]) == 1


async def test_an_anchor_asked_for_again_while_it_is_being_made_is_one(tmp_path):
    """Others append meanwhile: what is the newest is another entry for each of them."""
    async with serving(tmp_path, FileTapeStore(tmp_path / "tapes")) as rig, rig.client() as client:
        await rig.store.create_tape(TAPE)
        for key in "abcdef":
            made = []

            async def make(key=key, made=made):
                answer = await client.post(
                    "/v1/tapes/anchors",
                    params={"tape": TAPE},
                    json={"name": "here"},
                    headers={"Idempotency-Key": key},
                )
                made.append((answer.status_code, answer.text))

            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(make)
                    tasks.start_soon(put, client, entry_line("x"))
            assert len(set(made)) == 1
            assert made[0][0] == 201
        assert len(await rig.store.list_anchors(TAPE)) == 6


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


async def test_a_page_before_an_id_has_the_version_of_the_whole_tape(rig, client):
    await rig.store.append_many(TAPE, [message("user", str(n)) for n in range(9)])
    newest = await rig.store.version(TAPE)
    for asked in ({}, {"before": 5}, {"before": 1}):
        _, headers = await lines(client, "/v1/tapes/entries/back", limit=2, **asked)
        assert headers["etag"] == f'"{newest}"'


async def test_pages_of_names_and_anchors_join_to_the_whole(rig, client):
    for name in HOSTILE:
        await rig.store.create_tape(name)
    await rig.store.append_many(TAPE, [anchor(f"a{n}") for n in range(5)])
    found, params = [], {"limit": 3}
    while params.get("after", "") is not None:
        body = (await client.get("/v1/tapes", params=params)).json()
        found += body["tapes"]
        params["after"] = body["next"]
    assert found == sorted([*HOSTILE, TAPE])
    found, params = [], {"limit": 2, "tape": TAPE}
    while params.get("after", 0) is not None:
        body = (await client.get("/v1/tapes/anchors", params=params)).json()
        found += [one["name"] for one in body["anchors"]]
        params["after"] = body["next"]
    assert found == ["a0", "a1", "a2", "a3", "a4"]


async def test_any_name_names_its_own_tape(rig, client):
    for number, name in enumerate(HOSTILE, start=1):
        await client.post("/v1/tapes", params={"tape": name}, json={"title": name})
        assert sorted([TAPE, *HOSTILE[:number]]) == await rig.store.list_tapes()
    for name in HOSTILE:
        answer = await client.get("/v1/tapes/title", params={"tape": name})
        assert answer.json() == {"title": name}


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
    b'{"kind":"event","payload":' + b'{"a":' * 50_0 + b"1" + b"}" * 50_0,
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


async def test_a_follower_gets_what_was_there_and_what_comes_each_with_its_id(rig, client):
    await rig.store.append(TAPE, event("old"))
    async with client.stream(
        "GET", "/v1/tapes/follow", params={"tape": TAPE, "after": 1}
    ) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        got = stream.aiter_lines()
        assert [await anext(got) for _ in range(3)] == ["retry: 1000", "id: 1", ""]
        assert await anext(got) == "id: 2"
        await rig.store.append_many(TAPE, [event("new"), event("newer")])
        data = [line async for line in _first(got, 8 + 3) if line.startswith("data: ")]
        assert [json.loads(line[6:])["id"] for line in data] == [2, 3, 4]


async def test_a_follower_resumes_after_the_last_id_that_it_knows(rig, client):
    await rig.store.append_many(TAPE, [event(str(n)) for n in range(5)])
    async with client.stream(
        "GET",
        "/v1/tapes/follow",
        params={"tape": TAPE, "after": 1},
        headers={"Last-Event-ID": "4"},
    ) as stream:
        got = [line async for line in _first(stream.aiter_lines(), 6)]
        assert [line for line in got if line.startswith("id")] == ["id: 4", "id: 5", "id: 6"][:2]


async def test_a_follower_ends_when_the_server_stops(tmp_path):
    async with anyio.create_task_group() as tasks:
        ended = anyio.Event()

        async def follow(client, opened):
            async with client.stream("GET", "/v1/tapes/follow", params={"tape": TAPE}) as stream:
                got = stream.aiter_lines()
                await anext(got)
                opened.set()
                assert [line async for line in got][-1] == ""
            ended.set()

        async with serving(tmp_path) as rig:
            await rig.store.create_tape(TAPE)
            opened = anyio.Event()
            client = rig.client()
            tasks.start_soon(follow, client, opened)
            await opened.wait()
        with anyio.fail_after(30):
            await ended.wait()
        await client.aclose()


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


async def _first(lines, count):
    for _ in range(count):
        yield await anext(lines)
