"""The site tells owners what each turn took, and what its model was shown."""

from __future__ import annotations

import json

from web_rig import open_web

from bot.memory.records.tombstones import tombstone


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
