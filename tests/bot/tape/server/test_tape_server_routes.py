"""What the routes promise to any client: conflicts, keys, pages, names, followers."""

from __future__ import annotations

import json

import anyio
from tape_server_rig import TAPE, entry_line, put, serving

from bot.tape.entries import anchor, event, message
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


async def _first(lines, count):
    for _ in range(count):
        yield await anext(lines)
