"""``/memory export``: one file, for whom it is, delivered once whatever comes between."""

from __future__ import annotations

import json
import zipfile

import pytest

from bot.bus import Answer
from bot.llm.base import ModelReply, ModelRequest
from bot.tape.entries import event
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply
from tests.bot.agent.telling import EVE, say

MODEL = ScriptedModel(lambda _: text_reply("fine"))


def opened(answer: Answer) -> dict[str, str]:
    [file] = answer.files
    with zipfile.ZipFile(file.path) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name).decode() for name in archive.namelist()}


async def asked(host: Host, text: str, **more) -> Answer:
    await say(host, text, **more)
    return host.channel.answers[-1]


async def test_a_person_takes_away_their_own_facts_and_words_and_nobody_elses(tmp_path):
    async with session_host(tmp_path, MODEL) as host:
        await asked(host, "/memory add I like jasmine tea")
        await asked(host, "hello, quoth Ada")
        await asked(host, "/memory add I collect stamps", chat="2", sender=EVE)
        answer = await asked(host, "/memory export")
        found = opened(answer)
        [file] = answer.files
    assert "I like jasmine tea" in found["MEMORY.md"]
    assert "hello, quoth Ada" in found["conversation.md"]
    assert "stamps" not in "".join(found.values())
    facts = json.loads(found["facts.json"])
    assert (facts["session"], facts["home"]) == ("fake:1", "person:fake:7")
    assert "1 fact, 0 history events, notes of 0 days, and all 2 messages" in answer.text
    assert file.path.parent == tmp_path / "exports"
    assert file.name == file.path.name
    assert file.path.stat().st_mode & 0o777 == 0o600


async def test_a_group_is_an_owners_to_take_away_and_where_it_lies_is_told_in_private(tmp_path):
    group = {"chat": "-3", "private": False}
    async with session_host(tmp_path, MODEL) as host:
        await asked(host, "/memory add the team meets on Fridays", **group)
        refused = await asked(host, "/memory export", sender=EVE, role="member", **group)
        assert "only an owner" in refused.text
        assert not (tmp_path / "exports").exists()
        answer = await asked(host, "/memory export", **group)
        members = await asked(host, "/memory export", chat="2", sender=EVE, role="member")
        owners = await asked(host, "/memory export")
    assert "meets on Fridays" in opened(answer)["MEMORY.md"]
    assert str(owners.files[0].path) in owners.text
    for one in (answer, members):
        assert str(tmp_path) not in one.text


async def test_what_was_private_is_not_taken_away_from_a_chat_that_became_a_group(tmp_path):
    def model(request: ModelRequest) -> ModelReply:
        asks = request.messages[-1]["role"] == "user" and "street" in str(request.messages[-1])
        recall = tool_call_reply(("memory_recall", {"query": "my street"}))
        return recall if asks else text_reply("fine")

    async with session_host(tmp_path, ScriptedModel(model)) as host:
        await asked(host, "/memory add My street is Harbour Street")
        await asked(host, "What is my street?", chat="5")
        assert "Harbour" in str(await host.events("memory.long_term", "fake:5"))
        assert "Harbour" in str([e for e in await host.tape("fake:5") if e.kind == "tool_result"])
        await asked(host, "Hello, I am Eve", chat="5", sender=EVE, private=False, role="member")
        found = opened(await asked(host, "/memory export", chat="5", private=False))
    assert "What is my street?" in found["conversation.jsonl"]
    assert "Harbour" not in "".join(found.values())


@pytest.mark.parametrize("path", ["/etc/passwd", "..", "", "a/../../b"])
async def test_no_tape_can_send_a_file_of_another_folder(tmp_path, path):
    (tmp_path / "b").write_text("not for you")
    async with session_host(tmp_path, MODEL) as host:
        await asked(host, "hello")
        await host.wait_for_event("delivery")
    async with session_host(tmp_path, MODEL) as host:
        end = {"turn": "t9", "status": "command", "answered": True, "inbound": ["x"]}
        reply = {"text": "Here.", "files": [["passwd", path], ["odd"], 5, [1, 2]]}
        await host.store.append_many("fake:1", [event("reply", reply), event("turn.end", end)])
        await asked(host, "hello again")
        await host.channel.wait_until(
            lambda: any(one.text == "Here." for one in host.channel.answers)
        )
        answer = next(one for one in host.channel.answers if one.text == "Here.")
    [file] = answer.files
    assert tmp_path / "exports" in (file.path, file.path.parent)
    assert not file.path.is_file()
