"""The site tells owners what each turn took, and what its model was shown."""

from __future__ import annotations

import json

import pytest
from web_rig import open_web

from bot.inspector.reading import turns as pages
from bot.memory.records.tombstones import tombstone
from bot.tape.entries import event
from bot.tape.entries import message as said
from bot.tape.service import TapeService
from bot.tape.stores.in_memory import InMemoryTapeStore


async def test_an_owner_is_told_what_each_turn_took(tmp_path):
    async with open_web(folder=tmp_path) as rig:
        await rig.talk("fake:1", ("hello", "hi"), "/help", ("and now?", "nothing"))
        told = await rig.get("/turns", tape="fake:1")
        assert told["older"] is None
        new, old = told["turns"]
        assert (new["status"], new["prompt_tokens"], new["cached_tokens"]) == ("ok", 10, 4)
        assert (new["model"], new["steps"], new["cost"]) == ("offline", 1, 0.001)
        assert old["first"] < old["last"] < new["first"] < new["last"]
        [first] = await rig.store.read("fake:1", old["first"], old["first"])
        assert first.payload["content"] == "hello"
        page = await rig.get("/turns", tape="fake:1", limit=1)
        assert [one["id"] for one in page["turns"]] == [new["id"]]
        page = await rig.get("/turns", tape="fake:1", limit=1, before=page["older"])
        assert [one["id"] for one in page["turns"]] == [old["id"]]
        shown = await rig.page("/turns", tape="fake:1")
        assert shown.count("/turn?tape=fake%3A1&amp;turn=") == 2


async def test_a_view_tells_its_parts_and_what_the_cache_served(tmp_path):
    async with open_web(folder=tmp_path) as rig:
        await rig.talk("fake:1", ("hello", "hi"), ("<b>again</b>", "yes"))
        newest, oldest = (await rig.get("/turns", tape="fake:1"))["turns"]
        view = await rig.get("/view", tape="fake:1", turn=newest["id"])
        assert view["why"] == ""
        assert view["cached_share"] == 0.4
        assert view["call"]["prompt_tokens"] == 10
        keys = [part["key"] for part in view["parts"]]
        assert keys[:2] == ["identity", "memory"]
        assert keys[-2:] == ["history", "newest"]
        assert view["tokens"] == sum(part["tokens"] for part in view["parts"])
        assert [one["role"] for one in view["messages"]] == [
            "system", "user", "assistant", "user"
        ]  # fmt: skip
        entries = [one["entries"] for one in view["messages"]]
        for [entry], message in zip(entries[1:], view["messages"][1:], strict=True):
            [found] = await rig.store.read("fake:1", entry, entry)
            assert found.payload["content"] in message["content"]
        near = await rig.get("/view", tape="fake:1", turn=oldest["id"], near=oldest["first"])
        assert near == await rig.get("/view", tape="fake:1", turn=oldest["id"])
        shown = await rig.page("/turn", tape="fake:1", turn=newest["id"])
        assert "&lt;b&gt;again&lt;/b&gt;" in shown
        assert "<b>again</b>" not in shown
        assert f"turn={oldest['id']}" in shown


async def test_a_provider_that_says_nothing_of_its_cache_is_not_said_to_have_none(tmp_path):
    async with open_web(folder=tmp_path) as rig:
        await rig.talk("fake:1", "hello there")
        [turn] = (await rig.get("/turns", tape="fake:1"))["turns"]
        assert turn["cached_tokens"] is None
        view = await rig.get("/view", tape="fake:1", turn=turn["id"])
        assert view["cached_share"] is None
        assert view["call"]["cached_tokens"] is None
        assert "the provider does not report it" in await rig.page(
            "/turn", tape="fake:1", turn=turn["id"]
        )


