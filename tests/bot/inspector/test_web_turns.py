"""The site tells owners what each turn took, and what its model was shown."""

from __future__ import annotations

import json

from bot.memory.records.tombstones import tombstone


async def test_an_owner_is_told_what_each_turn_took_and_what_its_model_was_shown(rig):
    await rig.talk("fake:1", ("hello", "hi"), "/help", ("<b>again</b>", "yes"))
    new, old = (await rig.get("/turns", tape="fake:1"))["turns"]
    assert (new["status"], new["prompt_tokens"], new["cached_tokens"]) == ("ok", 10, 4)
    assert (new["model"], new["steps"], new["cost"]) == ("offline", 1, 0.001)
    page = await rig.get("/turns", tape="fake:1", limit=1)
    assert [one["id"] for one in page["turns"]] == [new["id"]]
    page = await rig.get("/turns", tape="fake:1", limit=1, before=page["older"])
    assert [one["id"] for one in page["turns"]] == [old["id"]]
    view = await rig.get("/view", tape="fake:1", turn=new["id"])
    assert view["cached_share"] == 0.4
    keys = [part["key"] for part in view["parts"]]
    assert (keys[:2], keys[-2:]) == (["identity", "memory"], ["history", "newest"])
    assert view["tokens"] == sum(part["tokens"] for part in view["parts"])
    roles = [one["role"] for one in view["messages"]]
    assert roles == ["system", "user", "assistant", "user"]
    entries = [one["entries"] for one in view["messages"]]
    for [entry], message in zip(entries[1:], view["messages"][1:], strict=True):
        [found] = await rig.store.read("fake:1", entry, entry)
        assert found.payload["content"] in message["content"]
    shown = await rig.page("/turn", tape="fake:1", turn=new["id"])
    assert "&lt;b&gt;again&lt;/b&gt;" in shown
    assert "<b>again</b>" not in shown
    assert f"turn={old['id']}" in shown


async def test_words_that_were_erased_are_said_to_be_missing(rig):
    await rig.talk("fake:1", ("my code is swordfish", "noted"), ("next", "ok"), "and now?")
    newest, second, _ = (await rig.get("/turns", tape="fake:1"))["turns"]
    entry = next(e for e in await rig.store.read("fake:1") if e.kind == "message")
    await rig.store.erase("fake:1", [tombstone(entry)])
    view = await rig.get("/view", tape="fake:1", turn=second["id"])
    assert view["erased"] == [entry.id]
    assert "swordfish" not in json.dumps(view)
    assert "erased since" in await rig.page("/turn", tape="fake:1", turn=second["id"])
    # A provider that says nothing of its cache is not said to have none.
    view = await rig.get("/view", tape="fake:1", turn=newest["id"])
    assert view["cached_share"] is view["call"]["cached_tokens"] is None