async def test_words_that_were_erased_are_said_to_be_missing(tmp_path):
    async with open_web(folder=tmp_path) as rig:
        await rig.talk("fake:1", ("my code is swordfish", "noted"), ("next", "ok"))
        newest, _ = (await rig.get("/turns", tape="fake:1"))["turns"]
        assert (await rig.get("/view", tape="fake:1", turn=newest["id"]))["erased"] == []
        entry = next(e for e in await rig.store.read("fake:1") if e.kind == "message")
        await rig.store.erase("fake:1", [tombstone(entry)])
        view = await rig.get("/view", tape="fake:1", turn=newest["id"])
        assert view["erased"] == [entry.id]
        assert "swordfish" not in json.dumps(view)
        assert "erased since" in await rig.page("/turn", tape="fake:1", turn=newest["id"])


async def test_a_builder_that_is_gone_and_a_call_without_an_answer_are_said(tmp_path):
    async with open_web(folder=tmp_path) as rig:
        await rig.talk("fake:1", ("hello", "hi"))
        start = event("turn.start", {"turn": "turn-x", "inbound": [], "builder": "gone"})
        step = event("loop.step", {"turn": "turn-x", "step": 1, "status": "answer", "at": 4})
        failed = event("turn.start", {"turn": "turn-y", "inbound": []})
        await rig.store.append_many("fake:1", [start, step, failed])
        gone = await rig.get("/view", tape="fake:1", turn="turn-x")
        assert "no context builder 'gone'" in gone["why"]
        assert (
            "The model has not answered a call of this turn yet"
            in (await rig.get("/view", tape="fake:1", turn="turn-y"))["why"]
        )
        assert "gone" in await rig.page("/turn", tape="fake:1", turn="turn-x")
        answer = await rig.client.get("/api/v1/view", params={"tape": "fake:1", "turn": "turn-z"})
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found")


async def test_a_view_costs_what_is_near_it_however_long_the_tape(tmp_path, monkeypatch):
    async with open_web(folder=tmp_path) as rig:
        await rig.long_tape(20_000, "fake:1")
        await rig.talk("fake:1", ("hello", "hi"), ("again", "yes"))
        [newest, *_] = (await rig.get("/turns", tape="fake:1", limit=1))["turns"]
        read: list[int] = []
        plain = type(rig.store).read

        async def counted(self, tape, first=None, last=None):
            found = await plain(self, tape, first, last)
            read.append(len(found))
            return found

        monkeypatch.setattr(type(rig.store), "read", counted)
        assert (await rig.get("/view", tape="fake:1", turn=newest["id"]))["messages"]
        assert sum(read) < 2_000


@pytest.mark.parametrize("path", ["/api/v1/turns?tape=x", "/api/v1/view?tape=x&turn=y"])
async def test_only_an_owner_sees_turns(tmp_path, path):
    async with open_web(folder=tmp_path) as rig:
        assert (await rig.member.get(path)).status_code == 403
        assert (await rig.stranger.get(path)).status_code == 401


@pytest.mark.parametrize("scanned", range(12, 30))
async def test_each_turn_is_on_one_page_and_whole_wherever_a_page_stops_reading(
    monkeypatch, scanned
):
    monkeypatch.setattr(pages, "MAX_ENTRIES_PER_PAGE", scanned)
    store = InMemoryTapeStore()
    await store.create_tape("fake:1")
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "calls": 1}
    for number in range(20):
        turn, inbound = f"t{number}", f"m{number}"
        end = {"turn": turn, "status": "ok", "answered": True, "inbound": [inbound], "usage": usage}
        chatter = [said("user", "hum", overheard=True) for _ in range(number % 7)]
        heard = said("user", "hello", inbound=inbound)
        begun = event("turn.start", {"turn": turn, "inbound": [inbound]})
        made = [heard, begun, said("assistant", "hi", turn=turn), event("turn.end", end)]
        await store.append_many("fake:1", [*chatter, *made])
    found, before = [], None
    while True:
        page = await pages.turn_page(TapeService(store, "fake:1"), before, 50)
        found += page.turns
        if (before := page.older) is None:
            break
    assert [one.id for one in found] == [f"t{number}" for number in range(19, -1, -1)]
    assert {(one.status, one.last - one.first) for one in found} == {("ok", 3)}
